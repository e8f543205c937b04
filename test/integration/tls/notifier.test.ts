import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import type { Log } from '@hopline/log';
import { openJetStreamLog } from '@hopline/log-jetstream';
import { until } from '../../kit/until.ts';
import { countingTokens, startCountingAgent } from '../../support/agents/counting-agent.ts';
import type { RemoteAgent } from '../../support/agents/remote-agent.ts';
import { Cluster } from '../../support/cluster/cluster.ts';
import type { ServiceProcess } from '../../support/cluster/service-process.ts';
import { generationOf, received, startWebhook } from '../../support/webhooks/webhook.ts';
import { deliveryOutcomeOf, finalStateOf, putWebhookConfig, startTask } from '../../support/webhooks/webhook-delivery.ts';
import { createAuthority } from './certificates.ts';

const authority = createAuthority('Hopline test authority');
let remote: RemoteAgent;
let cluster: Cluster;
let log: Log;
let folder: string;

before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'hopline-webhook-'));
  await writeFile(join(folder, 'ca.pem'), authority.cert);
  remote = await startCountingAgent(countingTokens(20), 5);
  cluster = await Cluster.start({
    agents: [{ name: 'counter', adapter: 'a2a', url: remote.url }],
    profile: 'transparent',
    notifiers: 1,
    env: { HOPLINE_PUSH: 'true', HOPLINE_WEBHOOK_ALLOW: '127.0.0.1', HOPLINE_WEBHOOK_RETRY_MS_BASE: '200' },
  });
  log = await openJetStreamLog({ servers: cluster.nats.url, name: 'test' });
});

after(async () => {
  await log?.close();
  await cluster?.[Symbol.asyncDispose]();
  await remote?.close();
  await rm(folder, { recursive: true });
});

/** Restarts the notifier with other settings. */
async function restarted(env: Record<string, string>): Promise<ServiceProcess> {
  const [notifier] = cluster.notifiers;
  assert.ok(notifier);
  await notifier.kill();
  for (const name of ['HOPLINE_WEBHOOK_CA_FILE', 'NODE_EXTRA_CA_CERTS']) delete notifier.spec.env[name];
  Object.assign(notifier.spec.env, env);
  await notifier.start();
  return notifier;
}

/** Delivers to a webhook of a private authority only after `setting` names the authority. */
async function assertDeliveredAfter(setting: string): Promise<void> {
  await restarted({});
  const webhook = await startWebhook(() => ({}), authority.issue('webhook', ['127.0.0.1']));
  await using _closed = webhook;
  const taskId = await startTask(cluster.url);
  const config = await putWebhookConfig(log, { taskId, url: `${webhook.url}/PLANTED-PATH`, token: 'PLANTED-TOKEN' });
  assert.equal(await finalStateOf(log, taskId), 'TASK_STATE_COMPLETED');
  const progress = async () => (await log.pushProgress.get(config.key))?.value;
  await until(async () => ((await progress())?.failures ?? 0) >= 2, 'the delivery is retried');
  assert.deepEqual([(await progress())?.over, webhook.notifications.length], [undefined, 0]);
  const [notifier] = cluster.notifiers;
  const logged = () =>
    notifier!.output
      .split('\n')
      .find(line => line.includes('webhook delivery failed') && line.includes(taskId) && line.endsWith('}'));
  await until(() => logged() !== undefined);
  const line = JSON.parse(logged()!);
  assert.deepEqual([line.reason, line.code], ['certificate', 'UNABLE_TO_VERIFY_LEAF_SIGNATURE']);
  assert.equal(line.host, new URL(webhook.url).host);
  assert.doesNotMatch(notifier!.output, /PLANTED/);

  await restarted({ [setting]: join(folder, 'ca.pem') });
  assert.equal(await deliveryOutcomeOf(log, config), 'delivered');
  const { kept, repeats } = received(webhook.notifications);
  assert.equal(repeats, 0);
  assert.equal(generationOf(kept.at(-1)!), (await log.facts.last(taskId))!.record.aggregate.generation);
  assert.ok(kept.every(({ headers }) => headers['x-a2a-notification-token'] === 'PLANTED-TOKEN'));
}

test('a webhook of a private authority gets all notifications once HOPLINE_WEBHOOK_CA_FILE names it, without delaying the task [S3-25]', {
  timeout: 120_000,
}, async () => {
  await assertDeliveredAfter('HOPLINE_WEBHOOK_CA_FILE');
});

test('NODE_EXTRA_CA_CERTS adds authorities as well [S3-25]', { timeout: 120_000 }, async () => {
  await assertDeliveredAfter('NODE_EXTRA_CA_CERTS');
});
