import { fromSettings, runService } from '@hopline/lifecycle';
import { secretsKeysFrom, withSealedWebhooks } from '@hopline/log/webhook-secrets';
import { openFromSettings } from '@hopline/log-jetstream';
import { webhookRules } from '@hopline/webhook-guard';
import { notifierConfig } from './config.ts';
import { createNotifier } from './notifier.ts';
import { openTrust } from './trusted-authorities.ts';

await runService({
  name: 'notifier',
  env: process.env,
  config: notifierConfig,
  probes: 'own',
  start: async ({ settings, instance, log: logger, telemetry }) => {
    const rules = webhookRules(settings);
    const caFile = settings.HOPLINE_WEBHOOK_CA_FILE;
    const trust = caFile === undefined ? undefined : await fromSettings(() => openTrust({ path: caFile, logger }));
    const secretsKeys = await fromSettings(() => secretsKeysFrom(settings));
    const opened = await openFromSettings(settings, { user: 'notifier', name: instance, logger, metrics: telemetry.metrics });
    const log = withSealedWebhooks(opened, secretsKeys);
    const notifier = await createNotifier({
      log,
      instance,
      rules,
      ...(trust && { trust }),
      limits: {
        timeoutMs: settings.HOPLINE_WEBHOOK_TIMEOUT_MS,
        requestsMax: settings.HOPLINE_WEBHOOK_REQUESTS_MAX,
        hostRequestsMax: settings.HOPLINE_WEBHOOK_HOST_REQUESTS_MAX,
        workersMax: settings.HOPLINE_WEBHOOK_WORKERS_MAX,
        intervalMs: settings.HOPLINE_WEBHOOK_INTERVAL_MS,
        bytesPerSecondMax: settings.HOPLINE_WEBHOOK_BYTES_PER_SECOND,
      },
      retry: {
        attemptsMax: settings.HOPLINE_WEBHOOK_ATTEMPTS_MAX,
        retryMsBase: settings.HOPLINE_WEBHOOK_RETRY_MS_BASE,
        retryMsMax: settings.HOPLINE_WEBHOOK_RETRY_MS_MAX,
        abandonAfterMs: settings.HOPLINE_WEBHOOK_ABANDON_AFTER_MS,
      },
      metrics: telemetry.metrics,
      logger,
      leaseMs: settings.HOPLINE_LEASE_MS,
      heartbeatMs: settings.HOPLINE_LEASE_HEARTBEAT_MS,
    });
    return {
      checks: [
        { name: 'log', check: () => log.check() },
        { name: 'appends', check: () => log.checkAppends() },
      ],
      close: async () => {
        await notifier.stop();
        await log.close();
      },
    };
  },
});
