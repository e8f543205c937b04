import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { A2AError, DIALECTS, sseFrame } from '@hopline/a2a';
import { runOperation } from '@hopline/a2a-server';
import { untilTick } from '../../../test/kit/until.ts';
import { AnswerSink } from './answer-sink.ts';
import { EncodedSink, type FrameEncoder } from './encoded-sink.ts';
import type { Front } from './front.ts';
import { openRig, sendParams, userMessage } from './http-server.test-kit.ts';
import type { SinkItem } from './item-sink.ts';
import { operationRequest } from './operation-request.ts';
import { encodeJson } from './rest/rest-request.ts';

const wordOf = (item: SinkItem): string => {
  if ('gap' in item) return 'gap';
  const { event } = item;
  if ('statusUpdate' in event) return event.statusUpdate.status.state;
  return Object.keys(event)[0]!;
};

/** Words of the events until the one that ends the stream. */
function words(endsAt: string): FrameEncoder & { newest: boolean[] } {
  const newest: boolean[] = [];
  let ended = false;
  return {
    newest,
    get ended() {
      return ended;
    },
    add: (item, isNewest) => {
      newest.push(isNewest);
      ended = wordOf(item) === endsAt;
      return sseFrame({ data: wordOf(item) });
    },
    end: () => sseFrame({ data: 'end' }),
    fail: error => sseFrame({ data: error.code }),
  };
}

const understood = (params: unknown) => ({
  ...{ binding: 'http' as const, dialect: DIALECTS['1.0'], params, encode: encodeJson },
  framing: { before: '', after: '', failure: () => ({}) },
});

/** `POST /words/{endsAt}` streams words; `POST /count/{endsAt}` answers with their number, or with how the reading ended. */
const wordsFront: Front = (scope, server) => {
  const params = () => sendParams(userMessage('hello'));
  scope.post<{ Params: { endsAt: string } }>('/words/:endsAt', async (request, reply) => {
    const wrapSink = (sse: ConstructorParameters<typeof EncodedSink>[0]) => new EncodedSink(sse, words(request.params.endsAt));
    await runOperation(server, 'stream', operationRequest(server, request, reply, { ...understood(params()), wrapSink }));
  });
  scope.post<{ Params: { endsAt: string } }>('/count/:endsAt', async (request, reply) => {
    let count = 0;
    const sink = new AnswerSink(reply.raw, {
      add: item => {
        count += 1;
        return wordOf(item) === request.params.endsAt;
      },
    });
    await runOperation(server, 'stream', operationRequest(server, request, reply, { ...understood(params()), sink }));
    const ended = await sink.ended;
    return reply.send({ count, ended: ended instanceof A2AError ? ended.code : ended });
  });
};

const openFront = (t: TestContext) => openRig(t, { fronts: [wordsFront] });
const post = (url: string, path: string) =>
  fetch(`${url}${path}`, { method: 'POST', headers: { 'content-type': 'application/json' }, body: '{}' });
const framesOf = (text: string) => [...text.matchAll(/^data: (.*)$/gm)].map(([, word]) => word);

test('a front encodes the stream of a task, and may end it before the task ends', async t => {
  const rig = await openFront(t);
  rig.relay.onClient = taskId => rig.relay.answer(taskId, ['a']);
  const whole = framesOf(await (await post(rig.url, '/words/none')).text());
  assert.deepEqual([whole[0], whole.at(-2), whole.at(-1)], ['task', 'TASK_STATE_COMPLETED', 'end']);
  const part = framesOf(await (await post(rig.url, '/words/TASK_STATE_WORKING')).text());
  assert.deepEqual(part, ['task', 'TASK_STATE_WORKING', 'end']);
  const counted = await (await post(rig.url, '/count/TASK_STATE_WORKING')).json();
  assert.deepEqual(counted, { count: 2, ended: 'read' });
  const all = (await (await post(rig.url, '/count/none')).json()) as { count: number };
  assert.equal(all.count, whole.length - 1);
  await untilTick(() => rig.open() === 0);
});

test('a draining server breaks streams of fronts, and ends the reading of answers', async t => {
  const rig = await openFront(t);
  const accepted = Promise.withResolvers<void>();
  let tasks = 0;
  rig.relay.onClient = () => {
    tasks += 1;
    if (tasks === 2) accepted.resolve();
  };
  const stream = await post(rig.url, '/words/none');
  const answer = post(rig.url, '/count/none');
  await accepted.promise;
  const text = stream.text();
  const broken = assert.rejects(text, TypeError);
  await rig.close();
  await broken;
  const { ended } = (await (await answer).json()) as { ended: string };
  assert.equal(ended, 'drain');
});

test('a sink marks the last event that was stored before the stream began', () => {
  const encoder = words('none');
  const sse = { addFrames: () => {}, closed: false } as unknown as ConstructorParameters<typeof EncodedSink>[0];
  const sink = new EncodedSink(sse, encoder);
  sink.follows({ generation: 2, seq: 2, ended: false });
  const task = { id: 't', contextId: 'c', status: { state: 'TASK_STATE_WORKING' as const } };
  for (const generation of [1, 2, 3]) sink.addSnapshot(task, `${generation}.1`, generation);
  assert.deepEqual(encoder.newest, [false, true, true]);
});
