import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { Task } from '@hopline/a2a';
import type { Log } from '@hopline/log';
import { jetstream, jetstreamManager } from '@nats-io/jetstream';
import { COPY_FORWARD_MARGIN, copyForwardBelow } from '../../services/relay/src/retention-sweep.ts';
import { until } from '../kit/until.ts';
import { userMessage } from '../kit/user-message.ts';
import { rpc } from '../support/cluster/a2a-stream.ts';
import { type AskingCluster, startAskingCluster } from '../support/cluster/asking-cluster.ts';
import type { Cluster } from '../support/cluster/cluster.ts';

/** Bytes of the log. The records that fill it are much smaller, so that a sweep can run between two of them. */
const FACTS_BYTES = 512 * 1024;
const INDEX_BYTES = 32 * 1024;
const ANSWER = 'x'.repeat(24 * 1024);
const TASK_NOT_FOUND = -32001;

let asking: AskingCluster;
let cluster: Cluster;
let log: Log;

before(async () => {
  asking = await startAskingCluster({
    question: 'deploy',
    answer: ANSWER,
    env: { HOPLINE_PUSH: 'true', HOPLINE_WEBHOOK_ALLOW: '127.0.0.1', HOPLINE_WEBHOOK_HTTP: 'true' },
  });
  ({ cluster, log } = asking);
});

after(() => asking?.[Symbol.asyncDispose]());

/** Fills a bucket until the server refuses even a record of a few bytes. */
async function fillBucket(bucket: string): Promise<void> {
  const js = jetstream(asking.nc);
  for (;;) {
    try {
      await js.publish(`$KV.hopline_${bucket}.filler.${crypto.randomUUID()}`, '{}');
    } catch (error) {
      assert.match(String(error), /maximum bytes exceeded/);
      return;
    }
  }
}

async function call(method: string, params: Record<string, unknown>) {
  const response = await rpc(cluster.url, { dialect: '1.0', method, params });
  const { result, error } = (await response.json()) as { result?: { task: Task }; error?: { code: number } };
  return { status: response.status, retryAfter: response.headers.get('retry-after'), result, error };
}

async function send(text: string, taskId?: string): Promise<Task> {
  const message = userMessage(text, { ...(taskId && { taskId }) });
  const { result, error } = await call('SendMessage', { message });
  assert.equal(error, undefined);
  return result!.task;
}

test('a task that waits for its client outlives a log and an index that others fill three times, and is answered', {
  timeout: 240_000,
}, async () => {
  const restore = [await asking.limitBytes('A2A_LOG', FACTS_BYTES), await asking.limitBytes('KV_hopline_tasks', INDEX_BYTES)];
  const asked = await send('deploy');
  assert.equal(asked.status.state, 'TASK_STATE_INPUT_REQUIRED');
  const first = await until(() => log.tasks.get(asked.id));
  const entry = async () => (await log.tasks.get(asked.id))!;
  const isSafe = async () =>
    (await entry()).value.startSeq >= copyForwardBelow(await log.facts.extent()) &&
    (await entry()).revision >= copyForwardBelow(await log.tasks.extent());
  const filled = async () => {
    const [facts, index] = [await log.facts.extent(), await log.tasks.extent()];
    return facts.firstSeq > first.value.startSeq * 3 && index.firstSeq > first.revision && facts.fill > 1 - COPY_FORWARD_MARGIN;
  };
  for (let task = 1; task <= 400 && !(await filled()); task++) {
    await send('fill');
    await until(isSafe);
  }
  assert.ok(await filled(), 'the log and the index have removed their oldest records');
  const answered = await send('prod', asked.id);
  assert.equal(answered.status.state, 'TASK_STATE_COMPLETED', JSON.stringify(answered.status));
  assert.equal(answered.history?.[0]?.parts[0]?.text, 'deploy');
  for (const one of restore) await one();
});

test('a task whose facts are gone is refused, and a message cannot start it again', { timeout: 120_000 }, async () => {
  const asked = await send('deploy');
  // Waits for the relay's index entry, which shows a later relay that the task had facts.
  await until(async () => ((await log.tasks.get(asked.id))?.value.generation ?? 0) > 0);
  await cluster.relays[0]!.kill();
  await (await jetstreamManager(asking.nc)).streams.purge('A2A_LOG');
  await cluster.relays[0]!.start();
  const message = { messageId: 'late', role: 'ROLE_USER', parts: [{ text: 'prod' }], taskId: asked.id };
  assert.equal((await call('SendMessage', { message })).error?.code, TASK_NOT_FOUND);
  assert.equal((await send('other')).status.state, 'TASK_STATE_COMPLETED');
  assert.equal(await log.facts.last(asked.id), undefined);
});

for (const bucket of ['push_configs', 'push_progress'] as const) {
  test(`a webhook is refused with 503 and Retry-After while KV_hopline_${bucket} is full`, { timeout: 120_000 }, async () => {
    const asked = await send('deploy');
    const webhook = { taskId: asked.id, id: 'hook', url: 'http://127.0.0.1:18080/hook' };
    const restore = await asking.limitBytes(`KV_hopline_${bucket}`, 4_096);
    await fillBucket(bucket);
    const refused = await call('CreateTaskPushNotificationConfig', webhook);
    assert.deepEqual([refused.status, refused.retryAfter !== null], [503, true], JSON.stringify(refused));
    assert.equal((await log.pushConfigs.under(asked.id)).length, 0);
    await restore();
    assert.equal((await call('CreateTaskPushNotificationConfig', webhook)).error, undefined);
  });
}
