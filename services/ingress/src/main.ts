import { quotaLimits } from '@hopline/a2a-server';
import { authFromSettings, corsFromSettings, tlsFromSettings } from '@hopline/endpoint';
import { fromSettings, runService } from '@hopline/lifecycle';
import { secretsKeysFrom, withSealedWebhooks } from '@hopline/log/webhook-secrets';
import { openFromSettings } from '@hopline/log-jetstream';
import { loadProfiles, ProfileError } from '@hopline/profiles';
import { webhookRules } from '@hopline/webhook-guard';
import { cardFromSettings, listOf } from './card-settings.ts';
import { ingressConfig } from './config.ts';
import { createIngress } from './ingress.ts';

/** Longer than the pause between two requests of a client that polls once a second. */
const LAST_REQUESTS_MS = 2_000;

await runService({
  name: 'ingress',
  env: process.env,
  config: ingressConfig,
  probes: 'mounted',
  publicAddresses: settings => [settings.HOPLINE_PUBLIC_URL, settings.HOPLINE_GRPC_PUBLIC_URL],
  start: async ({ settings, instance, version, log: logger, telemetry, probes }) => {
    const { HOPLINE_PROFILE: profile, HOPLINE_PROFILE_MODULE: profileModule } = settings;
    const { auth, tls, card, secretsKeys } = await fromSettings(async () => {
      const profiles = await loadProfiles(profileModule);
      if (!profiles.has(profile)) throw new ProfileError(`HOPLINE_PROFILE must be one of ${[...profiles.keys()].join(', ')}`);
      return {
        auth: await authFromSettings(settings, { logger }),
        tls: await tlsFromSettings(settings, { logger }),
        card: await cardFromSettings(settings, version),
        secretsKeys: await secretsKeysFrom(settings),
      };
    });
    if (settings.HOPLINE_PUSH && secretsKeys === undefined)
      logger.warn('HOPLINE_SECRETS_KEY is not set: tokens and credentials of webhooks are stored in NATS in plain text');
    const opened = await openFromSettings(settings, { user: 'ingress', name: instance, logger, metrics: telemetry.metrics });
    const log = withSealedWebhooks(opened, secretsKeys);
    const { HOPLINE_GRPC_PORT: port, HOPLINE_GRPC_PUBLIC_URL: publicUrl } = settings;
    const ingress = await createIngress({
      log,
      profile,
      card,
      tenants: listOf(settings.HOPLINE_TENANTS ?? ''),
      publicUrl: settings.HOPLINE_PUBLIC_URL,
      consoleUrl: settings.HOPLINE_CONSOLE_URL,
      defaultAgent: settings.HOPLINE_DEFAULT_AGENT,
      grpc: port === undefined ? undefined : { port, publicUrl },
      limits: {
        bodyBytesMax: settings.HOPLINE_BODY_BYTES_MAX,
        streamsMax: settings.HOPLINE_STREAMS_MAX,
        viewerBufferBytesMax: settings.HOPLINE_VIEWER_BUFFER_BYTES_MAX,
        ringsBytesMax: settings.HOPLINE_RECENT_EVENTS_BYTES_MAX,
        viewsBytesMax: settings.HOPLINE_FOLLOWED_TASKS_BYTES_MAX,
        heartbeatMs: settings.HOPLINE_SSE_HEARTBEAT_MS,
        ...quotaLimits(settings),
      },
      webhooks: webhookRules(settings),
      auth,
      tls,
      cors: corsFromSettings(settings),
      lastRequestsMs: LAST_REQUESTS_MS,
      probes,
      metrics: telemetry.metrics,
      logger,
    });
    const url = await ingress.listen(settings.HOPLINE_HOST, settings.HOPLINE_PORT);
    logger.info({ url }, 'listening');
    return {
      checks: [
        { name: 'log', check: () => log.check() },
        // Even if appends fail, tasks can be read and streams continue. So ingress stays ready, because removing it from its Service would
        // end both.
        { name: 'appends', optional: true, check: () => log.checkAppends() },
        ...auth.checks,
      ],
      close: async () => {
        await ingress.close();
        await log.close();
      },
    };
  },
});
