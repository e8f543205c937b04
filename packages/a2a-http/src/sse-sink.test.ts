import assert from 'node:assert/strict';
import type { IncomingMessage } from 'node:http';
import { type TestContext, test } from 'node:test';
import { DIALECTS } from '@hopline/a2a';
import fastify from 'fastify';
import { type Frame, open, openRig, type StreamReader, sendParams, userMessage } from './http-server.test-kit.ts';
import { SseSink } from './sse-sink.ts';

test('viewers of one event get it with the ids of their own requests, in their own dialects [S4-6]', async t => {
  const rig = await openRig(t);
  rig.relay.onClient = taskId => rig.relay.publish(taskId, { kind: 'status', state: 'TASK_STATE_WORKING' });
  const asking = await open(rig, 'stream', sendParams(userMessage('x')), { id: 'asking' });
  const [created] = (await asking.take(2)) as [Frame, Frame];
  const taskId: string = created.rpc.result.task.id;
  const ids = [7, 7, 7, 'ü', 7, 'other', 'ü'];
  const viewers: StreamReader[] = [];
  for (const [index, id] of ids.entries()) {
    const viewer = await open(rig, 'subscribe', { id: taskId }, { id, dialect: index === 1 ? '0.3' : '1.0' });
    await viewer.take(1);
    viewers.push(viewer);
  }
  await rig.relay.openArtifact(taskId, 'l');
  await rig.relay.text(taskId, 'l', 'é');
  for (const [index, viewer] of [asking, ...viewers].entries()) {
    const [{ data, rpc }] = (await viewer.take(1)) as [Frame];
    assert(data.includes('"é"'));
    assert.equal(data.includes('"kind":"artifact-update"'), index === 2);
    assert.equal(rpc.id, ['asking', ...ids][index]);
  }
});

/** The request of a stream whose head is written. */
async function requestOfStream(t: TestContext): Promise<IncomingMessage> {
  const app = fastify();
  t.after(() => app.close());
  const opened = Promise.withResolvers<IncomingMessage>();
  app.get('/', (request, reply) => {
    const framing = { before: '', after: '', failure: () => ({}) };
    const sink = new SseSink(reply, DIALECTS['1.0'], { framing, extensions: [], stallMs: 1_000 });
    assert.equal(request.headers.authorization, 'Bearer x');
    sink.open();
    opened.resolve(request.raw);
    sink.end();
  });
  const url = await app.listen({ host: '127.0.0.1', port: 0 });
  const response = await fetch(url, { headers: { authorization: 'Bearer x' } });
  assert.equal(await response.text(), ': ok\n\n');
  return opened.promise;
}

test('an open stream holds no header of its request', async t => {
  const { headers, rawHeaders } = await requestOfStream(t);
  assert.deepEqual([headers, rawHeaders], [{}, []]);
});
