import assert from 'node:assert/strict';
import test from 'node:test';
import { createHopMetrics, LATENCY_BUCKETS_S } from './metrics.ts';
import { METRIC } from './names.ts';
import { SERIES_PER_METRIC_MAX, startMetrics } from './start-metrics.ts';

async function start() {
  const reader = await startMetrics({ 'service.name': 'relay' });
  return { reader, metrics: createHopMetrics('relay', reader.provider.getMeter('hopline')) };
}

function line(text: string, start: string): string {
  const found = text.split('\n').find(candidate => candidate.startsWith(start));
  assert.ok(found, `${start} is not in:\n${text}`);
  return found;
}

test('counters, gauges and histograms appear as Prometheus text under the names of names.ts', async () => {
  const { reader, metrics } = await start();
  metrics.tokensIn.add(600, { agent: 'argocd' });
  metrics.tokensIn.add(61, { agent: 'argocd' });
  metrics.flushes.add(2, { agent: 'argocd', reason: 'window' });
  metrics.openStreams.add(1);
  metrics.openStreams.add(1);
  metrics.openStreams.add(-1);
  metrics.relayHold.recordMs(3, { agent: 'argocd' });
  const text = await reader.text();
  assert.equal(line(text, 'hopline_tokens_in_total'), 'hopline_tokens_in_total{service="relay",agent="argocd"} 661');
  assert.equal(line(text, 'hopline_flushes_total'), 'hopline_flushes_total{service="relay",agent="argocd",reason="window"} 2');
  assert.equal(line(text, 'hopline_open_streams'), 'hopline_open_streams{service="relay"} 1');
  assert.equal(line(text, 'hopline_hop_relay_hold_sum'), 'hopline_hop_relay_hold_sum{service="relay",agent="argocd"} 0.003');
  await reader.provider.shutdown();
});

test('latency buckets are 0.25 ms times 2^n', async () => {
  const { reader, metrics } = await start();
  assert.equal(LATENCY_BUCKETS_S[0], 0.00025);
  assert.equal(LATENCY_BUCKETS_S.at(-1), 65.536);
  metrics.endToEnd.recordMs(0.25);
  metrics.endToEnd.recordMs(-40);
  metrics.endToEnd.recordMs(100_000);
  const text = await reader.text();
  const name = 'hopline_hop_end_to_end';
  assert.equal(line(text, `${name}_bucket{service="relay",le="0.00025"`), `${name}_bucket{service="relay",le="0.00025"} 2`);
  assert.equal(line(text, `${name}_bucket{service="relay",le="65.536"`), `${name}_bucket{service="relay",le="65.536"} 2`);
  assert.equal(line(text, `${name}_bucket{service="relay",le="+Inf"`), `${name}_bucket{service="relay",le="+Inf"} 3`);
  assert.equal(text.match(new RegExp(`${name}_bucket`, 'g'))?.length, LATENCY_BUCKETS_S.length + 1);
  await reader.provider.shutdown();
});

test('metrics contain no ids: unknown labels are dropped, ids as values become other', async () => {
  const { reader, metrics } = await start();
  const planted = { agent: 'demo', task_id: 'PLANTED', 'a2a.task.id': 'PLANTED' };
  metrics.tokensIn.add(1, planted);
  reader.provider.getMeter('elsewhere').createCounter('elsewhere').add(1, { 'a2a.task.id': 'PLANTED', reason: 'kept' });
  metrics.inputsRejected.add(1, { reason: '0198f3b2-7c00-7000-8000-000000000001' });
  const text = await reader.text();
  assert.doesNotMatch(text, /PLANTED|0198f3b2/);
  assert.match(text, /elsewhere_total\{reason="kept"\} 1/);
  assert.match(text, /hopline_inputs_rejected_total\{service="relay",reason="other"\} 1/);
  await reader.provider.shutdown();
});

test('SERIES_PER_METRIC_MAX bounds the series of one metric', async () => {
  const { reader, metrics } = await start();
  for (let n = 0; n < SERIES_PER_METRIC_MAX + 50; n++) metrics.tokensIn.add(1, { agent: `a${n}` });
  const text = await reader.text();
  const series = text.split('\n').filter(candidate => candidate.startsWith('hopline_tokens_in_total'));
  assert.equal(series.length, SERIES_PER_METRIC_MAX);
  assert.match(text, /otel_metric_overflow/);
  await reader.provider.shutdown();
});

test('every metric name is a valid Prometheus name and unique after translation', () => {
  const names = Object.values(METRIC).map(name => name.replaceAll('.', '_'));
  assert.equal(new Set(names).size, names.length);
  for (const name of names) assert.match(name, /^[a-z][a-z0-9_]*$/);
});
