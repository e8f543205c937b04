import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { Task } from '@hopline/a2a';
import type { Log } from '@hopline/log';
import { until } from '../kit/until.ts';
import { userMessage } from '../kit/user-message.ts';
import { type AskingCluster, startAskingCluster } from '../support/cluster/asking-cluster.ts';
import type { Cluster } from '../support/cluster/cluster.ts';

/** Far below the setting's minimum, so that some hundreds of tasks fill the log. */
const LOG_BYTES = 4 * 1024 * 1024;
const SHARE_PERCENT = 50;
const ANSWER = 'x'.repeat(8 * 1024);
/** Several times as many tasks as the log has room for. Without a limit they would push out every older task. */
const FLOOD_MAX = 1_000;

let asking: AskingCluster;
let cluster: Cluster;
let log: Log;

before(async () => {
  asking = await startAskingCluster({
    question: 'ask',
    answer: ANSWER,
    env: { HOPLINE_TENANTS: 'noisy, quiet', HOPLINE_TENANT_STORED_PERCENT: `${SHARE_PERCENT}` },
  });
  ({ cluster, log } = asking);
  await asking.limitBytes('A2A_LOG', LOG_BYTES);
  await restartIngress();
});

after(() => asking?.[Symbol.asyncDispose]());

/** Restarts ingress, which reads the extent of the log at its start and then only every few seconds. */
async function restartIngress(): Promise<void> {
  await cluster.ingresses[0]!.kill();
  await cluster.ingresses[0]!.start();
}

type Sent = { status: number; retryAfter: number; task: Task; reason: string | undefined };

async function send(tenant: string, text: string, taskId?: string): Promise<Sent> {
  const message = userMessage(text, { ...(taskId && { taskId }) });
  const response = await fetch(`${cluster.url}/${tenant}/message:send`, {
    method: 'POST',
    headers: { 'a2a-version': '1.0', 'content-type': 'application/a2a+json' },
    body: JSON.stringify({ message }),
  });
  // biome-ignore lint/suspicious/noExplicitAny: a test fails where an expected member is missing.
  const body = (await response.json()) as any;
  const retryAfter = Number(response.headers.get('retry-after'));
  return { status: response.status, retryAfter, task: body.task, reason: body.error?.details?.[0]?.reason };
}

async function complete(tenant: string, text: string, taskId?: string): Promise<Task> {
  const { status, task } = await send(tenant, text, taskId);
  assert.deepEqual([status, task.status.state], [200, 'TASK_STATE_COMPLETED']);
  return task;
}

async function read(tenant: string, taskId: string): Promise<{ status: number; task: Task }> {
  const response = await fetch(`${cluster.url}/${tenant}/tasks/${taskId}`, { headers: { 'a2a-version': '1.0' } });
  return { status: response.status, task: (await response.json()) as Task };
}

const textOf = (task: Task): string =>
  (task.artifacts ?? []).flatMap(({ parts }) => parts.map(part => ('text' in part ? part.text : ''))).join('');

/** Sends messages of the noisy tenant until one is refused. */
async function flood(): Promise<Sent> {
  for (let task = 1; task <= FLOOD_MAX; task++) {
    const sent = await send('noisy', 'fill');
    if (sent.status !== 200) return sent;
    assert.equal(sent.task.status.state, 'TASK_STATE_COMPLETED');
  }
  return assert.fail(`${FLOOD_MAX} tasks of one tenant were taken`);
}

test("a tenant whose tasks fill its share of the log cannot start another task, and another tenant's finished task stays readable", {
  timeout: 300_000,
}, async () => {
  const kept = await complete('quiet', 'keep');
  const { task: waiting } = await send('noisy', 'ask');
  assert.equal(waiting.status.state, 'TASK_STATE_INPUT_REQUIRED');

  const { status, reason, retryAfter } = await flood();
  assert.deepEqual([status, reason], [429, 'QUOTA_EXCEEDED']);
  assert.ok(retryAfter >= 1, String(retryAfter));
  const { firstSeq, fill } = await log.facts.extent();
  assert.equal(firstSeq, 1, 'nothing was removed');
  assert.ok(fill >= SHARE_PERCENT / 100, String(fill));
  assert.equal(textOf((await read('quiet', kept.id)).task), ANSWER);

  await complete('quiet', 'more');
  await complete('noisy', 'this one', waiting.id);

  await restartIngress();
  await until(async () => (await send('noisy', 'fill')).status === 429);

  await asking.limitBytes('A2A_LOG', LOG_BYTES * 4);
  await until(async () => (await send('noisy', 'fill')).status === 200);
});
