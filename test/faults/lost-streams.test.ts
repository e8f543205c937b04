import assert from 'node:assert/strict';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import type { Task } from '@hopline/a2a';
import { BUCKETS } from '@hopline/log-jetstream';
import { jetstreamManager } from '@nats-io/jetstream';
import { connect, type NatsConnection } from '@nats-io/transport-node';
import { until } from '../kit/until.ts';
import { userMessage } from '../kit/user-message.ts';
import { type RemoteAgent, startRemoteAgent } from '../support/agents/remote-agent.ts';
import { rpc } from '../support/cluster/a2a-stream.ts';
import { Cluster } from '../support/cluster/cluster.ts';

let remote: RemoteAgent;
let cluster: Cluster;
let nc: NatsConnection;

before(async () => {
  remote = await startRemoteAgent({
    dialect: '1.0',
    script: ({ text, turn }) =>
      text === 'deploy' && turn === 1 ? [{ inputRequired: 'where to?' }] : [{ token: `done: ${text}` }, { complete: true }],
  });
  cluster = await Cluster.start({ agents: [{ name: 'deployer', adapter: 'a2a', url: remote.url }], relays: 2 });
  nc = await connect({ servers: cluster.nats.url });
});

after(async () => {
  await nc?.close();
  await cluster?.[Symbol.asyncDispose]();
  await remote?.close();
});

async function call<T>(method: string, params: Record<string, unknown>): Promise<T> {
  const response = await rpc(cluster.url, { dialect: '1.0', method, params });
  const { result, error } = (await response.json()) as { result: T; error?: unknown };
  assert.equal(error, undefined, JSON.stringify(error));
  return result;
}

async function send(text: string, taskId?: string): Promise<Task> {
  const message = userMessage(text, { ...(taskId && { taskId }) });
  return (await call<{ task: Task }>('SendMessage', { message })).task;
}

const listed = async () => (await call<{ tasks: Task[] }>('ListTasks', { pageSize: 100 })).tasks.map(({ id }) => id).sort();
const unlessFailed = <T>(promise: Promise<T>) => promise.catch(() => undefined);

test('a bucket that is removed is restored automatically, with the tasks that it listed', { timeout: 240_000 }, async () => {
  const [done, asked] = [await send('hello'), await send('deploy')];
  assert.equal(asked.status.state, 'TASK_STATE_INPUT_REQUIRED', JSON.stringify(asked.status));
  const ids = [done.id, asked.id].sort();
  await until(async () => (await listed()).join() === ids.join(), 'both tasks are listed');
  await (await jetstreamManager(nc)).streams.delete(`KV_${BUCKETS.taskLists}`);
  const next = await until(() => unlessFailed(send('hello')), 'a new question is answered', 120_000);
  const all = [...ids, next.id];
  const isComplete = async () => {
    const shown = (await unlessFailed(listed())) ?? [];
    return all.every(id => shown.includes(id));
  };
  await until(isComplete, 'the earlier tasks are listed again', 120_000);
  assert.equal((await send('prod', asked.id)).status.state, 'TASK_STATE_COMPLETED');
  assert.match(cluster.relays.map(({ output }) => output).join(''), /were missing and were created again/);
});

test('a cluster answers again when NATS has lost its disk, without a restart of any process', { timeout: 240_000 }, async () => {
  await cluster.nats.kill();
  rmSync(join(cluster.nats.dir, 'jetstream'), { recursive: true });
  await cluster.nats.restart();
  const done = await until(() => unlessFailed(send('hello')), 'a new question is answered', 120_000);
  assert.equal(done.status.state, 'TASK_STATE_COMPLETED');
  // A relay may list an earlier task again that it was about to move when the disk was lost.
  await until(async () => (await listed()).includes(done.id), 'the new task is listed');
});
