import assert from 'node:assert/strict';
import { test } from 'node:test';
import { until } from '../../../test/kit/until.ts';
import { call, open, openRig, sendParams, userMessage } from './http-server.test-kit.ts';

const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736';

test('a valid trace context of the caller reaches the log with its message, an invalid one does not', async t => {
  const rig = await openRig(t);
  const traces: (string | undefined)[] = [];
  const append = rig.log.inputs.append.bind(rig.log.inputs);
  rig.log.inputs.append = (taskId, record, options) => {
    traces.push(options.trace?.traceparent);
    return append(taskId, record, options);
  };
  rig.relay.onClient = taskId => rig.relay.answer(taskId, ['ok']);
  const traceparent = `00-${TRACE}-00f067aa0ba902b7-01`;
  await call(rig, 'send', sendParams(userMessage('x')), { headers: { traceparent } });
  await call(rig, 'send', sendParams(userMessage('x')), { headers: { traceparent: 'SECRET' } });
  assert.match(traces[0] ?? '', new RegExp(`^00-${TRACE}-`));
  assert.equal(traces[1], undefined);
});

test('frames and bytes are counted once per stream, latencies once per fact, for any number of viewers [S2-30]', async t => {
  const rig = await openRig(t, { role: 'agent.writer' });
  const begun = Promise.withResolvers<string>();
  rig.relay.onClient = taskId => begun.resolve(taskId);
  const first = await open(rig, 'stream', sendParams(userMessage('x')));
  const taskId = await begun.promise;
  const streams = [
    first,
    await open(rig, 'subscribe', { id: taskId }),
    await open(rig, 'subscribe', { id: taskId }, { dialect: '0.3' }),
  ];
  for (const stream of streams) await stream.take(1);
  await rig.relay.answer(taskId, ['a', 'b']);
  let characters = 0;
  for (const stream of streams) for (const frame of await stream.rest()) characters += frame.data.length;
  // Each of the two chunks is measured in three hops, at its first socket. Only the client that sent the message waits for its first text.
  assert.equal(rig.totals.hopDuration, 6);
  assert.equal(rig.totals.chunkDuration, 2);
  assert.equal(rig.totals.timeToFirstToken, 1);
  await until(() => rig.open() === 0);
  assert(rig.totals.sent! > characters);
  assert(rig.totals.received! > 0);
});
