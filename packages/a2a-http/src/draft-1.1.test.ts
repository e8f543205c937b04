import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { JsonObject, Message } from '@hopline/a2a';
import { DRAFT_EXTENSION_URI, draftExtension, RESUME_EXTENSION_URI, resumeExtension } from '@hopline/agent-card';
import { until } from '../../../test/kit/until.ts';
import { call, open, openRig, type Rig, sendParams, userMessage } from './http-server.test-kit.ts';
import { rest } from './rest.test-kit.ts';

const headers = { 'a2a-extensions': DRAFT_EXTENSION_URI };
const extensions = [resumeExtension, draftExtension];

/** A task that waits for input, and its generation. */
async function waiting(rig: Rig): Promise<{ id: string; contextId: string; generation: number }> {
  rig.relay.onClient = async taskId => {
    if (rig.relay.aggregate(taskId).turn === 1) await rig.relay.end(taskId, 'INPUT_REQUIRED');
  };
  const { result } = await call(rig, 'send', sendParams(userMessage('x')), { headers });
  const { id, contextId, generation } = result.task;
  assert.equal(result.task.status.state, 'TASK_STATE_INPUT_REQUIRED');
  return { id, contextId, generation: Number(generation) };
}

/** A non-blocking answer on a condition. */
function answer(taskId: string, ifGenerationMatch: unknown, message: Message = userMessage('answer', { taskId })): JsonObject {
  return { message, configuration: { returnImmediately: true, ifGenerationMatch } };
}

const mismatch = (taskId: string, expected: number, current: number) => ({
  '@type': 'type.googleapis.com/google.rpc.ErrorInfo',
  reason: 'TASK_GENERATION_MISMATCH',
  domain: 'a2a-protocol.org',
  metadata: { retryable: 'false', taskId, expectedGeneration: String(expected), currentGeneration: String(current) },
});

test('tasks and events have the members of the draft only where the client asks for them', async t => {
  const rig = await openRig(t, { extensions });
  const { id, generation } = await waiting(rig);
  const plain = (await call(rig, 'get', { id })).result;
  const shown = (await call(rig, 'get', { id }, { headers })).result;
  const { generation: counted, timeline, ...same } = shown;
  assert.deepEqual([same, counted], [plain, String(generation)]);
  assert.deepEqual(
    timeline.map((entry: JsonObject & { status?: { state: string } }) => [entry.status?.state ?? 'message', entry.generation]),
    [
      ['message', '1'],
      ['TASK_STATE_SUBMITTED', '1'],
      ['TASK_STATE_WORKING', '2'],
      ['TASK_STATE_INPUT_REQUIRED', '3'],
    ],
  );
  const short = (await call(rig, 'get', { id, timelineLength: 1 }, { headers })).result;
  assert.deepEqual(short.timeline, timeline.slice(-1));
  assert.equal('timeline' in (await rest(rig, `GET /tasks/${id}?timelineLength=0`, { headers })).body, false);
  assert.deepEqual((await rest(rig, `GET /tasks/${id}`, { headers })).body, shown);
  const listed = (await call(rig, 'list', {}, { headers })).result.tasks[0];
  const listedPlain = (await call(rig, 'list', {})).result.tasks[0];
  assert.deepEqual(listed, { ...listedPlain, generation: String(generation) });
  const canceled = (await call(rig, 'cancel', { id }, { headers })).result;
  assert.deepEqual(
    [canceled.generation, canceled.timeline.length, canceled.timeline.at(-1).status.state],
    ['4', 5, 'TASK_STATE_CANCELED'],
  );
});

test('a stream has the generations of the draft, and its snapshots have a timeline; with the resume extension it has both kinds of generations', async t => {
  const rig = await openRig(t, { extensions });
  rig.relay.onClient = taskId => rig.relay.answer(taskId, ['a', 'b']);
  const plain = await (await open(rig, 'stream', sendParams(userMessage('x')))).rest();
  const taskId = plain[0]!.rpc.result.task.id as string;
  for (const uris of [DRAFT_EXTENSION_URI, `${RESUME_EXTENSION_URI}, ${DRAFT_EXTENSION_URI}`]) {
    const asking = { headers: { 'a2a-extensions': uris, 'last-event-id': '0.0' } };
    const frames = await (await open(rig, 'subscribe', { id: taskId }, asking)).rest();
    assert.equal(frames.length, plain.length);
    for (const [index, frame] of frames.entries()) {
      const { generation, timeline, metadata, ...same } = Object.values(frame.rpc.result)[0] as JsonObject;
      assert.equal(generation, frame.id!.split('.')[0]);
      assert.equal((metadata as JsonObject | undefined)?.generation, uris.includes(RESUME_EXTENSION_URI) ? index + 1 : undefined);
      const { metadata: _none, ...bare } = Object.values(plain[index]!.rpc.result)[0] as JsonObject;
      assert.deepEqual(same, bare);
      assert.equal(Array.isArray(timeline), index === 0);
    }
  }
  const other = await waiting(rig);
  const snapshot = await open(rig, 'subscribe', { id: other.id }, { headers });
  const [first] = await snapshot.take(1);
  assert.deepEqual(first!.rpc.result.task, (await call(rig, 'get', { id: other.id }, { headers })).result);
  await snapshot.cut();
});

test('0.3 clients that ask get the timeline in their own form, because its card declares it [S4-28]', async t => {
  const rig = await openRig(t, { extensions });
  const { id } = await waiting(rig);
  const asking = { dialect: '0.3', headers: { 'x-a2a-extensions': DRAFT_EXTENSION_URI } } as const;
  const { result } = await call(rig, 'get', { id }, asking);
  assert.deepEqual(
    result.timeline.map(
      (entry: { status?: { state: string }; message?: { kind: string } }) => entry.status?.state ?? entry.message?.kind,
    ),
    ['message', 'submitted', 'working', 'input-required'],
  );
});

test('the timeline of a response has at most timelineEntriesMax entries', async t => {
  const entries = 4;
  for (const timelineEntriesMax of [entries, entries - 1]) {
    const rig = await openRig(t, { extensions, limits: { timelineEntriesMax } });
    const { id } = await waiting(rig);
    const { result } = await call(rig, 'get', { id, timelineLength: 100 }, { headers });
    assert.equal(result.timeline.length, timelineEntriesMax);
    assert.equal(result.timeline.at(-1).status.state, 'TASK_STATE_INPUT_REQUIRED');
  }
});

test('a message for an earlier generation is refused with -32010, 409 and ABORTED, and nothing is stored', async t => {
  const rig = await openRig(t, { extensions });
  const { id, generation } = await waiting(rig);
  for (const [given, expected] of [
    [generation - 1, generation - 1],
    [String(generation + 1), generation + 1],
    [0, 0],
  ] as const) {
    const details = [mismatch(id, expected, generation)];
    const message = `Task generation mismatch: expected ${expected} but current generation is ${generation}`;
    for (const method of ['send', 'stream'] as const) {
      const { error } = await call(rig, method, answer(id, given));
      assert.deepEqual(error, { code: -32010, message, data: details });
    }
    const { status, body } = await rest(rig, 'POST /message:send', { body: answer(id, given) });
    assert.deepEqual([status, body], [409, { error: { code: 409, status: 'ABORTED', message, details } }]);
  }
  assert.equal(rig.relay.aggregate(id).turn, 1);
  const fresh = await call(rig, 'send', { message: userMessage('new'), configuration: { ifGenerationMatch: 9 } });
  assert.equal(fresh.result.task.status.state, 'TASK_STATE_INPUT_REQUIRED', 'a new task ignores the condition');
});

test('a message for the current generation of its task is accepted once; its retry is answered like the first try', async t => {
  const rig = await openRig(t, { extensions });
  const { id, generation } = await waiting(rig);
  const params = answer(id, generation);
  for (let tries = 0; tries < 2; tries += 1) {
    const { result } = await call(rig, 'send', params);
    assert.equal(result.task.status.state, 'TASK_STATE_WORKING');
  }
  assert.equal(rig.relay.aggregate(id).turn, 2);
  const { error } = await call(rig, 'send', answer(id, generation));
  assert.equal(error?.code, -32010);
  const ended = await call(rig, 'cancel', { id });
  assert.equal(ended.result.status.state, 'TASK_STATE_CANCELED');
  assert.equal((await call(rig, 'send', answer(id, generation))).error?.code, -32010);
  assert.equal((await call(rig, 'send', answer(id, rig.relay.aggregate(id).generation))).error?.code, -32004);
});

test('if two servers append messages for the same generation before a relay reads them, one is accepted and one refused', async t => {
  const rig = await openRig(t, { extensions });
  const { id, generation } = await waiting(rig);
  const other = await rig.another();
  rig.relay.running = false;
  rig.relay.onClient = taskId => rig.relay.end(taskId);
  const both = [rig, other].map(server => call(server, 'send', answer(id, generation)));
  const streamed = open(other, 'stream', answer(id, generation)).then(stream => stream.rest());
  // Each server has checked the condition: the task is still at the generation of all three.
  await until(async () => (await storedMessages(rig, id)) === 4);
  rig.relay.resume();
  const answers = await Promise.all(both);
  const frames = await streamed;
  const errors = [...answers.map(({ error }) => error), frames.find(({ rpc }) => rpc.error !== undefined)?.rpc.error];
  assert.deepEqual(errors.map(error => error?.code).toSorted(), [-32010, -32010, undefined]);
  assert.equal(rig.relay.aggregate(id).turn, 2);
});

/** Messages of clients in the raw log of a task. */
async function storedMessages(rig: Rig, taskId: string): Promise<number> {
  let count = 0;
  for await (const { record } of rig.log.inputs.read(taskId)) if (record.from === 'client') count += 1;
  return count;
}

test('a long poll answers at once when the client is behind, waits while it is current, and ends with the task', async t => {
  const rig = await openRig(t, { extensions, limits: { longPollMsMax: 60_000 } });
  const { id, generation } = await waiting(rig);
  for (const behind of [0, generation - 1]) {
    const { result } = await call(rig, 'get', { id, currentGeneration: behind }, { headers });
    assert.equal(result.generation, String(generation));
  }
  const open = rig.open();
  const polls = [
    call(rig, 'get', { id, currentGeneration: generation }, { headers }).then(({ result }) => result),
    rest(rig, `GET /tasks/${id}?currentGeneration=${generation}`, { headers }).then(({ body }) => body),
  ];
  await until(() => rig.open() === open + 2);
  await call(rig, 'send', answer(id, generation));
  for (const task of await Promise.all(polls)) assert.ok(Number(task.generation) > generation);
  const now = rig.relay.aggregate(id).generation;
  const last = call(rig, 'get', { id, currentGeneration: now }, { headers });
  await until(() => rig.open() === open + 1);
  await rig.relay.openArtifact(id, 'l');
  await rig.relay.text(id, 'l', 'an artifact advances the generation too');
  assert.equal((await last).result.generation, String(now + 1));
  const ending = call(rig, 'get', { id, currentGeneration: now + 1 }, { headers });
  await rig.relay.end(id);
  assert.equal(Number((await ending).result.generation) > now + 1, true);
  const ended = rig.relay.aggregate(id).generation;
  const { result } = await call(rig, 'get', { id, currentGeneration: ended }, { headers });
  assert.deepEqual([result.generation, result.status.state], [String(ended), 'TASK_STATE_COMPLETED']);
  await until(() => rig.open() === open);
});

test('a long poll answers with the task as it is after longPollMsMax, and when the server drains', async t => {
  const rig = await openRig(t, { extensions, limits: { longPollMsMax: 50 } });
  const { id, generation } = await waiting(rig);
  const startedMs = performance.now();
  const { result } = await call(rig, 'get', { id, currentGeneration: generation }, { headers });
  assert.equal(result.generation, String(generation));
  // Timers may fire up to a millisecond early.
  assert.ok(performance.now() - startedMs >= 49);
  const patient = await openRig(t, { extensions, limits: { longPollMsMax: 60_000 } });
  const other = await waiting(patient);
  const open = patient.open();
  const poll = call(patient, 'get', { id: other.id, currentGeneration: other.generation }, { headers });
  await until(() => patient.open() === open + 1);
  const closing = patient.close();
  assert.equal((await poll).result.generation, String(other.generation));
  await closing;
});

test('a long poll of an unknown task is TASK_NOT_FOUND', async t => {
  const rig = await openRig(t, { extensions });
  const { error } = await call(rig, 'get', { id: crypto.randomUUID(), currentGeneration: 1 });
  assert.equal(error?.code, -32001);
});
