import assert from 'node:assert/strict';
import { test } from 'node:test';
import { defineConfig } from '@hopline/lifecycle';
import { FACTS_STREAM, LOG_SETTINGS, openFromSettings } from '@hopline/log-jetstream';
import { createHopMetrics, createLogger } from '@hopline/telemetry';
import { jetstreamManager } from '@nats-io/jetstream';
import { connect } from '@nats-io/transport-node';
import { startMetrics } from '../../../packages/telemetry/src/start-metrics.ts';
import { until } from '../../kit/until.ts';
import { createStreams, startNats } from '../../support/nats/nats-server.ts';

test('a relay exports when the oldest event was stored and the age limit of its stream, for HoplineRetentionNear', async t => {
  const nats = await startNats();
  t.after(() => nats.stop());
  await createStreams(nats.url);
  const nc = await connect({ servers: nats.url });
  t.after(() => nc.close());
  nc.publish('a2a.log.0.task', 'fact');
  nc.publish('a2a.raw.0.task.client', 'input');
  await nc.flush();
  const { streams } = await jetstreamManager(nc);
  const { state, config } = await streams.info(FACTS_STREAM);

  const exported = await startMetrics({});
  t.after(() => exported.provider.shutdown());
  const settings = defineConfig(LOG_SETTINGS).load({ NATS_URL: nats.url });
  const logger = createLogger({ service: 'relay', instance: 'relay-1', level: 'silent', format: 'json' });
  const metrics = createHopMetrics('relay', exported);
  const log = await openFromSettings(settings, { user: 'relay', name: 'relay-1', logger, metrics, watchesRetention: true });
  t.after(() => log.close());
  const lines = await until(async () => {
    const found = (await exported.text())
      .split('\n')
      .filter(line => /^hopline_log_(first_timestamp|age_limit)_seconds\{/.test(line));
    return found.length > 1 && found;
  });
  assert.deepEqual(lines, [
    `hopline_log_first_timestamp_seconds{service="relay",stream="${FACTS_STREAM}"} ${Date.parse(state.first_ts) / 1_000}`,
    `hopline_log_age_limit_seconds{service="relay",stream="${FACTS_STREAM}"} ${config.max_age / 1e9}`,
  ]);
});
