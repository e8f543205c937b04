import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, suite, test } from 'node:test';
import { Fold, type Message, type StreamResponse, type Task } from '@hopline/a2a';
import { createReplayServer, type ReplayServer } from '@hopline/replay-server';
import { record } from '@hopline/replay-server/test-kit';
import { type StoredScenario, supervisor } from '@hopline/task/test-kit';
import { createLogger } from '@hopline/telemetry';
import { collect } from '../kit/collect.ts';
import { DRIVERS, type Driven, type Driver, errorName, GRPC_DRIVERS } from './client-drivers.ts';

/** Third-party clients work with recorded tasks as with a cluster. */
const TOKENS = ['Grüße ', 'ha', 'ha', ' 👩‍🚀', '\n', '  done ✅'];
const TEXT = TOKENS.join('');
const NAME = 'streaming_result';
const HOUR_MS = 3_600_000;

let server: ReplayServer;
let url: string;

async function answer(task: StoredScenario, tokens: readonly string[], turn = 1): Promise<void> {
  const from = supervisor(1, turn);
  const lane = `${turn}/answer`;
  await task.open(from, lane, { name: NAME }).store();
  for (const [index, text] of tokens.entries()) await task.text(from, lane, text, index === tokens.length - 1).store();
}

const complete = (task: StoredScenario, turn = 1) =>
  task.input(supervisor(1, turn), { kind: 'status', state: 'TASK_STATE_COMPLETED' }).store();

const work = (task: StoredScenario) => task.input(supervisor(), { kind: 'status', state: 'TASK_STATE_WORKING' }).store();

before(async () => {
  const talk = record('talk', async task => {
    await task.message('talk').store();
    await work(task);
    await answer(task, TOKENS);
    await complete(task);
  });
  const ask = record('ask', async task => {
    await task.message('ask').store();
    const message = { messageId: 'q', role: 'ROLE_AGENT' as const, parts: [{ text: 'Which one?' }] };
    await task.input(supervisor(), { kind: 'status', state: 'TASK_STATE_INPUT_REQUIRED', message }).store();
    await task.message('the second', 'm2').store();
    await answer(task, ['You sent ', 'the second'], 2);
    await complete(task, 2);
  });
  const hang = record('work', async (task, clock) => {
    await task.message('work').store();
    await work(task);
    await answer(task, ['thinking']);
    clock.at += HOUR_MS;
    await complete(task);
  });
  const recordings = (await Promise.all([talk, ask, hang])).flat();
  const logger = createLogger({ service: 'test', instance: 'serve', level: 'silent' });
  const hosts = { refusal: '', allows: () => true, allowsRequest: () => true };
  server = await createReplayServer({ recordings, match: 'text', pace: 1, faults: {}, version: '0', logger, hosts });
  const listening = await server.listen('127.0.0.1', 0, 0);
  // In the form of a cluster's address, which the drivers expect.
  url = listening.url.replace(/\/$/, '');
});

after(() => server?.close());

const message = (text: string, more: Partial<Message> = {}): Message => ({
  messageId: randomUUID(),
  role: 'ROLE_USER',
  parts: [{ text }],
  ...more,
});

function textOf({ artifacts = [] }: Task): string {
  return artifacts.flatMap(({ parts }) => parts.map(part => part.text ?? '')).join('');
}

function folded(events: readonly StreamResponse[]): Fold {
  const fold = new Fold();
  for (const event of events) fold.add(event);
  assert.deepEqual(fold.violations, []);
  return fold;
}

function taskOf([first]: readonly StreamResponse[]): Task {
  assert(first !== undefined && 'task' in first, 'the stream begins with the task');
  return first.task;
}

const stateOf = (event: StreamResponse | undefined) =>
  event !== undefined && 'statusUpdate' in event ? event.statusUpdate.status.state : undefined;

for (const driver of [...DRIVERS, ...GRPC_DRIVERS]) suite(driver.name, () => uses(driver));

function uses({ open, dialect }: Driver): void {
  let client: Driven;
  before(async () => {
    client = await open(url);
  });

  test('reads the card of the replay server', async () => {
    assert.equal(await client.agentName(), 'Hopline replay');
  });

  test('sends and waits, gets the task, and gets an error for an unknown task, of a recording', async () => {
    const task = await client.send(message('talk'));
    assert.deepEqual([task.status.state, textOf(task)], ['TASK_STATE_COMPLETED', TEXT]);
    const again = await client.get(task.id);
    assert.deepEqual([again.status.state, textOf(again)], ['TASK_STATE_COMPLETED', TEXT]);
    assert.equal(textOf(await client.get('talk')), TEXT);
    await assert.rejects(client.get('no-such-task'), error => errorName(error) === 'TaskNotFound');
  });

  test('streams the recorded task, its exact text, and a single end', async () => {
    const events = await collect(client.stream(message('talk')));
    assert.equal(folded(events).textOf(NAME), TEXT);
    assert.equal(stateOf(events.at(-1)), 'TASK_STATE_COMPLETED');
    assert.notEqual(taskOf(events).id, 'talk');
  });

  test('gets a recorded question, and answers on the same task', async () => {
    const question = await client.send(message('ask'));
    assert.equal(question.status.message?.parts[0]?.text, 'Which one?');
    const events = await collect(client.stream(message('the second', { taskId: question.id, contextId: question.contextId })));
    assert.equal(taskOf(events).id, question.id);
    assert.equal(folded(events).textOf(NAME), 'You sent the second');
    assert.equal(stateOf(events.at(-1)), 'TASK_STATE_COMPLETED');
  });

  test('cancels a recording in progress, and a second cancel is rejected', async () => {
    const stream = client.stream(message('work'))[Symbol.asyncIterator]();
    const events = [(await stream.next()).value as StreamResponse];
    const { id } = taskOf(events);
    while (!('artifactUpdate' in events.at(-1)!)) events.push((await stream.next()).value as StreamResponse);
    assert.equal((await client.cancel(id)).status.state, 'TASK_STATE_CANCELED');
    for (let step = await stream.next(); !step.done; step = await stream.next()) events.push(step.value);
    assert.equal(stateOf(events.at(-1)), 'TASK_STATE_CANCELED');
    await assert.rejects(client.cancel(id), error => errorName(error) === 'TaskNotCancelable');
  });

  test('resubscribes to a recorded task that has ended, and to an unknown one', async () => {
    if (dialect === '1.0')
      await assert.rejects(collect(client.follow('talk')), error => errorName(error) === 'UnsupportedOperation');
    else assert.equal(textOf(taskOf(await collect(client.follow('talk')))), TEXT);
    await assert.rejects(collect(client.follow('no-such-task')), /Task not found/);
  });
}
