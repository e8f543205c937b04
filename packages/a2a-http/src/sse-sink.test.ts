import assert from 'node:assert/strict';
import { once } from 'node:events';
import { get, type IncomingMessage } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { type TestContext, test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { DIALECTS, type Task } from '@hopline/a2a';
import { testBothWays } from '@hopline/a2a/test-kit';
import fc from 'fast-check';
import fastify, { type FastifyReply } from 'fastify';
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

/** Everything at which `str.splitlines` of Python ends a line. */
const LINE_ENDS = [...'\n\r\u000b\u000c\u001c\u001d\u001e\u0085\u2028\u2029'];
const SEPARATED = LINE_ENDS.join('é');

test('no character of a text ends a line of the stream, also for clients that split it as Python does', async t => {
  const rig = await openRig(t);
  const asking = await open(rig, 'stream', sendParams(userMessage(SEPARATED)), { id: SEPARATED });
  const [created] = (await asking.take(1)) as [Frame];
  const taskId: string = created.rpc.result.task.id;
  await rig.relay.openArtifact(taskId, 'l');
  await rig.relay.text(taskId, 'l', SEPARATED);
  const viewer = await open(rig, 'subscribe', { id: taskId }, { id: SEPARATED });
  for (const [{ data, rpc }] of [[created], await asking.take(1), await viewer.take(1)] as [Frame][]) {
    assert.deepEqual(
      LINE_ENDS.filter(character => data.includes(character)),
      [],
    );
    assert.equal(rpc.id, SEPARATED);
    assert(JSON.stringify(rpc.result).includes(JSON.stringify(SEPARATED)));
  }
});

const OK = ': ok\n\n';
const STALL_MS = 30_000;
const DIALECT = DIALECTS['1.0'];

function sinkOf(reply: FastifyReply): SseSink {
  const framing = { before: '', after: '', failure: () => ({}) };
  return new SseSink(reply, DIALECT, { framing, extensions: [], stallMs: STALL_MS });
}

/** The request of a stream whose head has been written. */
async function requestOfStream(t: TestContext): Promise<IncomingMessage> {
  const app = fastify();
  t.after(() => app.close());
  const opened = Promise.withResolvers<IncomingMessage>();
  app.get('/', (request, reply) => {
    const sink = sinkOf(reply);
    assert.equal(request.headers.authorization, 'Bearer x');
    sink.open();
    opened.resolve(request.raw);
    sink.end();
  });
  const url = await app.listen({ host: '127.0.0.1', port: 0 });
  const response = await fetch(url, { headers: { authorization: 'Bearer x' } });
  assert.equal(await response.text(), OK);
  return opened.promise;
}

test('an open stream does not keep the headers of its request', async t => {
  const { headers, rawHeaders } = await requestOfStream(t);
  assert.deepEqual([headers, rawHeaders], [{}, []]);
});

/** Starts a server whose responses are open streams, collected in the order of their requests. Returns its port. */
async function serve(t: TestContext, onSink: (sink: SseSink, index: number) => Promise<void>): Promise<number> {
  const app = fastify({ forceCloseConnections: true });
  t.after(() => app.close());
  let count = 0;
  app.get('/', (_request, reply) => {
    const sink = sinkOf(reply);
    sink.open();
    void onSink(sink, count++);
  });
  await app.listen({ host: '127.0.0.1', port: 0 });
  return (app.server.address() as AddressInfo).port;
}

/** A short frame, and the sink that sends it. */
const gap = (from: number) => `event: gap\ndata: {"missing":{"from":${from},"to":${from}}}\n\n`;
function sendGap(sink: SseSink, from: number): void {
  sink.addGap({ from, to: from });
  sink.flush();
}

const taskOf = (text: string): Task => ({
  id: 't',
  contextId: 'c',
  status: { state: 'TASK_STATE_WORKING' },
  artifacts: [{ artifactId: 'a', parts: [{ text }] }],
});
const snapshot = (task: Task) =>
  DIALECT.encodeSnapshot(task)
    .map((result, index, all) => `${index === all.length - 1 ? 'id: 1.1\n' : ''}data: ${DIALECT.frameText(result)}\n\n`)
    .join('');

async function bodyOf(port: number): Promise<string> {
  const [response] = (await once(get({ port, host: '127.0.0.1' }), 'response')) as [NodeJS.ReadableStream];
  response.setEncoding('utf8');
  let text = '';
  for await (const chunk of response) text += chunk;
  return text;
}

/** Everything that a server sends in answer to these bytes, until it closes the connection or `isOver` returns true. */
async function exchange(port: number, bytes: string, isOver: (text: string) => boolean): Promise<string> {
  const socket = connect(port, '127.0.0.1');
  socket.setEncoding('utf8');
  socket.write(bytes);
  let text = '';
  for await (const chunk of socket) {
    text += chunk;
    if (isOver(text)) break;
  }
  return text;
}

/** For each turn of the event loop, the indexes of the streams that send that turn's frame. */
const turns = fc.array(fc.subarray([0, 1, 2]), { minLength: 1, maxLength: 6 });

testBothWays('streams that send equal and different frames in one turn get their own frames, whole and in order', async t => {
  let streams: SseSink[] = [];
  let all = Promise.withResolvers<void>();
  const port = await serve(t, async sink => {
    if (streams.push(sink) === 3) all.resolve();
  });
  await fc.assert(
    fc.asyncProperty(turns, fc.boolean(), async (sent, equal) => {
      streams = [];
      all = Promise.withResolvers();
      const bodies = Promise.all([0, 1, 2].map(() => bodyOf(port)));
      await all.promise;
      const expected = [0, 1, 2].map(() => OK);
      for (const [turn, senders] of sent.entries()) {
        await nextTurn();
        for (const index of senders) {
          const from = equal ? turn : 10 * turn + index;
          sendGap(streams[index]!, from);
          expected[index] += gap(from);
        }
      }
      for (const stream of streams) stream.end();
      assert.deepEqual((await bodies).toSorted(), expected.toSorted());
    }),
    { numRuns: 30 },
  );
});

testBothWays(
  'flushed frames arrive once and in order, in the turn of the head and later, beside a large snapshot and at the end',
  async t => {
    const [short, large] = [taskOf('é'), taskOf('“large” '.repeat(400_000))];
    const port = await serve(t, async sink => {
      sendGap(sink, 1);
      sendGap(sink, 2);
      await nextTurn();
      sink.addSnapshot(short, '1.1', 1);
      sink.flush();
      sendGap(sink, 3);
      await nextTurn();
      sendGap(sink, 4);
      sink.addSnapshot(large, '1.1', 1);
      let isSending = true;
      const sending = sink.flushAll(STALL_MS).finally(() => (isSending = false));
      // This frame is dropped while the snapshot is being written.
      for (; isSending; await nextTurn()) sendGap(sink, 99);
      assert.equal(await sending, true);
      sendGap(sink, 5);
      sink.addGap({ from: 6, to: 6 });
      sink.end();
      sendGap(sink, 100);
    });
    const body = await bodyOf(port);
    const expected = `${OK}${gap(1)}${gap(2)}${snapshot(short)}${gap(3)}${gap(4)}${snapshot(large)}${gap(5)}${gap(6)}`;
    assert.ok(body === expected, `${body.length} characters instead of ${expected.length}`);
  },
);

test('a client of HTTP/1.0 reads a stream without chunks', async t => {
  const port = await serve(t, async sink => {
    await nextTurn();
    sendGap(sink, 1);
    await nextTurn();
    sink.addGap({ from: 2, to: 2 });
    sink.end();
  });
  const text = await exchange(port, 'GET / HTTP/1.0\r\nhost: x\r\n\r\n', () => false);
  assert.equal(text.split('\r\n\r\n')[1], `${OK}${gap(1)}${gap(2)}`);
});

testBothWays('the stream of a pipelined request waits for the response ahead of it', async t => {
  const [first, second] = [Promise.withResolvers<SseSink>(), Promise.withResolvers<SseSink>()];
  const port = await serve(t, async (sink, index) => [first, second][index]!.resolve(sink));
  void Promise.all([first.promise, second.promise]).then(async ([ahead, behind]) => {
    await nextTurn();
    sendGap(behind, 21);
    sendGap(ahead, 11);
    await nextTurn();
    ahead.addGap({ from: 12, to: 12 });
    ahead.end();
    await nextTurn();
    behind.addGap({ from: 22, to: 22 });
    behind.end();
  });
  const request = 'GET / HTTP/1.1\r\nhost: x\r\n\r\n';
  const text = await exchange(port, request + request, all => all.split('\r\n0\r\n\r\n').length === 3);
  const bodies = text.split('HTTP/1.1 200 OK').slice(1);
  const contents = bodies.map(body => body.slice(body.indexOf('\r\n\r\n') + 4).replaceAll(/(^|\r\n)[0-9a-f]+\r\n/g, ''));
  assert.deepEqual(
    contents.map(content => content.replaceAll('\r\n', '')),
    [`${OK}${gap(11)}${gap(12)}`, `${OK}${gap(21)}${gap(22)}`],
  );
});
