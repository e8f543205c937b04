import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { JSON_DEPTH_MAX } from '@hopline/a2a';
import { call, openRig, type Rig, sendParams, userMessage } from '@hopline/a2a-http/test-kit';
import { agUiFront } from './ag-ui-front.ts';

/** A server whose agent asks a question in its first turn, and answers in each later one when `go` is called. */
async function openAsking(t: TestContext, turnsThatAsk = 1): Promise<{ rig: Rig; go: () => void; taskId: Promise<string> }> {
  const rig = await openRig(t, { fronts: [agUiFront] });
  const { relay } = rig;
  const created = Promise.withResolvers<string>();
  const gone = Promise.withResolvers<void>();
  relay.onClient = async (taskId, { turn, state }) => {
    created.resolve(taskId);
    if (state === 'TASK_STATE_CANCELED') return;
    if (turn <= turnsThatAsk) {
      await relay.publish(taskId, { kind: 'status', state: 'TASK_STATE_WORKING' });
      return relay.end(taskId, 'INPUT_REQUIRED');
    }
    await gone.promise;
    if (relay.aggregate(taskId).turn !== turn) return;
    await relay.openArtifact(taskId, `l${turn}`, 'response');
    await relay.text(taskId, `l${turn}`, 'Blue it is.', true);
    await relay.end(taskId);
  };
  return { rig, go: gone.resolve, taskId: created.promise };
}

const input = (runId: string, more: object = {}) => ({
  ...{ threadId: 'thread', runId, messages: [{ id: 'm', role: 'user', content: 'paint' }] },
  ...more,
});
const resume = (interruptId: string, more: object = { status: 'resolved', payload: 'blue' }) => ({
  resume: [{ interruptId, ...more }],
});

async function post(rig: Rig, body: object): Promise<Response> {
  return fetch(`${rig.url}/agui`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
}

// biome-ignore lint/suspicious/noExplicitAny: a test reads what it expects, and fails where it is not there.
type Any = any;
const eventsOf = async (response: Response): Promise<Any[]> =>
  [...(await response.text()).matchAll(/^data: (.*)$/gm)].map(([, json]) => JSON.parse(json!));
const interruptOf = (events: Any[]): string => events.at(-1).outcome.interrupts[0].id;
/** The texts of the agent, whether they were stored before the stream began or not. */
const answerOf = (events: Any[]): string => {
  const stored = events.findLast(({ type }) => type === 'MESSAGES_SNAPSHOT')?.messages ?? [];
  const texts = stored.map(({ role, content }: Any) => (role === 'assistant' ? content : ''));
  return [...texts, ...events.map(({ type, delta }) => (type === 'TEXT_MESSAGE_CONTENT' ? delta : ''))].join('');
};

async function assertConflict(response: Response, taskId: string): Promise<void> {
  assert.equal(response.status, 409);
  const { error } = (await response.json()) as Any;
  assert.deepEqual([error.status, error.details[0].reason], ['ABORTED', 'TASK_GENERATION_MISMATCH']);
  assert.equal(error.details[0].metadata.taskId, taskId);
  assert.match(error.message, /the question has been answered/);
}

test('the second of two answers to one question is a conflict, and nothing of it is stored', async t => {
  const { rig, go, taskId } = await openAsking(t);
  const interrupt = interruptOf(await eventsOf(await post(rig, input('r1'))));
  const first = await post(rig, input('r2', resume(interrupt)));
  assert.equal(first.status, 200);
  const id = await taskId;
  await assertConflict(await post(rig, input('r3', resume(interrupt))), id);
  assert.equal(rig.relay.aggregate(id).turn, 2);
  // A client that lost the response sends the same run again.
  const again = await post(rig, input('r2', resume(interrupt)));
  go();
  for (const response of [first, again]) {
    const events = await eventsOf(response);
    assert.deepEqual([events[0].type, answerOf(events), events.at(-1).outcome.type], ['RUN_STARTED', 'Blue it is.', 'success']);
  }
  await assertConflict(await post(rig, input('r4', resume(interrupt))), id);
  const late = await eventsOf(await post(rig, input('r2', resume(interrupt))));
  assert.deepEqual(late.at(-1).outcome, { type: 'success' });
});

test('one of two answers at the same time is a conflict', async t => {
  const { rig, go } = await openAsking(t);
  const interrupt = interruptOf(await eventsOf(await post(rig, input('r1'))));
  const answers = await Promise.all(['r2', 'r3'].map(runId => post(rig, input(runId, resume(interrupt)))));
  assert.deepEqual(answers.map(({ status }) => status).sort(), [200, 409]);
  go();
  for (const response of answers) await response.text();
});

test('an answer applies to the question that its client saw, not to a later one', async t => {
  const { rig, go, taskId } = await openAsking(t, 2);
  const first = interruptOf(await eventsOf(await post(rig, input('r1'))));
  const second = interruptOf(await eventsOf(await post(rig, input('r2', resume(first)))));
  const id = await taskId;
  assert.deepEqual([first, second], [`${id}.1`, `${id}.2`]);
  await assertConflict(await post(rig, input('r3', resume(first))), id);
  await assertConflict(await post(rig, input('r4', resume(first, { status: 'cancelled' }))), id);
  assert.equal(rig.relay.aggregate(id).state, 'TASK_STATE_INPUT_REQUIRED');
  for (const more of [undefined, { status: 'cancelled' }]) {
    const unknown = await post(rig, input('r5', resume(`${id}.3`, more)));
    assert.equal(unknown.status, 400);
    assert.match(((await unknown.json()) as Any).error.message, /resume\[0\]\.interruptId/);
  }
  go();
  const events = await eventsOf(await post(rig, input('r6', resume(second))));
  assert.deepEqual([answerOf(events), events.at(-1).outcome.type], ['Blue it is.', 'success']);
});

test('a message to the working task does not change the turn of a later answer', async t => {
  const rig = await openRig(t, { fronts: [agUiFront] });
  const { relay } = rig;
  const working = Promise.withResolvers<string>();
  relay.onClient = async (taskId, { turn }) => {
    if (turn === 1) {
      await relay.publish(taskId, { kind: 'status', state: 'TASK_STATE_WORKING' });
      return working.resolve(taskId);
    }
    if (turn === 2) return relay.end(taskId, 'INPUT_REQUIRED');
    await relay.openArtifact(taskId, 'l3', 'response');
    await relay.text(taskId, 'l3', 'Blue it is.', true);
    await relay.end(taskId);
  };
  const run = await post(rig, input('r1'));
  const steering = userMessage('faster', { taskId: await working.promise });
  const { error } = await call(rig, 'send', sendParams(steering, '1.0', { blocking: false }));
  assert.equal(error, undefined);
  const interrupt = interruptOf(await eventsOf(run));
  const events = await eventsOf(await post(rig, input('r2', resume(interrupt))));
  assert.deepEqual([answerOf(events), events.at(-1).outcome?.type], ['Blue it is.', 'success']);
});

test('a question that the user declines to answer cancels its task, and a repetition gets the same answer', async t => {
  const { rig, taskId } = await openAsking(t);
  const interrupt = interruptOf(await eventsOf(await post(rig, input('r1'))));
  for (const runId of ['r2', 'r3']) {
    const events = await eventsOf(await post(rig, input(runId, resume(interrupt, { status: 'cancelled' }))));
    assert.deepEqual(events.at(-1).outcome, { type: 'cancelled' });
  }
  assert.equal(rig.relay.aggregate(await taskId).state, 'TASK_STATE_CANCELED');
});

test('an answer may nest as deep as a record of the log; a deeper one, or a deeper body, is refused, and nothing of it is stored', async t => {
  const { rig, go } = await openAsking(t);
  const interrupt = interruptOf(await eventsOf(await post(rig, input('r1'))));
  const stored = (await rig.log.inputs.extent()).lastSeq;
  const nested = (levels: number) => JSON.parse('['.repeat(levels) + ']'.repeat(levels));
  // In the record four levels are around the data: the input, the message, its parts and the part.
  const payloadLevelsMax = JSON_DEPTH_MAX - 4;
  const refused: [object, RegExp][] = [
    [
      input('r2', resume(interrupt, { status: 'resolved', payload: nested(payloadLevelsMax + 1) })),
      /message must not nest deeper/,
    ],
    [input('r2', resume(interrupt, { status: 'resolved', payload: nested(payloadLevelsMax + 2) })), /body must not nest deeper/],
    [input('r3', { state: { deep: nested(JSON_DEPTH_MAX - 1) } }), /body must not nest deeper/],
  ];
  for (const [body, reason] of refused) {
    const response = await post(rig, body);
    assert.equal(response.status, 400);
    assert.match(await response.text(), reason);
  }
  assert.equal((await rig.log.inputs.extent()).lastSeq, stored);
  go();
  const answer = input('r2', resume(interrupt, { status: 'resolved', payload: nested(payloadLevelsMax) }));
  assert.equal((await eventsOf(await post(rig, answer))).at(-1).outcome.type, 'success');
});
