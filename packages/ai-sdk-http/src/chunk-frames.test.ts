import assert from 'node:assert/strict';
import { test } from 'node:test';
import { A2AError, type Task } from '@hopline/a2a';
import { EncodedSink } from '@hopline/a2a-http/encoded-sink';
import { chunkFrames } from './chunk-frames.ts';

/** The frames and the end that a sink produces for the stream of events below it. */
function opened() {
  const log: string[] = [];
  const sse = {
    closed: false,
    addFrames: (frames: string) => void log.push(...frames.split('\n\n').filter(frame => frame !== '')),
    flush: () => void log.push('flush'),
    flushAll: async () => true,
    end: () => void log.push('end'),
    cut: () => void log.push('cut'),
  };
  return {
    log,
    sink: new EncodedSink(sse as unknown as ConstructorParameters<typeof EncodedSink>[0], chunkFrames({ messageId: 'm' })),
  };
}

const task = (state: Task['status']['state']): Task => ({ id: 't', contextId: 'c', status: { state } });

test('a stream that fails ends with an error and [DONE]', () => {
  const { log, sink } = opened();
  sink.fail(new A2AError('UNAVAILABLE', { detail: 'the log is away' }));
  assert.match(log[0]!, /^data: \{"type":"error","errorText":".*the log is away.*"\}$/);
  assert.deepEqual(log.slice(1), ['data: [DONE]', 'end']);
});

test('a server that drains breaks the connection, because a client takes a stream that ends for a whole answer', () => {
  const { log, sink } = opened();
  sink.drain();
  assert.deepEqual(log, ['cut']);
});

test('a question ends the stream, although a subscription of A2A stays open', async () => {
  const { log, sink } = opened();
  sink.addSnapshot(task('TASK_STATE_WORKING'), '1.1', 1);
  sink.flush();
  assert.equal(log.at(-1), 'flush');
  sink.addSnapshot(task('TASK_STATE_INPUT_REQUIRED'), '2.2', 2);
  await sink.flushAll(1_000);
  assert.deepEqual(log.slice(-2), ['data: [DONE]', 'end']);
});
