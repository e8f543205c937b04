import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { CallFailed, GrpcClient } from '@hopline/a2a-grpc/test-client';
import { userMessage } from '../kit/user-message.ts';
import { answer, type RemoteAgent, startRemoteAgent } from '../support/agents/remote-agent.ts';
import { Cluster } from '../support/cluster/cluster.ts';
import { type Issuer, startIssuer } from '../support/cluster/issuer.ts';

const [NOT_FOUND, UNAUTHENTICATED] = [5, 16];

let issuer: Issuer;
let agent: RemoteAgent;
let cluster: Cluster;
let client: GrpcClient;

before(async () => {
  issuer = await startIssuer();
  agent = await startRemoteAgent({ dialect: '1.0', script: () => answer(['hello']) });
  const agents = [{ name: 'remote', adapter: 'a2a', url: agent.url }];
  cluster = await Cluster.shared({ ownEnv: issuer.env, agents });
  const card = await (await fetch(`${cluster.url}/.well-known/agent-card.json`)).json();
  const { supportedInterfaces } = card as { supportedInterfaces: { url: string; protocolBinding: string }[] };
  client = new GrpcClient(supportedInterfaces.find(one => one.protocolBinding === 'GRPC')!.url);
});

after(async () => {
  client?.close();
  await cluster?.[Symbol.asyncDispose]();
  await agent?.close();
  issuer?.close();
});

const message = () => ({ message: userMessage('x') });

async function refused(promise: Promise<unknown>): Promise<[number, string]> {
  const error = await promise.then(
    () => assert.fail('the call succeeded'),
    (thrown: unknown) => thrown,
  );
  assert.ok(error instanceof CallFailed, String(error));
  return [error.code, error.details[0]?.reason];
}

async function as(sub: string, tenant?: string) {
  const token = await issuer.token({ sub, ...(tenant !== undefined && { tenant }) });
  return { metadata: { authorization: `Bearer ${token}` } };
}

test('a gRPC caller is identified by the token in its metadata, and sees only its own tasks', async () => {
  const [ann, bob, elsewhere] = [await as('ann'), await as('bob'), await as('ann', 'acme')];
  const { task } = await client.call('SendMessage', message(), ann);
  assert.equal(task.status.state, 'TASK_STATE_COMPLETED');
  assert.equal((await client.call('GetTask', { id: task.id }, ann)).id, task.id);
  for (const other of [bob, elsewhere]) {
    assert.deepEqual(await refused(client.call('GetTask', { id: task.id }, other)), [NOT_FOUND, 'TASK_NOT_FOUND']);
    assert.deepEqual(await refused(client.call('CancelTask', { id: task.id }, other)), [NOT_FOUND, 'TASK_NOT_FOUND']);
    assert.deepEqual(await refused(client.stream('SubscribeToTask', { id: task.id }, other).rest()), [
      NOT_FOUND,
      'TASK_NOT_FOUND',
    ]);
    assert.deepEqual((await client.call('ListTasks', {}, other)).tasks ?? [], []);
  }
  assert.equal((await client.call('ListTasks', {}, ann)).totalSize, 1);
});

test('without a valid token gRPC returns UNAUTHENTICATED, in both versions', async () => {
  const spoiled = { metadata: { authorization: 'Bearer nonsense' } };
  const none = [UNAUTHENTICATED, 'UNAUTHENTICATED'];
  assert.deepEqual(await refused(client.call('SendMessage', message())), none);
  assert.deepEqual(await refused(client.call('SendMessage', message(), spoiled)), none);
  assert.deepEqual(await refused(client.stream('SendStreamingMessage', message()).rest()), none);
  assert.deepEqual(await refused(client.call('GetTask', { name: 'tasks/x' }, { version: '0.3' })), none);
});
