import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { isTerminal, type Message, type Task, type TaskState } from '@hopline/a2a';
import type { Log } from '@hopline/log';
import { openJetStreamLog } from '@hopline/log-jetstream';
import { until } from '../kit/until.ts';
import { answer, type RemoteAgent, startRemoteAgent } from '../support/agents/remote-agent.ts';
import { collect, frames, rpc, shapeOf } from '../support/cluster/a2a-stream.ts';
import { Cluster } from '../support/cluster/cluster.ts';
import { factsOf } from '../support/cluster/facts-of.ts';

/** Long enough for a kill and restart of a relay on a loaded machine. */
const TIMEOUT_MS = 6_000;

let stock: RemoteAgent;
let shop: RemoteAgent;
let bank: RemoteAgent;
let cluster: Cluster;
let log: Log;

before(async () => {
  stock = await startRemoteAgent({
    dialect: '0.3',
    script: ({ text, turn }) => (turn === 1 ? [{ inputRequired: 'How many?' }] : answer([`reserved ${text}`])),
  });
  shop = await startRemoteAgent({ dialect: '1.0', script: ({ text }) => answer([`sold: ${text}`]) });
  bank = await startRemoteAgent({
    dialect: '1.0',
    script: [{ status: 'auth-required', text: 'log in first' }, { hang: true }],
  });
  const entry = (name: string, url: string) => ({
    name,
    adapter: 'a2a',
    url,
    skills: [{ id: `${name}_skill`, name, description: name, tags: [name] }],
  });
  cluster = await Cluster.start({
    agents: [entry('stock', stock.url), entry('shop', shop.url), entry('bank', bank.url)],
    env: {
      HOPLINE_INPUT_TIMEOUT_MS: String(TIMEOUT_MS),
      HOPLINE_AUTH_REQUIRED_TIMEOUT_MS: String(TIMEOUT_MS),
      HOPLINE_ACK_WAIT_MS: '5000',
    },
  });
  log = await openJetStreamLog({ servers: cluster.nats.url, name: 'test' });
});

after(async () => {
  await log?.close();
  await cluster?.[Symbol.asyncDispose]();
  await stock?.close();
  await shop?.close();
  await bank?.close();
});

let messages = 0;

const textIn = (message: Pick<Message, 'parts'> | undefined) => (message?.parts ?? []).map(part => part.text ?? '').join('');

function paramsOf(text: string, message: Partial<Message> = {}, more: object = {}): Record<string, unknown> {
  messages += 1;
  return { message: { messageId: `m${messages}`, role: 'ROLE_USER', parts: [{ text }], ...message }, ...more };
}

async function call<T>(method: string, params: Record<string, unknown>): Promise<T> {
  const response = await rpc(cluster.url, { dialect: '1.0', method, params });
  const { result, error } = (await response.json()) as { result: T; error?: object };
  assert.equal(error, undefined, JSON.stringify(error));
  return result;
}

const get = (id: string) => call<Task>('GetTask', { id });

async function send(text: string, message: Partial<Message> = {}, more: object = {}): Promise<Task> {
  return (await call<{ task: Task }>('SendMessage', paramsOf(text, message, more))).task;
}

function reached(id: string, met: (state: TaskState) => boolean): Promise<Task> {
  return until(async () => {
    const task = await get(id);
    return met(task.status.state) && task;
  }, `the state of ${id}`);
}

/** The states of a task in the log, with their times. */
async function transitionsOf(taskId: string): Promise<[state: string, at: number][]> {
  const states = (await factsOf(log, taskId)).flatMap((fact): [string, number][] => {
    if (fact.kind === 'task.created') return [[fact.event.task.status.state, fact.at]];
    return fact.kind === 'status.changed' ? [[fact.event.statusUpdate.status.state, fact.at]] : [];
  });
  return states
    .map(([state, at]): [string, number] => [state.replace('TASK_STATE_', ''), at])
    .filter(([state], index, all) => state !== all[index - 1]?.[0]);
}

test("an answer goes only to the agent that asked, and the other agent's part is kept [S4-41]", {
  timeout: 120_000,
}, async () => {
  const question = await send('stock and shop: 3 widgets');
  assert.deepEqual([question.status.state, textIn(question.status.message)], ['TASK_STATE_INPUT_REQUIRED', 'How many?']);
  const texts = (task: Task) => task.artifacts?.filter(({ name }) => name === 'streaming_result').map(textIn);
  assert.deepEqual(texts(question), ['sold: stock and shop: 3 widgets']);
  const done = await send('250', { taskId: question.id });
  assert.deepEqual([done.id, done.status.state], [question.id, 'TASK_STATE_COMPLETED']);
  assert.deepEqual(texts(done), ['sold: stock and shop: 3 widgets', 'reserved 250']);
  // The agent's task is read before the answer is sent, because another run may have sent the answer.
  const sent = stock.requests.filter(({ text }) => text !== '');
  const calls = sent.map(({ text, taskId }) => [text, taskId]);
  assert.deepEqual(calls, [
    ['stock and shop: 3 widgets', calls[0]![1]],
    ['250', calls[0]![1]],
  ]);
  assert.equal(shop.requests.length, 1);
});

test('an unanswered question fails its task in time, despite a kill of the relay [S3-8 S4-28]', {
  timeout: 120_000,
}, async () => {
  const { id } = await send('stock');
  const relay = cluster.relays[0]!;
  await relay.kill();
  await relay.start();
  const failed = await reached(id, isTerminal);
  assert.equal(failed.status.state, 'TASK_STATE_FAILED');
  assert.deepEqual([failed.metadata?.reason, failed.metadata?.retryable], ['input timeout', true]);
  const life = await transitionsOf(id);
  assert.deepEqual(
    life.map(([state]) => state),
    ['SUBMITTED', 'WORKING', 'INPUT_REQUIRED', 'FAILED'],
  );
  assert.ok(life[3]![1] - life[2]![1] >= TIMEOUT_MS, 'the timeout was not early');
});

test('missing credentials fail their task in time, despite a kill of the relay, and release its agent', {
  timeout: 120_000,
}, async () => {
  const { id } = await send('bank', {}, { configuration: { returnImmediately: true } });
  await reached(id, state => state === 'TASK_STATE_AUTH_REQUIRED');
  await cluster.relays[0]!.kill();
  await cluster.relays[0]!.start();
  const failed = await reached(id, isTerminal);
  assert.equal(failed.status.state, 'TASK_STATE_FAILED');
  assert.deepEqual([failed.metadata?.reason, failed.metadata?.retryable], ['auth timeout', true]);
  const life = await transitionsOf(id);
  assert.deepEqual(
    life.map(([state]) => state),
    ['SUBMITTED', 'WORKING', 'AUTH_REQUIRED', 'FAILED'],
  );
  assert.ok(life[3]![1] - life[2]![1] >= TIMEOUT_MS, 'the timeout was not early');
  await until(() => bank.requests.some(({ method }) => method === 'cancel'));
});

test('an answer stored just before the deadline takes precedence, with no relay running at either time [S3-8]', {
  timeout: 120_000,
}, async () => {
  const { id } = await send('stock');
  const questionAt = (await transitionsOf(id)).at(-1)![1];
  await cluster.relays[0]!.kill();
  const params = paramsOf('7', { taskId: id }, { configuration: { returnImmediately: true } });
  const answered = rpc(cluster.url, { dialect: '1.0', method: 'SendMessage', params });
  await sleep(Math.max(0, questionAt + TIMEOUT_MS + 500 - Date.now()));
  await cluster.relays[0]!.start();
  await answered;
  const done = await reached(id, isTerminal);
  assert.equal(done.status.state, 'TASK_STATE_COMPLETED');
  assert.equal(textIn(done.artifacts?.find(({ name }) => name === 'partial_result')), 'reserved 7');
});

test('an acknowledged task survives a kill of each service right after the response, before its work starts [S3-9]', {
  timeout: 120_000,
}, async () => {
  // No service takes the work, so the answer can only come from the store.
  await cluster.supervisors[0]!.kill();
  const task = await send('shop', {}, { configuration: { returnImmediately: true } });
  await Promise.all(cluster.services.map(service => service.kill()));
  const created = await factsOf(log, task.id);
  assert.deepEqual(
    created.map(({ kind }) => kind),
    ['task.created'],
  );
  await Promise.all(cluster.services.map(service => service.start()));
  const known = await get(task.id);
  assert.deepEqual([known.id, known.contextId, known.history?.[0]], [task.id, task.contextId, task.history?.[0]]);
  assert.equal((await reached(task.id, isTerminal)).status.state, 'TASK_STATE_COMPLETED');
});

test('a stream contains only stored events: at its first frame the task is in the log [S3-9]', {
  timeout: 120_000,
}, async () => {
  let count = 0;
  for await (const frame of frames(cluster.url, { text: 'shop' })) {
    count += 1;
    assert.equal(shapeOf(frame), 'task');
    const { id } = frame.result as { id: string };
    await cluster.relays[0]!.kill();
    assert.equal((await factsOf(log, id))[0]?.kind, 'task.created');
    await cluster.relays[0]!.start();
    assert.equal((await reached(id, isTerminal)).status.state, 'TASK_STATE_COMPLETED');
    break;
  }
  assert.equal(count, 1);
});

test('task states only move forward [S2-16]', { timeout: 120_000 }, async () => {
  const list = await collect(cluster.url, { text: 'shop' });
  const id = (list[0]!.result as { id: string }).id;
  const life = await transitionsOf(id);
  assert.deepEqual(
    life.map(([state]) => state),
    ['SUBMITTED', 'WORKING', 'COMPLETED'],
  );
  assert.deepEqual(
    life.map(([, at]) => at),
    life.map(([, at]) => at).toSorted((a, b) => a - b),
  );
  assert.deepEqual(
    list.map(shapeOf).filter(shape => !shape.startsWith('artifact')),
    ['task', 'status:working', 'status:completed'],
  );
});
