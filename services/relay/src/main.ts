import { runService } from '@hopline/lifecycle';
import { coalesceSettingsOf } from '@hopline/log';
import { layoutSizesOf, openFromSettings } from '@hopline/log-jetstream';
import { copyForwardAfterMs, keptConsumers, relayConfig } from './config.ts';
import { createRelay, type Relay } from './relay.ts';

await runService({
  name: 'relay',
  env: process.env,
  config: relayConfig,
  probes: 'own',
  start: async ({ settings, instance, log: logger, telemetry }) => {
    let relay: Relay | undefined;
    const log = await openFromSettings(settings, {
      user: 'relay',
      name: instance,
      logger,
      metrics: telemetry.metrics,
      watchesRetention: true,
      compactsRecords: settings.HOPLINE_COMPACT_RECORDS,
      // One relay at a time has this shard.
      addsLayouts: {
        wanted: layoutSizesOf(settings.HOPLINE_LAYOUTS ?? ''),
        isAdder: () => relay?.shards.has(0) === true,
      },
      placesLeaders: { isPlacer: () => relay?.shards.has(0) === true },
      restoresLost: {},
      removesUnknown: { keptConsumers: keptConsumers(settings) },
    });
    const started = await createRelay({
      log,
      instance,
      coalesce: coalesceSettingsOf(settings),
      metrics: telemetry.metrics,
      logger,
      leaseMs: settings.HOPLINE_LEASE_MS,
      heartbeatMs: settings.HOPLINE_LEASE_HEARTBEAT_MS,
      inputTimeoutMs: settings.HOPLINE_INPUT_TIMEOUT_MS,
      authTimeoutMs: settings.HOPLINE_AUTH_REQUIRED_TIMEOUT_MS,
      copyForwardAfterMs: copyForwardAfterMs(settings),
      taskBytesMax: settings.HOPLINE_TASK_STORED_BYTES_MAX,
    });
    relay = started;
    return {
      checks: [
        { name: 'log', check: () => log.check() },
        { name: 'appends', check: () => log.checkAppends() },
      ],
      close: async () => {
        await started.stop();
        await log.close();
      },
    };
  },
});
