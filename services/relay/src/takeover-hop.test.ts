import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createMemoryLog } from '@hopline/log/memory';
import { startTelemetry } from '@hopline/telemetry';
import { kill, relayOn, sendMessage, storedWhen, writerOf } from './relay.test-kit.ts';

test('the hop takeover lasts from the first input that a dead relay left to the first record of the next one', async t => {
  const telemetry = await startTelemetry({ service: 'relay', instance: 'relay-2', version: '0', env: {} });
  t.after(() => telemetry.shutdown());
  const log = createMemoryLog();
  const processLog = log.another();
  const dead = await relayOn(processLog);
  t.after(() => dead.stop().catch(() => {}));
  await sendMessage(log);
  const writer = writerOf(log);
  writer.add({ kind: 'open', lane: 'a', artifact: { name: 'response' } });
  writer.token('a', 'x');
  await writer.flush();
  await storedWhen(log, ({ aggregate }) => aggregate.lanes.a?.n === 2);
  await kill(processLog, dead);
  const leftAt = Date.now();
  writer.token('a', 'y');
  await writer.flush();
  const relay = await relayOn(log.another(), { metrics: telemetry.metrics });
  t.after(() => relay.stop());
  const { record } = await storedWhen(log, ({ takeover }) => takeover !== undefined);
  const text = await telemetry.metricsText();
  const of = (name: string) =>
    Number(new RegExp(`^hopline_hop_duration_seconds_${name}\\{.*hop="takeover"\\} (\\S+)$`, 'm').exec(text)?.[1]);
  assert.equal(of('count'), 1);
  assert.ok(of('sum') > 0 && of('sum') * 1_000 <= record.aggregate.at - leftAt + 1, `${of('sum')} s`);
});
