import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { OtlpReceiver } from '../support/telemetry/otlp-receiver.ts';
import { PLANTED, questionOfS0, TRACE_SCENARIOS } from '../support/telemetry/trace-scenarios.ts';
import { startTraceWorld, type TraceWorld } from '../support/telemetry/trace-world.ts';

/** The spans of real clusters as a collector receives them. test/observe/jaeger.test.ts reads the same ones from a real Jaeger. */

const TIMEOUT_MS = 240_000;

const receiver = new OtlpReceiver();
let world: TraceWorld;

before(async () => {
  world = await startTraceWorld(receiver, await receiver.start());
});

after(async () => {
  await world?.[Symbol.asyncDispose]();
  await receiver.stop();
});

test(
  'the question of S0 with a webhook is one connected tree of few spans, one per hop in their order [S0-1 S0-34 S1-18 S4-9]',
  {
    timeout: TIMEOUT_MS,
  },
  () => questionOfS0(world),
);

for (const [title, scenario] of Object.entries(TRACE_SCENARIOS)) test(title, { timeout: TIMEOUT_MS }, () => scenario(world));

test('no span holds text of a task or a credential [S4-43]', () => {
  const all = Buffer.concat(receiver.bodies).toString('latin1');
  assert.ok(all.length > 0);
  for (const planted of PLANTED) assert.ok(!all.includes(planted), planted);
});
