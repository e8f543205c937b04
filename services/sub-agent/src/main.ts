import { resolve } from 'node:path';
import { quotaLimits } from '@hopline/a2a-server';
import { authFromSettings, corsFromSettings, tlsFromSettings } from '@hopline/endpoint';
import { AGENT_NAME_RULE, isAgentName } from '@hopline/events';
import { fromSettings, runService } from '@hopline/lifecycle';
import { coalesceSettingsOf, TextPace } from '@hopline/log';
import { openFromSettings } from '@hopline/log-jetstream';
import { snakeWord, startAgentAtZero } from '@hopline/telemetry';
import { parseAgentEntry } from './agent-entry.ts';
import { authorTerminal } from './author-terminal.ts';
import { CodeProcesses } from './code-processes.ts';
import { subAgentConfig } from './config.ts';
import { createAgent } from './create-agent.ts';
import { createSubAgent } from './sub-agent.ts';
import { TurnWebhooks } from './turn-webhooks.ts';

await runService({
  name: 'sub-agent',
  env: process.env,
  config: subAgentConfig,
  probes: 'mounted',
  publicAddresses: settings => [settings.HOPLINE_PUBLIC_URL],
  start: async ({ settings, instance, version, log: logger, telemetry, probes }) => {
    const { metrics } = telemetry;
    const entry = parseAgentEntry(settings.HOPLINE_AGENT);
    const webhooks = new TurnWebhooks(settings.HOPLINE_PUBLIC_URL);
    const named = { name: entry.name };
    const errorsFd = settings.HOPLINE_AGENT_ERRORS_FD;
    const showError = errorsFd === undefined ? undefined : authorTerminal(errorsFd, named);
    const { agent, name, auth, tls } = await fromSettings(async () => {
      const agent = await createAgent(entry, {
        folder: resolve(settings.HOPLINE_AGENTS_DIR),
        model: {
          baseUrl: settings.OPENAI_BASE_URL,
          apiKey: settings.OPENAI_API_KEY,
          pricesFile: settings.HOPLINE_MODEL_PRICES_FILE,
        },
        secret: variable => process.env[variable],
        webhooks: url => webhooks.forAgent(url),
        code: new CodeProcesses({
          user: settings.HOPLINE_CODE_USER,
          socket: settings.HOPLINE_CODE_SOCKET,
          environment: process.env,
          nodeOptions: process.execArgv,
          stdout: process.stdout,
          stderr: process.stderr,
          logger,
          showAuthor: showError ?? (() => {}),
          exportSpan: telemetry.exportSpan,
        }),
        onSkipped: what => metrics.agentEventsSkipped.add(1, { agent: entry.name, reason: snakeWord(what) }),
      });
      const { name = agent.name } = entry;
      if (name === undefined) throw new Error('the agent has no name: set `name` in its entry or its definition');
      if (!isAgentName(name)) throw new Error(`the name of the agent must be ${AGENT_NAME_RULE}`);
      return {
        agent,
        name,
        auth: await authFromSettings(settings, { logger }),
        tls: await tlsFromSettings(settings, { logger }),
      };
    });
    named.name = name;
    startAgentAtZero(metrics, 'sub-agent', name);
    const { skills = [], default: isDefault, retries, forwardText } = entry;
    const log = await openFromSettings(settings, { user: `agent.${name}`, name: instance, logger, metrics });
    const subAgent = createSubAgent({
      log,
      name,
      agent,
      skills,
      isDefault,
      slots: settings.HOPLINE_SLOTS,
      retries,
      forwardText,
      drainMs: settings.HOPLINE_DRAIN_TURNS_MS,
      pace: new TextPace(coalesceSettingsOf(settings)),
      limits: quotaLimits(settings),
      showError,
      version,
      publicUrl: settings.HOPLINE_PUBLIC_URL,
      webhooks,
      auth,
      tls,
      cors: corsFromSettings(settings),
      probes,
      metrics,
      logger,
    });
    const url = await subAgent.start(settings.HOPLINE_HOST, settings.HOPLINE_PORT);
    logger.info({ agent: name, adapter: entry.adapter, url }, 'agent listening');
    return {
      checks: [
        { name: 'log', check: () => log.check() },
        { name: 'appends', check: () => log.checkAppends() },
        { name: 'agent', optional: true, check: () => subAgent.check() },
        ...auth.checks,
      ],
      close: async () => {
        await subAgent.stop();
        await log.close();
      },
    };
  },
});
