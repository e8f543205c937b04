import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, test } from 'node:test';
import type { Task } from '@hopline/a2a';
import { userMessage } from '../kit/user-message.ts';
import { answer, type RemoteAgent, startRemoteAgent } from '../support/agents/remote-agent.ts';
import { Cluster } from '../support/cluster/cluster.ts';

/** Without read-your-writes across replicas, about one list in a hundred lacked a task. */
const ROUNDS = 40;

let agent: RemoteAgent;
let cluster: Cluster;

before(async () => {
  const script = ({ text }: { text: string }) => (text === 'ask' ? [{ inputRequired: 'Which one?' }] : answer(['ok']));
  agent = await startRemoteAgent({ dialect: '1.0', script });
  cluster = await Cluster.shared({ balanced: true, agents: [{ name: 'asker', adapter: 'a2a', url: agent.url }] });
});

after(async () => {
  await cluster?.[Symbol.asyncDispose]();
  await agent?.close();
});

/** Lists at the replica that did not serve the previous call. */
async function call<T>(method: string, params: object): Promise<T> {
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method, params });
  const headers = { 'content-type': 'application/json', 'a2a-version': '1.0' };
  const { result, error } = (await (await fetch(cluster.url, { method: 'POST', headers, body })).json()) as {
    result: T;
    error?: object;
  };
  assert.equal(error, undefined, JSON.stringify(error));
  return result;
}

async function listed(params: object): Promise<string[]> {
  return (await call<{ tasks: Task[] }>('ListTasks', params)).tasks.map(({ id }) => id);
}

const message = (text: string, more: object = {}) => ({
  message: userMessage(text, more),
});

test("a list on one replica contains each task with the state that another replica's response had", {
  timeout: 120_000,
}, async () => {
  const before = [...cluster.balancer!.counts.http] as [number, number];
  for (const _replica of cluster.ingresses) await listed({});
  for (let round = 0; round < ROUNDS; round += 1) {
    const contextId = randomUUID();
    const query = round % 2 === 0 ? {} : { contextId };
    const configuration = { returnImmediately: true };
    const begun = await call<{ task: Task }>('SendMessage', { ...message('ask', { contextId }), configuration });
    assert((await listed(query)).includes(begun.task.id));
    const { task } = await call<{ task: Task }>('SendMessage', message('ask', { contextId }));
    assert((await listed({ ...query, status: 'TASK_STATE_INPUT_REQUIRED' })).includes(task.id));
    await call('CancelTask', { id: task.id });
    assert.equal((await listed({ ...query, status: 'TASK_STATE_CANCELED' }))[0], task.id);
  }
  const [first, second] = cluster.balancer!.counts.http as [number, number];
  assert.equal(first - before[0], second - before[1]);
});
