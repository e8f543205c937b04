import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, test } from 'node:test';
import { DIALECTS, Fold } from '@hopline/a2a';
import type { Log } from '@hopline/log';
import { openJetStreamLog } from '@hopline/log-jetstream';
import { countingTokens, startCountingAgent } from '../support/agents/counting-agent.ts';
import type { RemoteAgent } from '../support/agents/remote-agent.ts';
import { Cluster } from '../support/cluster/cluster.ts';
import { type Notification, received, startWebhook, type Webhook } from '../support/webhooks/webhook.ts';
import { deliveryOutcomeOf, finalStateOf, putWebhookConfig, startTask } from '../support/webhooks/webhook-delivery.ts';

/** Six seconds of text: long enough to kill a notifier in mid-stream and for a takeover. */
const TOKENS = countingTokens(300);
const TASKS = 6;
/** A takeover repeats at most one delivery of a task. On a loaded machine late heartbeats cause more than one takeover. */
const REPEATS_MAX = 3;

let remote: RemoteAgent;
let cluster: Cluster;
let log: Log;

before(async () => {
  remote = await startCountingAgent(TOKENS, 18);
  cluster = await Cluster.start({
    agents: [{ name: 'counter', adapter: 'a2a', url: remote.url }],
    profile: 'transparent',
    notifiers: 2,
    env: { HOPLINE_WEBHOOK_ALLOW: '127.0.0.1', HOPLINE_WEBHOOK_HTTP: 'true', HOPLINE_WEBHOOK_RETRY_MS_BASE: '100' },
  });
  log = await openJetStreamLog({ servers: cluster.nats.url, name: 'test' });
});

after(async () => {
  await log?.close();
  await cluster?.[Symbol.asyncDispose]();
  await remote?.close();
});

/** Runs tasks with webhooks, calls `disturb` in mid-stream, and returns the notifications of each webhook. */
async function deliverThrough(webhook: Webhook, disturb: () => Promise<void>): Promise<Notification[][]> {
  const tasks = Array.from({ length: TASKS }, () => randomUUID());
  const configs = await Promise.all(tasks.map(taskId => putWebhookConfig(log, { taskId, url: `${webhook.url}/${taskId}` })));
  await Promise.all(tasks.map(taskId => startTask(cluster.url, taskId)));
  await webhook.until(() => tasks.every(taskId => webhook.accepted(`/${taskId}`).length >= 4));
  await disturb();
  for (const taskId of tasks) assert.equal(await finalStateOf(log, taskId), 'TASK_STATE_COMPLETED');
  for (const one of configs) assert.equal(await deliveryOutcomeOf(log, one), 'delivered');
  return tasks.map(taskId => webhook.accepted(`/${taskId}`));
}

function assertWhole(list: Notification[]): number {
  const { kept, repeats } = received(list);
  const fold = new Fold();
  for (const { body } of kept) {
    const decoded = DIALECTS['1.0'].decodeEvent(body);
    assert.ok('event' in decoded);
    fold.add(decoded.event);
  }
  assert.deepEqual(fold.violations, []);
  assert.equal(fold.textOf('response'), TOKENS.join(''));
  assert.ok(fold.ended);
  return repeats;
}

test('after a kill of a notifier in mid-stream the other delivers everything in order, with bounded repeats [S3-24 S3-25]', {
  timeout: 90_000,
}, async t => {
  await using webhook = await startWebhook(() => ({ afterMs: 15 }));
  const lists = await deliverThrough(webhook, async () => {
    await cluster.notifiers[0]!.kill();
  });
  const repeats = lists.map(assertWhole);
  t.diagnostic(`repeats per task: ${repeats}`);
  assert.ok(Math.max(...repeats) <= REPEATS_MAX, `${repeats}`);
  await cluster.notifiers[0]!.start();
});

test('a notifier resumed after a takeover sends nothing new: its repeats equal earlier deliveries', {
  timeout: 90_000,
}, async t => {
  await using webhook = await startWebhook(() => ({ afterMs: 15 }));
  const lists = await deliverThrough(webhook, async () => {
    const [, paused] = cluster.notifiers;
    const before = webhook.notifications.length;
    paused!.pause();
    try {
      // Deliveries for all tasks resume after the other notifier has taken over.
      await webhook.until(() => new Set(webhook.notifications.slice(before).map(({ path }) => path)).size === TASKS);
    } finally {
      paused!.resume();
    }
  });
  const repeats = lists.map(assertWhole);
  t.diagnostic(`repeats per task: ${repeats}`);
  assert.ok(Math.max(...repeats) <= REPEATS_MAX, `${repeats}`);
});

test('webhooks get everything in order over a restart of nats-server in mid-stream', { timeout: 90_000 }, async () => {
  await using webhook = await startWebhook();
  const lists = await deliverThrough(webhook, () => cluster.nats.restart());
  for (const list of lists) assertWhole(list);
});

test('another notifier continues the webhooks of a draining one, without missing notifications', { timeout: 90_000 }, async t => {
  await using webhook = await startWebhook();
  const lists = await deliverThrough(webhook, () => cluster.notifiers[0]!.kill('SIGTERM'));
  const repeats = lists.map(assertWhole);
  t.diagnostic(`repeats per task: ${repeats}`);
  assert.ok(Math.max(...repeats) <= REPEATS_MAX, `${repeats}`);
  await cluster.notifiers[0]!.start();
});
