import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { JAEGER_ABSENT, Jaeger } from '../support/telemetry/jaeger.ts';
import { questionOfS0, TRACE_SCENARIOS } from '../support/telemetry/trace-scenarios.ts';
import { startTraceWorld, type TraceWorld } from '../support/telemetry/trace-world.ts';

/** The trees of test/e2e/trace-trees.test.ts, from a real Jaeger: what it stores and shows is what was exported. */

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

test('Jaeger: a search for a task finds its trace in every service of it', options, async () => {
  const services = await jaeger.services();
  assert.deepEqual(services.toSorted(), [
    'hopline-ingress',
    'hopline-notifier',
    'hopline-relay',
    'hopline-sub-agent',
    'hopline-supervisor',
  ]);
  const failed = await jaeger.find('hopline-relay', { 'a2a.task.state': 'failed' });
  const taskId = String(failed.find(({ attributes }) => attributes['a2a.task.state'] === 'failed')?.attributes['a2a.task.id']);
  for (const service of services.filter(name => name !== 'hopline-notifier')) {
    const found = await jaeger.find(service, { 'a2a.task.id': taskId });
    assert.deepEqual(new Set(found.map(({ traceId }) => traceId)).size, 1, service);
  }
});
