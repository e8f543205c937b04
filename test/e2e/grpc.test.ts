import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, test } from 'node:test';
import type { StreamResponse } from '@hopline/a2a';
import { CallFailed, GrpcClient } from '@hopline/a2a-grpc/test-client';
import { userMessage } from '../kit/user-message.ts';
import { type RemoteAgent, type Step, startRemoteAgent } from '../support/agents/remote-agent.ts';
import { rpc } from '../support/cluster/a2a-stream.ts';
import { Cluster } from '../support/cluster/cluster.ts';

/** Surrogate pairs, joiners, whitespace and line breaks: text that a careless split would break. */
const WORDS = Array.from({ length: 60 }, (_, index) => `${index} 👩‍🚀 Grüße\n \t`);
const TEXT = WORDS.join('');
const NOT_FOUND = 5;
const FAILED_PRECONDITION = 9;

let agent: RemoteAgent;
let cluster: Cluster;
const clients: GrpcClient[] = [];

function* play(text: string, turn: number): Generator<Step> {
  if (text === 'ask' && turn === 1) return yield { inputRequired: 'Which one?' };
  if (text === 'hang') return yield* [{ token: 'thinking' }, { hang: true }] as Step[];
  for (const word of WORDS) yield* [{ token: word }, { pause: 4 }] as Step[];
  yield { complete: true };
}

type Card = {
  supportedInterfaces: { url: string; protocolBinding: string; protocolVersion: string }[];
  additionalInterfaces: object[];
};

async function cardOf(replica: number): Promise<Card> {
  return (await (await fetch(`${cluster.ingresses[replica]!.url}/.well-known/agent-card.json`)).json()) as Card;
}

before(async () => {
  agent = await startRemoteAgent({ dialect: '1.0', script: ({ text, turn }) => play(text, turn) });
  cluster = await Cluster.shared({ balanced: true, agents: [{ name: 'talker', adapter: 'a2a', url: agent.url }] });
  // Each client has one connection, so that all its calls go to one replica.
  for (const replica of [0, 1]) {
    const { supportedInterfaces } = await cardOf(replica);
    clients.push(new GrpcClient(supportedInterfaces.find(one => one.protocolBinding === 'GRPC')!.url));
  }
});

after(async () => {
  for (const client of clients) client.close();
  await cluster?.[Symbol.asyncDispose]();
  await agent?.close();
});

const message = (text: string, more: object = {}) => ({
  message: userMessage(text, more),
});

function textOf(events: StreamResponse[]): string {
  return events
    .flatMap(event => ('artifactUpdate' in event ? [event.artifactUpdate.artifact] : []))
    .filter(({ name }) => name === 'streaming_result')
    .flatMap(({ parts }) => parts.map(part => part.text))
    .join('');
}

async function failed(promise: Promise<unknown>): Promise<CallFailed> {
  const error = await promise.then(
    () => assert.fail('the call succeeded'),
    (thrown: unknown) => thrown,
  );
  assert.ok(error instanceof CallFailed, String(error));
  return error;
}

test('the card offers gRPC of both versions, as host and port [S4-2]', async () => {
  const { supportedInterfaces, additionalInterfaces } = await cardOf(0);
  const offered = supportedInterfaces.filter(one => one.protocolBinding === 'GRPC');
  assert.deepEqual(
    offered.map(one => one.protocolVersion),
    ['1.0', '0.3'],
  );
  for (const { url } of offered) assert.match(url, /^127\.0\.0\.1:\d+$/);
  assert.deepEqual(additionalInterfaces.at(-1), { url: offered[0]!.url, transport: 'GRPC' });
});

test("a stream of both versions has the agent's exact text, and one end [S0-3 S0-36]", async () => {
  const events = await clients[0]!.stream('SendStreamingMessage', message('talk')).rest();
  assert.equal(textOf(events), TEXT);
  assert.equal(events.at(-1).statusUpdate.status.state, 'TASK_STATE_COMPLETED');
  const { message: sent } = message('talk');
  const old = { message: { messageId: sent.messageId, role: sent.role, content: sent.parts } };
  const before = await clients[0]!.stream('SendStreamingMessage', old, { version: '0.3' }).rest();
  assert.equal(textOf(before), TEXT);
  assert.equal(before.filter(event => event.statusUpdate?.final === true).length, 1);
  assert.equal(before.at(-1).statusUpdate.final, true);
});

test('an interrupted stream continues on the other replica after any event, even of an ended task [S3-31]', async () => {
  const stream = clients[0]!.stream('SendStreamingMessage', message('talk'));
  const seen = await stream.take(8);
  const { id } = seen[0].task;
  const [first] = (await stream.headers).get('first-event-id');
  assert.match(String(first), /^1\./);
  stream.call.cancel();
  const back = clients[1]!.stream('SubscribeToTask', { id }, { metadata: { 'last-event-id': '8.0' } });
  const events = [...seen, ...(await back.rest())];
  assert.equal(textOf(events), TEXT);
  const [last] = (await back.trailers).get('last-event-id');
  assert.equal(String(last).split('.')[0], String(events.length));
  for (const cut of [1, 5, events.length - 1]) {
    const rest = await clients[1]!.stream('SubscribeToTask', { id }, { metadata: { 'last-event-id': `${cut}.0` } }).rest();
    assert.deepEqual(rest, events.slice(cut));
  }
});

test('a question is answered on the same task, and a subscription stays open through it [S3-11]', async () => {
  const { task } = await clients[0]!.call('SendMessage', message('ask'));
  assert.equal(task.status.state, 'TASK_STATE_INPUT_REQUIRED');
  const following = clients[1]!.stream('SubscribeToTask', { id: task.id });
  assert.equal((await following.take(1))[0].task.id, task.id);
  const answered = await clients[0]!.call('SendMessage', message('the second', { taskId: task.id, contextId: task.contextId }));
  assert.equal(answered.task.status.state, 'TASK_STATE_COMPLETED');
  assert.equal((await following.rest()).at(-1).statusUpdate.status.state, 'TASK_STATE_COMPLETED');
});

test('one task through four bindings: started over gRPC, followed in 0.3, listed over REST, canceled in the legacy dialect', async () => {
  const contextId = randomUUID();
  const stream = clients[0]!.stream('SendStreamingMessage', message('hang', { contextId }));
  const [begun] = await stream.take(1);
  const { id } = begun.task;
  const following = clients[1]!.stream('TaskSubscription', { name: `tasks/${id}` }, { version: '0.3' });
  assert.equal((await following.take(1))[0].task.id, id);
  const url = `${cluster.ingresses[1]!.url}/tasks?contextId=${contextId}`;
  const listed = (await (await fetch(url, { headers: { 'a2a-version': '1.0' } })).json()) as { tasks: { id: string }[] };
  assert.deepEqual(
    listed.tasks.map(task => task.id),
    [id],
  );
  const headers = { 'a2a-version': '0.1' };
  const answer = await rpc(cluster.ingresses[1]!.url, { method: 'tasks/cancel', params: { id }, headers });
  const { result } = (await answer.json()) as { result: { id: string; status: { state: string } } };
  assert.deepEqual([result.id, result.status.state], [id, 'canceled']);
  assert.equal((await stream.rest()).at(-1).statusUpdate.status.state, 'TASK_STATE_CANCELED');
  assert.equal((await following.rest()).at(-1).statusUpdate.status.state, 'TASK_STATE_CANCELLED');
  const { tasks } = await clients[0]!.call('ListTasks', { contextId, status: 'TASK_STATE_CANCELED' });
  assert.deepEqual([tasks.length, tasks[0].id], [1, id]);
  const again = await failed(clients[1]!.call('CancelTask', { id }));
  assert.deepEqual([again.code, again.details[0].reason], [FAILED_PRECONDITION, 'TASK_NOT_CANCELABLE']);
});

test('errors have a gRPC status with details [S3-20 S3-21]', async () => {
  const unknown = await failed(clients[0]!.call('GetTask', { id: randomUUID() }));
  assert.deepEqual([unknown.code, unknown.details[0].reason], [NOT_FOUND, 'TASK_NOT_FOUND']);
  const version = await failed(clients[0]!.call('ListTasks', {}, { metadata: { 'a2a-version': '2.0' } }));
  assert.deepEqual([version.code, version.details[0].reason], [FAILED_PRECONDITION, 'VERSION_NOT_SUPPORTED']);
  const { task } = await clients[0]!.call('SendMessage', message('talk'));
  const ended = await clients[0]!.stream('SubscribeToTask', { id: task.id }).failure();
  assert.equal(ended.details[0].reason, 'UNSUPPORTED_OPERATION');
});

test('a draining ingress sends the cursor of a stream, and the other replica continues it', async () => {
  const direct = cluster.ingresses.map(({ spec }) => new GrpcClient(`127.0.0.1:${spec.env.HOPLINE_GRPC_PORT}`));
  clients.push(...direct);
  const [first, second] = direct as [GrpcClient, GrpcClient];
  const stream = first.stream('SendStreamingMessage', message('talk'));
  const seen = await stream.take(3);
  const gone = cluster.ingresses[0]!.kill('SIGTERM');
  let error: CallFailed | undefined;
  try {
    for (;;) seen.push(await stream.next());
  } catch (thrown) {
    error = thrown as CallFailed;
  }
  await gone;
  await cluster.ingresses[0]!.start();
  const [cursor] = error!.trailers.get('last-event-id');
  const { id } = seen[0].task;
  const back = second.stream('SubscribeToTask', { id }, { metadata: { 'last-event-id': String(cursor) } });
  assert.equal(textOf([...seen, ...(await back.rest())]), TEXT);
});
