import { fromSettings, runService } from '@hopline/lifecycle';
import { coalesceSettingsOf, TextPace } from '@hopline/log';
import { openFromSettings } from '@hopline/log-jetstream';
import { loadProfiles } from '@hopline/profiles';
import { startAgentAtZero } from '@hopline/telemetry';
import { supervisorConfig } from './config.ts';
import { planningModel } from './planning-model.ts';
import { SkillPlanner } from './skill-planner.ts';
import { createSupervisor } from './supervisor.ts';

await runService({
  name: 'supervisor',
  env: process.env,
  config: supervisorConfig,
  probes: 'own',
  start: async ({ settings, instance, log: logger, telemetry }) => {
    const profiles = await fromSettings(() => loadProfiles(settings.HOPLINE_PROFILE_MODULE));
    const log = await openFromSettings(settings, { user: 'supervisor', name: instance, logger, metrics: telemetry.metrics });
    startAgentAtZero(telemetry.metrics, 'supervisor', 'supervisor');
    const supervisor = await createSupervisor({
      log,
      planner: new SkillPlanner(settings.HOPLINE_DEFAULT_AGENT),
      model: await fromSettings(() => planningModel(settings)),
      profiles,
      displayName: settings.HOPLINE_SUPERVISOR_NAME,
      agentGoneMs: settings.HOPLINE_AGENT_GONE_MS,
      agentWaitMs: settings.HOPLINE_AGENT_WAIT_MS,
      slots: settings.HOPLINE_SLOTS,
      pace: new TextPace(coalesceSettingsOf(settings)),
      metrics: telemetry.metrics,
      logger,
    });
    return {
      checks: [
        { name: 'log', check: () => log.check() },
        { name: 'appends', check: () => log.checkAppends() },
      ],
      close: async () => {
        await supervisor.stop();
        await log.close();
      },
    };
  },
});
