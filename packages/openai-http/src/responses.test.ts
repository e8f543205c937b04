import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { call, openRig, type Rig, sendParams, userMessage } from '@hopline/a2a-http/test-kit';
import { openAIFront } from './openai-front.ts';

const openFor = (t: TestContext) => openRig(t, { fronts: [openAIFront({ agents: () => [] })] });

// biome-ignore lint/suspicious/noExplicitAny: a test reads what it expects, and fails where it is not there.
type Any = any;

const post = (rig: Rig, path: string, body: object, headers: Record<string, string> = {}) =>
  fetch(`${rig.url}/v1/${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify({ model: 'hopline', ...body }),
  });
const respond = (rig: Rig, input: string, more: object = {}, headers: Record<string, string> = {}) =>
  post(rig, 'responses', { input, ...more }, headers);
const chat = (rig: Rig, content: string, more: object = {}) =>
  post(rig, 'chat/completions', { messages: [{ role: 'user', content }], ...more });
const bodyOf = async (response: Response): Promise<Any> => response.json();
const textOf = ({ output }: Any): string =>
  output.flatMap(({ content = [] }: Any) => content.map(({ text }: Any) => text)).join('');

/** The agent asks in its first turns, and answers in the others when `go` is called. */
function asks(rig: Rig, turnsThatAsk = 1): () => void {
  const { relay } = rig;
  const gone = Promise.withResolvers<void>();
  relay.onClient = async (taskId, { turn }) => {
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
  return gone.resolve;
}

const taskIdOf = (responseId: string) => responseId.replace(/^resp_/, '').replace(/\.\d+$/, '');

async function assertAnswered(response: Response): Promise<void> {
  assert.deepEqual([response.status, response.headers.get('x-should-retry')], [409, 'false']);
  const { error } = await bodyOf(response);
  assert.deepEqual(
    [error.type, error.code, error.param],
    ['invalid_request_error', 'previous_response_answered', 'previous_response_id'],
  );
}

test('the second of two answers to one question is a conflict, and nothing of it is stored', async t => {
  const rig = await openFor(t);
  const go = asks(rig);
  const { id } = await bodyOf(await respond(rig, 'paint'));
  const answer = (more: object = {}) => respond(rig, 'blue', { previous_response_id: id, ...more }, { 'idempotency-key': 'k' });
  const first = await bodyOf(await answer({ background: true }));
  assert.deepEqual([first.id, first.status], [`${id}.2`, 'in_progress']);
  await assertAnswered(await respond(rig, 'red', { previous_response_id: id }));
  assert.equal(rig.relay.aggregate(taskIdOf(id)).turn, 2);
  // A client that lost the response sends the same request again.
  assert.equal((await bodyOf(await answer({ background: true }))).id, first.id);
  go();
  const last = await (await fetch(`${rig.url}/v1/responses/${first.id}?stream=true`)).text();
  assert.match(last, /event: response.completed/);
});

test('one of two answers at the same time is a conflict', async t => {
  const rig = await openFor(t);
  const go = asks(rig);
  const { id } = await bodyOf(await respond(rig, 'paint'));
  const answers = await Promise.all(
    ['blue', 'red'].map(input => respond(rig, input, { previous_response_id: id, background: true })),
  );
  assert.deepEqual(answers.map(({ status }) => status).sort(), [200, 409]);
  for (const response of answers) if (response.status === 409) await assertAnswered(response);
  go();
});

test('an answer is for the question of its previous response, not for a later one', async t => {
  const rig = await openFor(t);
  const go = asks(rig, 2);
  go();
  const { id: first } = await bodyOf(await respond(rig, 'paint'));
  const { id: second } = await bodyOf(await respond(rig, 'the wall', { previous_response_id: first }));
  assert.equal(second, `${first}.2`);
  await assertAnswered(await respond(rig, 'the roof', { previous_response_id: first }));
  const unknown = await respond(rig, 'the roof', { previous_response_id: `${first}.3` });
  assert.deepEqual([unknown.status, (await bodyOf(unknown)).error.code], [404, 'previous_response_not_found']);
  const last = await bodyOf(await respond(rig, 'blue', { previous_response_id: second }));
  assert.deepEqual([last.id, last.status, textOf(last)], [`${first}.3`, 'completed', 'Blue it is.']);
});

test('a message to the working task does not change the turn of a later answer', async t => {
  const rig = await openFor(t);
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
  const asking = respond(rig, 'paint');
  const steering = userMessage('faster', { taskId: await working.promise });
  assert.equal((await call(rig, 'send', sendParams(steering, '1.0', { blocking: false }))).error, undefined);
  const { id } = await bodyOf(await asking);
  const answered = await bodyOf(await respond(rig, 'blue', { previous_response_id: id }));
  assert.deepEqual([answered.id, answered.status, textOf(answered)], [`${id}.2`, 'completed', 'Blue it is.']);
});

test('a response whose turn is still running has no successor', async t => {
  const rig = await openFor(t);
  const { id } = await bodyOf(await respond(rig, 'paint', { background: true }));
  const early = await respond(rig, 'blue', { previous_response_id: id });
  assert.deepEqual([early.status, (await bodyOf(early)).error.code], [400, 'previous_response_in_progress']);
});

/** Requests that wait for their answer when the server begins to shut down. */
async function drained(
  t: TestContext,
  hasBegun: boolean,
): Promise<{ response: Response; completion: Response; taskIds: string[] }> {
  const rig = await openFor(t);
  const { relay } = rig;
  const taskIds: string[] = [];
  const waiting = Promise.withResolvers<void>();
  const add = (taskId: string) => {
    if (taskIds.push(taskId) === 2) waiting.resolve();
  };
  const { inputs } = rig.log;
  const append = inputs.append.bind(inputs);
  inputs.append = async (taskId, ...more) => {
    const stored = await append(taskId, ...more);
    if (!hasBegun) add(taskId);
    return stored;
  };
  relay.running = hasBegun;
  relay.onClient = async taskId => {
    await relay.publish(taskId, { kind: 'status', state: 'TASK_STATE_WORKING' });
    await relay.openArtifact(taskId, 'l1');
    await relay.text(taskId, 'l1', 'Half of the answer');
    add(taskId);
  };
  const answers = [respond(rig, 'hi'), chat(rig, 'hi')];
  await waiting.promise;
  if (hasBegun) {
    // Viewers of one server get an event at the same time.
    for (const id of taskIds) {
      const partial = await bodyOf(await fetch(`${rig.url}/v1/responses/resp_${id}`));
      assert.equal(partial.status, 'in_progress');
    }
  }
  await rig.close();
  const [response, completion] = await Promise.all(answers);
  return { response: response!, completion: completion!, taskIds };
}

test('a request whose message is stored is not repeated when the server shuts down', async t => {
  const { response, completion, taskIds } = await drained(t, true);
  for (const answer of [response, completion])
    assert.deepEqual([answer.status, answer.headers.get('x-should-retry')], [503, 'false']);
  const [{ error }, { error: chatError }] = [await bodyOf(response), await bodyOf(completion)];
  assert.deepEqual([error.code, chatError.code], ['shutdown', 'shutdown']);
  const [, named = ''] = /^this server is shutting down; retrieve the response resp_(\S+)$/.exec(error.message) ?? [];
  assert.ok(taskIds.includes(named), error.message);
});

test('a request whose task has no event yet is not repeated either', async t => {
  const { response, completion } = await drained(t, false);
  for (const answer of [response, completion]) {
    assert.deepEqual([answer.status, answer.headers.get('x-should-retry')], [503, 'false']);
    assert.equal((await bodyOf(answer)).error.code, 'shutdown');
  }
});

test('an answer to a question is not repeated once it is accepted, at whatever step the server shuts down', async t => {
  const rig = await openFor(t);
  asks(rig);
  const { id } = await bodyOf(await respond(rig, 'paint'));
  const accepted = Promise.withResolvers<void>();
  const { onClient } = rig.relay;
  rig.relay.onClient = (taskId, aggregate) => {
    accepted.resolve();
    return onClient(taskId, aggregate);
  };
  const answer = respond(rig, 'blue', { previous_response_id: id });
  await accepted.promise;
  await rig.close();
  const response = await answer;
  assert.deepEqual([response.status, response.headers.get('x-should-retry')], [503, 'false']);
});
