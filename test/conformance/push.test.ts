import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, suite, test } from 'node:test';
import type { Message } from '@hopline/a2a';
import { openJetStreamLog } from '@hopline/log-jetstream';
import { userMessage } from '../kit/user-message.ts';
import { type RemoteAgent, startRemoteAgent } from '../support/agents/remote-agent.ts';
import { Cluster } from '../support/cluster/cluster.ts';
import { DRIVERS, type Driven, type Driver, errorName, GRPC_DRIVERS } from './client-drivers.ts';

const URL = 'https://hooks.example.org/a2a?client=1';
const SECRET = 'SECRET-of-the-test';
const WHOLE = { url: URL, token: SECRET, authentication: { scheme: 'Bearer', credentials: SECRET } };

let remote: RemoteAgent;
let cluster: Cluster;

before(async () => {
  remote = await startRemoteAgent({ dialect: '0.3', script: () => [{ inputRequired: 'Which one?' }] });
  const agents = [{ name: 'asker', adapter: 'a2a', url: remote.url }];
  cluster = await Cluster.shared({ agents, balanced: true, env: { HOPLINE_PUSH: 'true' } });
});

after(async () => {
  await cluster?.[Symbol.asyncDispose]();
  await remote?.close();
});

const message = (): Message => userMessage('ask');

/** Stored configurations of a task, the only place with the secrets. */
async function storedOf(taskId: string) {
  await using log = await openLog();
  return (await log.pushConfigs.under(taskId)).map(({ value }) => value);
}

async function openLog() {
  const log = await openJetStreamLog({ servers: cluster.nats.url, name: 'test' });
  return { ...log, [Symbol.asyncDispose]: () => log.close() };
}

/** All records of a task, and all output of the services. */
async function everythingElseOf(taskId: string): Promise<string> {
  await using log = await openLog();
  const records: unknown[] = [];
  for await (const { record } of log.inputs.read(taskId)) records.push(record);
  for await (const { record } of log.facts.read(taskId, 1)) records.push(record);
  assert(records.length > 1);
  return JSON.stringify(records) + cluster.services.map(({ output }) => output).join('');
}

// 0.3.14 sends the string `undefined` over gRPC for a configuration without an id.
const overGrpc = GRPC_DRIVERS.filter(({ name }) => !name.startsWith('@a2a-js/sdk 0.3.14'));

for (const driver of [...DRIVERS, ...overGrpc]) suite(driver.name, () => names(driver));

function names({ open, dialect }: Driver): void {
  let client: Driven;
  before(async () => {
    client = await open(cluster.url);
  });

  test('sets a webhook, gets it from the other replica without secrets, and replaces it [S3-22 C-21]', async () => {
    const { id } = await client.send(message());
    const expected = { id, taskId: id, url: URL, authentication: { scheme: 'Bearer' } };
    assert.deepEqual(await client.push.set(id, WHOLE), expected);
    assert.deepEqual(await client.push.get(id, id), expected);
    const [stored] = await storedOf(id);
    assert.deepEqual([stored?.token, stored?.authentication?.credentials, stored?.dialect], [SECRET, SECRET, dialect]);
    await client.push.set(id, { url: `${URL}&2` });
    assert.deepEqual(await client.push.get(id, id), { id, taskId: id, url: `${URL}&2` });
    assert.equal((await storedOf(id)).length, 1);
  });

  test('lists webhooks and deletes one, twice [S3-22]', async () => {
    const { list, delete: remove } = client.push;
    if (list === undefined || remove === undefined) return;
    const { id } = await client.send(message());
    for (const name of ['two', 'one']) await client.push.set(id, { ...WHOLE, id: name });
    assert.deepEqual(
      (await client.push.list!(id)).map(config => config.id),
      ['one', 'two'],
    );
    for (const _ of [1, 2]) await remove(id, 'one');
    assert.deepEqual(await list(id), [{ id: 'two', taskId: id, url: URL, authentication: { scheme: 'Bearer' } }]);
    await assert.rejects(client.push.get(id, 'one'), error => errorName(error) === 'TaskNotFound');
  });

  test('gets an error for an unknown task [S4-34]', async () => {
    await assert.rejects(client.push.set('no-such-task', WHOLE), error => errorName(error) === 'TaskNotFound');
    await assert.rejects(client.push.get('no-such-task', 'x'), error => errorName(error) === 'TaskNotFound');
  });

  test('a webhook within a message gets all notifications, and its secrets are nowhere else [S4-22 S4-43 C-21]', async () => {
    const { id, status } = await client.send(message(), WHOLE);
    assert.equal(status.state, 'TASK_STATE_INPUT_REQUIRED');
    const stored = await storedOf(id);
    assert.deepEqual(stored, [{ taskId: id, id, ...WHOLE, dialect, after: 0, bytes: stored[0]?.bytes }]);
    assert.doesNotMatch(await everythingElseOf(id), /SECRET-of-the-test|hooks\.example/);
  });
}

async function post(url: string, method: string, params: object): Promise<Response> {
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method, params });
  return fetch(url, { method: 'POST', headers: { 'content-type': 'application/json' }, body });
}

async function call(url: string, method: string, params: object): Promise<unknown> {
  const { result, error } = (await (await post(url, method, params)).json()) as { result?: unknown; error?: { code: number } };
  return error ?? result;
}

const ask = (id: string) => ({ id, message: { role: 'user', parts: [{ type: 'text', text: 'ask' }] } });

test('all seven methods of the April 2025 dialect work [S3-3 C-6]', async () => {
  const { url } = cluster;
  const [id, streamed] = [randomUUID(), randomUUID()];
  const stateOf = (task: unknown) => (task as { status: { state: string } }).status.state;
  assert.equal(stateOf(await call(url, 'tasks/send', ask(id))), 'input-required');
  const stream = await (await post(url, 'tasks/sendSubscribe', ask(streamed))).text();
  assert.match(stream, /"type":"taskStatusUpdate".*"state":"input-required"/);
  assert.equal(stateOf(await call(url, 'tasks/get', { id })), 'input-required');
  const followed = await post(url, 'tasks/resubscribe', { id: streamed });
  const reader = followed.body!.getReader();
  assert.match(Buffer.from((await reader.read()).value!).toString(), /"type":"taskStatusUpdate"/);
  await reader.cancel();
  const set = { id, pushNotificationConfig: { url: URL } };
  assert.deepEqual(await call(url, 'tasks/pushNotification/set', set), set);
  assert.deepEqual(await call(url, 'tasks/pushNotification/get', { id }), set);
  assert.equal(stateOf(await call(url, 'tasks/cancel', { id })), 'canceled');
});

test('in the April 2025 dialect a webhook set before its task, on another replica, belongs to the task [S3-22 S3-23 S3-33]', async () => {
  const id = randomUUID();
  const [first, second] = cluster.ingresses.map(({ url }) => url) as [string, string];
  const unknown = await call(first, 'tasks/pushNotification/get', { id });
  assert.equal((unknown as { code: number }).code, -32001);
  const authentication = { schemes: ['bearer'], credentials: SECRET };
  const set = { id, pushNotificationConfig: { url: URL, token: SECRET, authentication } };
  const expected = { id, pushNotificationConfig: { url: URL, authentication: { schemes: ['bearer'] } } };
  assert.deepEqual(await call(first, 'tasks/pushNotification/set', set), expected);
  assert.deepEqual(await call(second, 'tasks/pushNotification/get', { id }), expected);
  const sent = await call(second, 'tasks/send', ask(id));
  // The webhook gets the other events (S3-33).
  assert.equal((sent as { status: { state: string } }).status.state, 'submitted');
  assert.deepEqual(await call(first, 'tasks/pushNotification/get', { id }), expected);
  const [stored] = await storedOf(id);
  assert.deepEqual([stored?.dialect, stored?.after], ['legacy', 0]);
});
