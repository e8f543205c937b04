import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { JAEGER_ABSENT, Jaeger } from '../support/telemetry/jaeger.ts';
import { questionOfS0, TRACE_SCENARIOS } from '../support/telemetry/trace-scenarios.ts';
import { startTraceWorld, type TraceWorld } from '../support/telemetry/trace-world.ts';

/** The trees of test/e2e/trace-trees.test.ts, read from a real Jaeger: it must store and show exactly the exported spans. */

const TIMEOUT_MS = 240_000;
const options = { skip: JAEGER_ABSENT, timeout: TIMEOUT_MS };

let jaeger: Jaeger;
let world: TraceWorld;

before(async () => {
  if (JAEGER_ABSENT) return;
  jaeger = await Jaeger.start();
  world = await startTraceWorld(jaeger, jaeger.endpoint);
});

after(async () => {
  await world?.[Symbol.asyncDispose]();
  await jaeger?.[Symbol.asyncDispose]();
});

for (const [title, scenario] of Object.entries({
  'the question of S0 with a webhook is one connected tree': questionOfS0,
  ...TRACE_SCENARIOS,
}))
  test(`Jaeger: ${title}`, options, () => scenario(world));

/** The searches of docs/guides/observing.md: each names a service and a tag. */
const SEARCHES: [string, Record<string, string>][] = [
  ['hopline-ingress', { 'hopline.correlation.id': 'order-42' }],
  ['hopline-relay', { 'a2a.task.state': 'failed' }],
  ['hopline-sub-agent', { error: 'true' }],
  ['hopline-sub-agent', { 'error.type': 'http_500' }],
  ['hopline-ingress', { 'hopline.outcome': 'client_gone' }],
  ['hopline-relay', { 'hopline.cause': 'takeover' }],
  ['hopline-sub-agent', { 'hopline.cause': 'redelivery' }],
  ['hopline-supervisor', { 'hopline.cause': 'redelivery' }],
];

test('Jaeger: every search of the guide finds a trace, and a task is found in each of its services', options, async () => {
  for (const [service, tags] of SEARCHES)
    assert.ok((await jaeger.find(service, tags)).length > 0, `${service} ${JSON.stringify(tags)}`);
  const failed = await jaeger.find('hopline-relay', { 'a2a.task.state': 'failed' });
  const taskId = String(failed.find(({ attributes }) => attributes['a2a.task.state'] === 'failed')?.attributes['a2a.task.id']);
  for (const service of ['hopline-ingress', 'hopline-relay', 'hopline-supervisor', 'hopline-sub-agent']) {
    const found = await jaeger.find(service, { 'a2a.task.id': taskId });
    assert.equal(new Set(found.map(({ traceId }) => traceId)).size, 1, service);
  }
});
