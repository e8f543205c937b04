import assert from 'node:assert/strict';
import test from 'node:test';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import fc from 'fast-check';
import { LABELS, METRICS, PROCESS_METRICS } from './metric-registry.ts';
import { createHopMetrics, LATENCY_BUCKETS_S, SERIES_PER_METRIC_MAX, startAgentAtZero } from './metrics.ts';
import { PARTIES_NAMED_MAX } from './parties.ts';
import { startMetrics } from './start-metrics.ts';

async function start(fastPaths = true) {
  const reader = await startMetrics({ 'service.name': 'relay' }, undefined, undefined, fastPaths);
  return { reader, metrics: createHopMetrics('relay', reader) };
}

function line(text: string, start: string): string {
  const found = text.split('\n').find(candidate => candidate.startsWith(start));
  assert.ok(found, `${start} is not in:\n${text}`);
  return found;
}

test('counters, gauges and histograms appear as Prometheus text under the names of names.ts', async () => {
  const { reader, metrics } = await start();
  metrics.tokens.add(600, { agent: 'argocd' });
  metrics.tokens.add(61, { agent: 'argocd' });
  metrics.chunks.add(2, { agent: 'argocd', reason: 'quiet' });
  metrics.openStreams.add(1);
  metrics.openStreams.add(1);
  metrics.openStreams.add(-1);
  metrics.hopDuration.recordMs(3, { hop: 'hold', agent: 'argocd' });
  const text = await reader.text();
  assert.equal(line(text, 'hopline_tokens_total{'), 'hopline_tokens_total{service="relay",agent="argocd"} 661');
  assert.equal(line(text, 'hopline_chunks_total{'), 'hopline_chunks_total{service="relay",agent="argocd",reason="quiet"} 2');
  assert.equal(line(text, 'hopline_open_streams{'), 'hopline_open_streams{service="relay"} 1');
  const sum = 'hopline_hop_duration_seconds_sum';
  assert.equal(line(text, sum), `${sum}{service="relay",hop="hold",agent="argocd"} 0.003`);
  assert.equal(line(text, '# UNIT hopline_hop'), '# UNIT hopline_hop_duration_seconds seconds');
  await reader.provider.shutdown();
});

const agent = fc.constantFrom('argocd', 'github', 'not an agent: two words', undefined);
const ms = fc.oneof(fc.double({ min: -1, max: 1e6, noNaN: true }), fc.constantFrom(0, 0.25, 0.5, 64, 65_536, 65_537));
const count = fc.nat(1_000);
/** Calls of instruments with and without labels, of both kinds of histogram. */
const calls = fc.array(
  fc.oneof(
    fc.tuple(fc.constant('hop'), ms, agent),
    fc.tuple(fc.constant('append'), ms, agent),
    fc.tuple(fc.constant('model'), count, agent),
    fc.tuple(fc.constant('tokens'), count, agent),
    fc.tuple(fc.constant('streams'), fc.integer({ min: -5, max: 5 }), agent),
  ) as fc.Arbitrary<[string, number, string | undefined]>,
  { maxLength: 60 },
);

test('sums and histograms are exported as if the SDK had counted them', async () => {
  await fc.assert(
    fc.asyncProperty(calls, async made => {
      const texts = [true, false].map(async fastPaths => {
        const { reader, metrics } = await start(fastPaths);
        for (const [kind, value, name] of made) {
          if (kind === 'hop') metrics.hopDuration.recordMs(value, { hop: 'hold', agent: name });
          else if (kind === 'append') metrics.appendDuration.recordMs(value);
          else if (kind === 'model')
            metrics.modelTokens.record(value, { 'gen_ai.request.model': name, 'gen_ai.token.type': 'input' });
          else if (kind === 'tokens') metrics.tokens.add(value, { agent: name });
          else metrics.openStreams.add(value);
        }
        const text = await reader.text();
        await reader.provider.shutdown();
        return text.split('\n').sort();
      });
      const [counted, bySdk] = await Promise.all(texts);
      assert.deepEqual(counted, bySdk);
    }),
    { numRuns: 50 },
  );
});

test('an observed gauge exports only what it reads now', async () => {
  const { reader, metrics } = await start();
  let owned = [1, 2, 3];
  metrics.shardLag.observe(() => owned.map(shard => [10 * shard, { shard }]));
  const lags = async () => (await reader.text()).split('\n').filter(one => one.startsWith('hopline_shard_lag{'));
  assert.equal((await lags()).length, 3);
  owned = [2];
  assert.deepEqual(await lags(), ['hopline_shard_lag{service="relay",shard="2"} 20']);
  owned = [];
  assert.deepEqual(await lags(), []);
  await reader.provider.shutdown();
});

test('latency buckets are 0.25 ms times 2^n', async () => {
  const { reader, metrics } = await start();
  assert.equal(LATENCY_BUCKETS_S[0], 0.00025);
  assert.equal(LATENCY_BUCKETS_S.at(-1), 2097.152);
  metrics.appendDuration.recordMs(0.25);
  metrics.appendDuration.recordMs(-40);
  metrics.appendDuration.recordMs(100_000);
  metrics.appendDuration.recordMs(2_097_153);
  const text = await reader.text();
  const name = 'hopline_append_duration_seconds';
  assert.equal(line(text, `${name}_bucket{service="relay",le="0.00025"`), `${name}_bucket{service="relay",le="0.00025"} 2`);
  assert.equal(line(text, `${name}_bucket{service="relay",le="65.536"`), `${name}_bucket{service="relay",le="65.536"} 2`);
  assert.equal(line(text, `${name}_bucket{service="relay",le="2097.152"`), `${name}_bucket{service="relay",le="2097.152"} 3`);
  assert.equal(line(text, `${name}_bucket{service="relay",le="+Inf"`), `${name}_bucket{service="relay",le="+Inf"} 4`);
  assert.equal(text.match(new RegExp(`${name}_bucket`, 'g'))?.length, LATENCY_BUCKETS_S.length + 1);
  await reader.provider.shutdown();
});

test('metrics contain no ids: unknown labels are dropped, ids as values become other', async () => {
  const { reader, metrics } = await start();
  const planted = { agent: 'demo', task_id: 'PLANTED', 'a2a.task.id': 'PLANTED' };
  metrics.tokens.add(1, planted);
  reader.provider.getMeter('elsewhere').createCounter('elsewhere').add(1, { 'a2a.task.id': 'PLANTED', reason: 'kept' });
  metrics.inputsRejected.add(1, { reason: '0198f3b2-7c00-7000-8000-000000000001' as never });
  const text = await reader.text();
  assert.doesNotMatch(text, /PLANTED|0198f3b2/);
  assert.match(text, /elsewhere_total\{reason="kept"\} 1/);
  assert.match(text, /hopline_inputs_rejected_total\{service="relay",reason="other"\} 1/);
  await reader.provider.shutdown();
});

test('labels that map to the same point are counted in one sum', async () => {
  const { reader, metrics } = await start();
  for (const reason of ['0198f3b2-7c00-7000-8000-000000000001', 'two words', '0198f3b2-7c00-7000-8000-000000000002'])
    metrics.inputsRejected.add(2, { reason: reason as never });
  const lines = (await reader.text()).split('\n').filter(one => /^hopline_inputs_rejected_total.*reason="other"/.test(one));
  assert.deepEqual(lines, ['hopline_inputs_rejected_total{service="relay",reason="other"} 6']);
  await reader.provider.shutdown();
});

test('SERIES_PER_METRIC_MAX bounds the series of one metric', async () => {
  const { reader, metrics } = await start();
  for (let n = 0; n < SERIES_PER_METRIC_MAX + 50; n++) metrics.tokens.add(1, { agent: `a${n}` });
  const text = await reader.text();
  const series = text.split('\n').filter(candidate => candidate.startsWith('hopline_tokens_total'));
  assert.equal(series.length, SERIES_PER_METRIC_MAX);
  assert.match(text, /otel_metric_overflow/);
  await reader.provider.shutdown();
});

test('SERIES_PER_METRIC_MAX bounds the series of a histogram; the last one receives all further values', async () => {
  const { reader, metrics } = await start();
  for (let n = 0; n < SERIES_PER_METRIC_MAX + 50; n++) metrics.hopDuration.recordMs(1, { hop: 'hold', agent: `a${n}` });
  const counts = (await reader.text()).split('\n').filter(one => one.startsWith('hopline_hop_duration_seconds_count'));
  assert.equal(counts.length, SERIES_PER_METRIC_MAX);
  assert.deepEqual(
    counts.filter(one => one.includes('overflow')),
    ['hopline_hop_duration_seconds_count{otel_metric_overflow="true"} 51'],
  );
  await reader.provider.shutdown();
});

test('memory does not grow with the names of agents beyond SERIES_PER_METRIC_MAX; known series go on counting', async () => {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  const { reader, metrics } = await start();
  const name = (n: number) => `review of ${n}`;
  for (let n = 0; n < 10 * SERIES_PER_METRIC_MAX; n += 1) metrics.chunks.add(1, { agent: name(n), reason: 'quiet' });
  collect();
  const before = process.memoryUsage().heapUsed;
  for (let n = 0; n < 100_000; n += 1) metrics.chunks.add(1, { agent: name(n), reason: 'quiet' });
  collect();
  const grown = process.memoryUsage().heapUsed - before;
  assert.ok(grown < 8_000_000, `${grown} bytes`);
  const text = await reader.text();
  assert.equal(line(text, 'hopline_chunks_total{service="relay",agent="review of 0",reason="quiet"').split(' ').at(-1), '2');
  assert.match(text, /^hopline_chunks_total\{otel_metric_overflow="true"\} \d{6}$/m);
  await reader.provider.shutdown();
});

test('every metric name is a valid Prometheus name and unique after translation', () => {
  const names = [...Object.values(METRICS), ...Object.values(PROCESS_METRICS)].map(({ name }) => name.replaceAll('.', '_'));
  assert.equal(new Set(names).size, names.length);
  for (const name of names) assert.match(name, /^[a-z][a-z0-9_]*$/);
});

test('every counter of a service starts at 0, and an agent’s counters do so once the agent is named', async () => {
  for (const service of ['ingress', 'relay', 'supervisor', 'sub-agent', 'notifier']) {
    const reader = await startMetrics({});
    const metrics = createHopMetrics(service, reader);
    startAgentAtZero(metrics, service, 'demo');
    const text = await reader.text();
    for (const { name, type, services, ...more } of Object.values(METRICS)) {
      const isOpen = 'labels' in more && ['stream', 'shard', 'tenant'].some(label => label in more.labels);
      if (type !== 'counter' || isOpen || !(services as readonly string[]).includes(service)) continue;
      // The tokens and chunks of a relay are labeled with agents, whose names the relay does not know before they write.
      if (service === 'relay' && 'labels' in more && 'agent' in more.labels) continue;
      assert.match(text, new RegExp(`^${name.replaceAll('.', '_')}(_bytes)?_total\\{.*\\} 0$`, 'm'), `${service}: ${name}`);
    }
    await reader.provider.shutdown();
  }
});

test('each label has one meaning, and the series of a process are bounded', async () => {
  for (const definition of Object.values(METRICS)) {
    const labels: object = 'labels' in definition ? definition.labels : {};
    for (const label of Object.keys(labels)) assert.ok(label in LABELS, `${definition.name}: ${label}`);
    const closed = Object.values(labels).filter(Array.isArray) as string[][];
    const series = closed.reduce((product, values) => product * values.length, 1);
    assert.ok(series <= SERIES_PER_METRIC_MAX / 2, `${definition.name}: ${series} series`);
    // Each named caller has one tenant, and each tenant has other callers.
    const parties = 'caller' in labels ? 2 * PARTIES_NAMED_MAX + 3 : 'tenant' in labels ? PARTIES_NAMED_MAX + 2 : 1;
    assert.ok(series * parties <= SERIES_PER_METRIC_MAX, `${definition.name}: ${series} series for each of ${parties} owners`);
    for (const value of closed.flat()) assert.match(value, /^[A-Za-z][A-Za-z0-9_.-]{0,47}$/);
  }
});
