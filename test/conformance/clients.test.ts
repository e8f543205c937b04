import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, suite, test } from 'node:test';
import { Fold, type Message, type StreamResponse, type Task } from '@hopline/a2a';
import { answer, type RemoteAgent, type Step, startRemoteAgent } from '../support/agents/remote-agent.ts';
import { Cluster } from '../support/cluster/cluster.ts';
import { DRIVERS, type Driven, type Driver, errorName, GRPC_DRIVERS } from './client-drivers.ts';

const TOKENS = ['Grüße ', 'ha', 'ha', ' 👩‍🚀', '\n', '  done ✅'];
const TEXT = TOKENS.join('');
/** The agent hears of a cancel after the client did. */
const TOLD_MS_MAX = 5_000;

let remote: RemoteAgent;
let cluster: Cluster;
/** By text of the message: the agent says its answer in three pieces, one for each gate that opens. */
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
  return turn > 1 ? answer(['You said ', text]) : answer(TOKENS);
}

before(async () => {
  remote = await startRemoteAgent({ dialect: '0.3', script });
  cluster = await Cluster.start({ grpc: true, balanced: true, agents: [{ name: 'remote', adapter: 'a2a', url: remote.url }] });
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

async function all(stream: AsyncIterable<StreamResponse>): Promise<StreamResponse[]> {
  const events: StreamResponse[] = [];
  for await (const event of stream) events.push(event);
  return events;
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

test('every request of these clients went to the other of two replicas', () => {
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

  test('sends and waits, gets the task again, and is told when there is none [S1-2 S3-20 S4-34]', async () => {
    const task = await client.send(message('say'));
    assert.deepEqual([task.status.state, textOf(task)], ['TASK_STATE_COMPLETED', TEXT]);
    const again = await client.get(task.id);
    assert.deepEqual([again.status.state, textOf(again)], ['TASK_STATE_COMPLETED', TEXT]);
    await assert.rejects(client.get('no-such-task'), error => errorName(error) === 'TaskNotFound');
  });

  test('streams: the task, then the text as the agent said it, then one end [S0-3 S0-25 S0-36]', async () => {
    const events = await all(client.stream(message('say')));
    const { id, contextId } = taskOf(events);
    assert.equal(folded(events).textOf(NAME), TEXT);
    assert.equal(stateOf(events.at(-1)), 'TASK_STATE_COMPLETED');
    for (const event of events.slice(1)) {
      assert(!('task' in event || 'message' in event));
      const update = 'statusUpdate' in event ? event.statusUpdate : event.artifactUpdate;
      assert.deepEqual([update.taskId, update.contextId], [id, contextId]);
    }
  });

  test('is asked, and answers on the same task [S3-11 S4-26 S4-27]', async () => {
    const asked = await client.send(message('ask'));
    assert.equal(asked.status.state, 'TASK_STATE_INPUT_REQUIRED');
    assert.equal(asked.status.message?.parts[0]?.text, 'Which one?');
    const events = await all(client.stream(message('the second', { taskId: asked.id, contextId: asked.contextId })));
    assert.equal(taskOf(events).id, asked.id);
    assert.equal(folded(events).textOf(NAME), 'You said the second');
    assert.equal(stateOf(events.at(-1)), 'TASK_STATE_COMPLETED');
  });

  test('cancels: the agent is told, the stream ends, and a second cancel is refused [S3-26 S3-28 S4-35]', async () => {
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
    const told = () => remote.requests.some(({ method, taskId }) => method === 'cancel' && taskId === remoteId);
    const late = performance.now() + TOLD_MS_MAX;
    while (!told() && performance.now() < late) await new Promise(resolve => setTimeout(resolve, 10));
    assert(told(), 'the agent heard of the cancel');
  });

  test('goes away in the middle and comes back: the task as it is, then the rest, nothing lost or doubled [S3-31]', async () => {
    const text = `hold ${randomUUID()}`;
    const gates = [Promise.withResolvers<void>(), Promise.withResolvers<void>()] as const;
    held.set(text, [...gates]);
    const seen: StreamResponse[] = [];
    for await (const event of client.stream(message(text))) {
      seen.push(event);
      // Gone after a chunk that appends: one that only opens the artifact may come twice unseen.
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

  test('comes back when the task has ended [S4-37]', async () => {
    const { id } = await client.send(message('say'));
    // 1.0 refuses; 0.3 says nothing of it, and its clients are shown the task and the end.
    if (dialect === '1.0') await assert.rejects(all(client.follow(id)), error => errorName(error) === 'UnsupportedOperation');
    else assert.equal(textOf(taskOf(await all(client.follow(id)))), TEXT);
  });

  test('is told that there is no such task to come back to [S4-34]', async () => {
    await assert.rejects(all(client.follow('no-such-task')), /Task not found/);
  });
}
