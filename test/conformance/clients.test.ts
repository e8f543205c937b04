import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, suite, test } from 'node:test';
import { Fold, type Message, type StreamResponse, type Task } from '@hopline/a2a';
import { collect } from '../kit/collect.ts';
import { until } from '../kit/until.ts';
import { answer, type RemoteAgent, type Step, startRemoteAgent } from '../support/agents/remote-agent.ts';
import { Cluster } from '../support/cluster/cluster.ts';
import { DRIVERS, type Driven, type Driver, errorName, GRPC_DRIVERS } from './client-drivers.ts';

const TOKENS = ['Grüße ', 'ha', 'ha', ' 👩‍🚀', '\n', '  done ✅'];
const TEXT = TOKENS.join('');

let remote: RemoteAgent;
let cluster: Cluster;
/** Gates, by text of the message: the agent streams its answer in three pieces, one when each gate opens. */
const held = new Map<string, PromiseWithResolvers<void>[]>();

async function* inPieces(gates: readonly PromiseWithResolvers<void>[]): AsyncGenerator<Step> {
  for (const [index, gate] of gates.entries()) {
    for (const token of TOKENS.slice(2 * index, 2 * index + 2)) yield { token };
    await gate.promise;
  }
  yield* answer(TOKENS.slice(2 * gates.length));
}

function script({ text, turn }: { text: string; turn: number }): Iterable<Step> | AsyncIterable<Step> {
  const gates = held.get(text);
  if (gates !== undefined) return inPieces(gates);
  if (text === 'ask') return [{ inputRequired: 'Which one?' }];
  if (text === 'work') return [{ token: 'thinking' }, { hang: true }];
  return turn > 1 ? answer(['You sent ', text]) : answer(TOKENS);
}

before(async () => {
  remote = await startRemoteAgent({ dialect: '0.3', script });
  // The setting is that of the other files that share this cluster.
  cluster = await Cluster.shared({
    balanced: true,
    agents: [{ name: 'talker', adapter: 'a2a', url: remote.url }],
    env: { HOPLINE_PUSH: 'true' },
  });
});

after(async () => {
  for (const gate of [...held.values()].flat()) gate.resolve();
  await cluster?.[Symbol.asyncDispose]();
  await remote?.close();
});

const message = (text: string, more: Partial<Message> = {}): Message => ({
  messageId: randomUUID(),
  role: 'ROLE_USER',
  parts: [{ text }],
  ...more,
});

const NAME = 'streaming_result';

function textOf({ artifacts = [] }: Task): string {
  const texts = artifacts.filter(({ name }) => name === NAME).flatMap(({ parts }) => parts.map(part => part.text ?? ''));
  return texts.join('');
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

function stateOf(event: StreamResponse | undefined): string | undefined {
  if (event === undefined) return undefined;
  if ('task' in event) return event.task.status.state;
  return 'statusUpdate' in event ? event.statusUpdate.status.state : undefined;
}

const isText = (event: StreamResponse) => 'artifactUpdate' in event && event.artifactUpdate.artifact.name === NAME;

for (const driver of [...DRIVERS, ...GRPC_DRIVERS]) suite(driver.name, () => uses(driver));

test('consecutive requests of these clients go to alternating replicas', () => {
  const { http, grpc } = cluster.balancer!.counts;
  for (const [first, second] of [http, grpc] as [number, number][]) assert(first > 0 && Math.abs(first - second) <= 1);
});

function uses({ open, dialect }: Driver): void {
  let client: Driven;
  before(async () => {
    client = await open(cluster.url);
  });

  test('reads the card [S4-1 S3-1]', async () => {
    assert.equal(await client.agentName(), 'Hopline');
  });

  test('sends and waits, gets the task, and gets an error for an unknown task [S1-2 S3-20 S4-34]', async () => {
    const task = await client.send(message('talk'));
    assert.deepEqual([task.status.state, textOf(task)], ['TASK_STATE_COMPLETED', TEXT]);
    const again = await client.get(task.id);
    assert.deepEqual([again.status.state, textOf(again)], ['TASK_STATE_COMPLETED', TEXT]);
    await assert.rejects(client.get('no-such-task'), error => errorName(error) === 'TaskNotFound');
  });

  test("streams the task, the agent's exact text, and a single end [S0-3 S0-25 S0-36]", async () => {
    const events = await collect(client.stream(message('talk')));
    const { id, contextId } = taskOf(events);
    assert.equal(folded(events).textOf(NAME), TEXT);
    assert.equal(stateOf(events.at(-1)), 'TASK_STATE_COMPLETED');
    for (const event of events.slice(1)) {
      assert(!('task' in event || 'message' in event));
      const update = 'statusUpdate' in event ? event.statusUpdate : event.artifactUpdate;
      assert.deepEqual([update.taskId, update.contextId], [id, contextId]);
    }
  });

  test('gets a question, and answers on the same task [S3-11 S4-26 S4-27]', async () => {
    const question = await client.send(message('ask'));
    assert.equal(question.status.state, 'TASK_STATE_INPUT_REQUIRED');
    assert.equal(question.status.message?.parts[0]?.text, 'Which one?');
    const events = await collect(client.stream(message('the second', { taskId: question.id, contextId: question.contextId })));
    assert.equal(taskOf(events).id, question.id);
    assert.equal(folded(events).textOf(NAME), 'You sent the second');
    assert.equal(stateOf(events.at(-1)), 'TASK_STATE_COMPLETED');
  });

  test('cancels: the agent stops, the stream ends, and a second cancel is rejected [S3-26 S3-28 S4-35]', async () => {
    const stream = client.stream(message('work'))[Symbol.asyncIterator]();
    const events = [(await stream.next()).value as StreamResponse];
    const { id } = taskOf(events);
    while (!isText(events.at(-1)!)) events.push((await stream.next()).value as StreamResponse);
    const { taskId: remoteId } = remote.requests.findLast(({ text }) => text === 'work')!;
    const canceled = await client.cancel(id);
    assert.equal(canceled.status.state, 'TASK_STATE_CANCELED');
    for (let step = await stream.next(); !step.done; step = await stream.next()) events.push(step.value);
    assert.equal(stateOf(events.at(-1)), 'TASK_STATE_CANCELED');
    await assert.rejects(client.cancel(id), error => errorName(error) === 'TaskNotCancelable');
    const isCanceled = () => remote.requests.some(({ method, taskId }) => method === 'cancel' && taskId === remoteId);
    // Called after the response to the client.
    await until(isCanceled, 'the agent receives the cancel');
  });

  test('disconnects in mid-stream and resumes: the current task, then the rest, without loss or repetition [S3-31]', async () => {
    const text = `hold ${randomUUID()}`;
    const gates = [Promise.withResolvers<void>(), Promise.withResolvers<void>()] as const;
    held.set(text, [...gates]);
    const seen: StreamResponse[] = [];
    for await (const event of client.stream(message(text))) {
      seen.push(event);
      // Disconnects after an appended chunk, because a repeated first chunk of an artifact would not show.
      if (isText(event) && seen.filter(isText).length > 1) break;
      if (isText(event)) gates[0].resolve();
    }
    const { id } = taskOf(seen);
    const back = client.follow(id)[Symbol.asyncIterator]();
    const events = [(await back.next()).value as StreamResponse];
    assert.equal(taskOf(events).id, id);
    gates[1].resolve();
    for (let step = await back.next(); !step.done; step = await back.next()) events.push(step.value);
    assert.equal(folded(events).textOf(NAME), TEXT);
    assert.equal(stateOf(events.at(-1)), 'TASK_STATE_COMPLETED');
  });

  test('resubscribes to an ended task [S4-37]', async () => {
    const { id } = await client.send(message('talk'));
    // 1.0 rejects; 0.3 does not specify it, and its clients get the task and the end.
    if (dialect === '1.0') await assert.rejects(collect(client.follow(id)), error => errorName(error) === 'UnsupportedOperation');
    else assert.equal(textOf(taskOf(await collect(client.follow(id)))), TEXT);
  });

  test('gets an error when it resubscribes to an unknown task [S4-34]', async () => {
    await assert.rejects(collect(client.follow('no-such-task')), /Task not found/);
  });
}
