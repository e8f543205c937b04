import assert from 'node:assert/strict';
import { randomBytes, randomUUID } from 'node:crypto';
import { after, before, test } from 'node:test';
import { DIALECTS, Fold } from '@hopline/a2a';
import type { Log } from '@hopline/log';
import { openJetStreamLog } from '@hopline/log-jetstream';
import { jetstreamManager } from '@nats-io/jetstream';
import { connect } from '@nats-io/transport-node';
import { until } from '../kit/until.ts';
import { countingTokens, startCountingAgent } from '../support/agents/counting-agent.ts';
import type { RemoteAgent } from '../support/agents/remote-agent.ts';
import { Cluster } from '../support/cluster/cluster.ts';
import { rpc } from '../support/cluster/legacy-client.ts';
import { OtlpReceiver } from '../support/telemetry/otlp-receiver.ts';
import { generationOf, type Notification, received, startWebhook } from '../support/webhooks/webhook.ts';
import { deliveryOutcomeOf, finalStateOf, putWebhookConfig, startTask } from '../support/webhooks/webhook-delivery.ts';

const TOKENS = countingTokens(120);
const TEXT = TOKENS.join('');
const ATTEMPTS_MAX = 4;

const receiver = new OtlpReceiver();
let remote: RemoteAgent;
let cluster: Cluster;
let log: Log;

before(async () => {
  const endpoint = await receiver.start();
  remote = await startCountingAgent(TOKENS, 8);
  cluster = await Cluster.start({
    agents: [{ name: 'counter', adapter: 'a2a', url: remote.url }],
    profile: 'transparent',
    notifiers: 1,
    env: {
      HOPLINE_PUSH: 'true',
      HOPLINE_SECRETS_KEY: randomBytes(32).toString('base64'),
      HOPLINE_WEBHOOK_ALLOW: '127.0.0.1',
      HOPLINE_WEBHOOK_HTTP: 'true',
      HOPLINE_WEBHOOK_ATTEMPTS_MAX: String(ATTEMPTS_MAX),
      HOPLINE_WEBHOOK_RETRY_MS_BASE: '60',
      OTEL_EXPORTER_OTLP_ENDPOINT: endpoint,
      OTEL_BSP_SCHEDULE_DELAY: '200',
    },
  });
  log = await openJetStreamLog({ servers: cluster.nats.url, name: 'test' });
});

after(async () => {
  await log?.close();
  await cluster?.[Symbol.asyncDispose]();
  await remote?.close();
  await receiver.stop();
});

function foldOf(list: readonly Notification[], dialect: '1.0' | 'legacy'): Fold {
  const fold = new Fold();
  for (const { body } of list) {
    const decoded = DIALECTS[dialect].decodeEvent(body);
    assert.ok('event' in decoded, JSON.stringify(body));
    fold.add(decoded.event);
  }
  return fold;
}

const states = (list: readonly Notification[]): unknown[] =>
  list
    .map(({ body }) => (body.statusUpdate ?? body.task ?? body).status?.state)
    .filter((state, index, all) => state !== undefined && state !== all[index - 1]);

test('parallel tasks: each status and artifact is posted once, in order per task, with the complete text [S3-24 S4-24]', {
  timeout: 120_000,
}, async () => {
  await using webhook = await startWebhook();
  const tasks = Array.from({ length: 4 }, () => randomUUID());
  const configs = await Promise.all(
    tasks.map(taskId =>
      putWebhookConfig(log, {
        taskId,
        url: `${webhook.url}/${taskId}`,
        dialect: 'legacy',
        token: 'tok',
        authentication: { scheme: 'bearer' },
      }),
    ),
  );
  await Promise.all(tasks.map(taskId => startTask(cluster.url, taskId)));
  for (const one of configs) assert.equal(await deliveryOutcomeOf(log, one), 'delivered');
  for (const taskId of tasks) {
    const list = webhook.notifications.filter(({ path }) => path === `/${taskId}`);
    const { kept, repeats } = received(list);
    assert.equal(repeats, 0);
    assert.equal(generationOf(kept.at(-1)!), (await log.facts.last(taskId))!.record.aggregate.generation);
    assert.deepEqual(states(kept), ['submitted', 'working', 'completed']);
    const artifacts = kept.filter(({ body }) => body.type === 'taskArtifactUpdate');
    assert.equal(
      artifacts.map(({ body }) => body.artifact.parts.map((part: { text: string }) => part.text).join('')).join(''),
      TEXT,
    );
    assert.ok(artifacts.every(({ body }) => body.artifact.index === 0 && body.taskId === taskId));
    assert.ok(artifacts.length < TOKENS.length, 'posted content is coalesced');
    for (const { headers } of kept) {
      assert.equal(headers['x-a2a-notification-token'], 'tok');
      assert.equal(headers.authorization, 'bearer tok');
      assert.equal(headers['content-type'], 'application/json');
      assert.match(String(headers.traceparent), /^00-[0-9a-f]{32}-[0-9a-f]{16}-01$/);
    }
  }
});

test('a webhook gets its token and credentials, which the bucket holds encrypted', { timeout: 120_000 }, async () => {
  await using webhook = await startWebhook();
  const taskId = randomUUID();
  const secrets = { token: 'PLANTED-token', authentication: { schemes: ['Bearer'], credentials: 'PLANTED-credentials' } };
  const config = { id: taskId, pushNotificationConfig: { url: webhook.url, ...secrets } };
  assert.equal((await rpc(cluster.url, 'tasks/pushNotification/set', config)).error, undefined);
  const [stored] = await log.pushConfigs.under(taskId);
  await startTask(cluster.url, taskId);
  assert.equal(await deliveryOutcomeOf(log, { taskId, key: stored!.key }), 'delivered');
  const { headers } = webhook.accepted()[0]!;
  assert.deepEqual([headers['x-a2a-notification-token'], headers.authorization], ['PLANTED-token', 'Bearer PLANTED-credentials']);
  assert.match(stored!.value.sealed ?? '', /^1\./);
  const nc = await connect({ servers: cluster.nats.url });
  try {
    const streams = (await jetstreamManager(nc)).streams;
    const { state } = await streams.info('KV_hopline_push_configs');
    for (let seq = state.first_seq; seq <= state.last_seq; seq += 1) {
      const message = await streams.getMessage('KV_hopline_push_configs', { seq });
      assert.doesNotMatch(message?.string() ?? '', /PLANTED/);
    }
  } finally {
    await nc.close();
  }
});

test('1.0 webhooks get StreamResponses, 0.3 complete tasks; a late configuration gets all events from the start', {
  timeout: 120_000,
}, async () => {
  await using webhook = await startWebhook();
  const taskId = await startTask(cluster.url);
  const configs = [
    await putWebhookConfig(log, {
      taskId,
      id: 'a',
      url: `${webhook.url}/1.0`,
      authentication: { scheme: 'Bearer', credentials: 'cred' },
    }),
    await putWebhookConfig(log, { taskId, id: 'b', url: `${webhook.url}/0.3`, dialect: '0.3' }),
  ];
  for (const one of configs) assert.equal(await deliveryOutcomeOf(log, one), 'delivered');

  const events = received(webhook.accepted('/1.0')).kept;
  const fold = foldOf(events, '1.0');
  assert.deepEqual(fold.violations, []);
  assert.equal(fold.textOf('response'), TEXT);
  assert.ok('task' in events[0]!.body);
  assert.ok(events.every(({ headers }) => headers['content-type'] === 'application/a2a+json'));
  assert.ok(events.every(({ headers }) => headers.authorization === 'Bearer cred' && !('x-a2a-notification-token' in headers)));

  const tasks = received(webhook.accepted('/0.3')).kept;
  const texts = tasks.map(({ body }) => {
    assert.deepEqual([body.kind, body.id], ['task', taskId]);
    return (body.artifacts ?? [])
      .flatMap((one: { parts: { text: string }[] }) => one.parts.map(part => part.text))
      .join('') as string;
  });
  for (const [index, text] of texts.entries())
    assert.ok(text.startsWith(texts[index - 1] ?? ''), 'a later task contains the text of the earlier one');
  assert.equal(texts.at(-1), TEXT);
  assert.deepEqual(states(tasks), ['submitted', 'working', 'completed']);
});

test('a webhook that responds 500, 503 and 429 before 200 gets each event at least once, in order, and repeats are equal [S3-25]', {
  timeout: 120_000,
}, async () => {
  const failing = [500, 503, 429];
  // Every third notification is rejected first, and is repeated until it is accepted.
  await using webhook = await startWebhook(n => ({
    status: n % 4 === 0 ? 200 : n < 12 ? (failing[n % 3] ?? 500) : 200,
    headers: { 'retry-after': '0' },
  }));
  const taskId = await startTask(cluster.url);
  const config = await putWebhookConfig(log, { taskId, url: webhook.url });
  assert.equal(await deliveryOutcomeOf(log, config), 'delivered');
  const { repeats } = received(webhook.notifications);
  assert.ok(repeats >= 6, `${repeats} repeats`);
  const fold = foldOf(received(webhook.accepted()).kept, '1.0');
  assert.deepEqual(fold.violations, []);
  assert.equal(fold.textOf('response'), TEXT);
});

test('a dead webhook is abandoned after its attempts, with a log line and a counter, and its task is not affected [S3-25 C-21]', {
  timeout: 120_000,
}, async () => {
  await using webhook = await startWebhook(() => ({ status: 500 }));
  const taskId = randomUUID();
  const config = await putWebhookConfig(log, {
    taskId,
    url: `${webhook.url}/PLANTED-path?PLANTED-query`,
    token: 'PLANTED-token',
    authentication: { scheme: 'Bearer', credentials: 'PLANTED-credentials' },
  });
  await startTask(cluster.url, taskId);
  assert.equal(await deliveryOutcomeOf(log, config), 'abandoned');
  assert.equal(await finalStateOf(log, taskId), 'TASK_STATE_COMPLETED');
  assert.equal(webhook.notifications.length, ATTEMPTS_MAX);
  assert.equal(new Set(webhook.notifications.map(({ text }) => text)).size, 1, 'only the first event, repeated');
  assert.ok(await log.pushConfigs.get(config.key), 'the configuration remains readable');
  const [notifier] = cluster.notifiers;
  const abandoned = () =>
    notifier!.output
      .split('\n')
      .filter(line => line.includes('webhook abandoned') && line.includes(taskId) && line.endsWith('}'));
  // The outcome is stored before it is logged.
  await webhook.until(() => abandoned().length > 0);
  const lines = abandoned();
  assert.equal(lines.length, 1);
  const { host, trace_id: traceId } = JSON.parse(lines[0]!);
  assert.equal(host, new URL(webhook.url).host);
  assert.match(String(traceId), /^[0-9a-f]{32}$/, 'the line leads to the trace of the task');
  const failed = notifier!.output.split('\n').find(line => line.includes('webhook delivery failed') && line.includes(taskId));
  assert.equal(JSON.parse(failed!).trace_id, traceId);
  const metrics = await (await fetch(`${notifier!.url}/metrics`)).text();
  assert.match(metrics, /hopline_webhooks_abandoned_total\{service="notifier",reason="http_5xx"\} 1/);
  assert.match(metrics, /hopline_webhook_retries_total\{service="notifier"\} [1-9]/);
  assert.match(metrics, /hopline_hop_duration_seconds_count\{service="notifier",hop="webhook"\} [1-9]/);
});

test('a slow webhook delays neither its task nor another webhook of the task, and gets the same content', {
  timeout: 120_000,
}, async () => {
  const released = Promise.withResolvers<void>();
  await using slow = await startWebhook(() => ({ after: released.promise }));
  await using quick = await startWebhook();
  const taskId = randomUUID();
  const slowConfig = await putWebhookConfig(log, { taskId, id: 'slow', url: slow.url });
  const quickConfig = await putWebhookConfig(log, { taskId, id: 'quick', url: quick.url });
  await startTask(cluster.url, taskId);
  assert.equal(await finalStateOf(log, taskId), 'TASK_STATE_COMPLETED');
  assert.equal(await deliveryOutcomeOf(log, quickConfig), 'delivered');
  assert.equal(
    (await log.pushProgress.get(slowConfig.key))?.value.over,
    undefined,
    'delivery to the slow webhook is still running',
  );
  released.resolve();
  assert.equal(await deliveryOutcomeOf(log, slowConfig), 'delivered');
  const lists = [slow, quick].map(webhook => received(webhook.accepted()).kept);
  for (const list of lists) assert.equal(foldOf(list, '1.0').textOf('response'), TEXT);
  const { generation } = (await log.facts.last(taskId))!.record.aggregate;
  assert.ok(lists[0]!.length < generation, 'waiting events were coalesced');
});

test('a deleted configuration gets no more notifications; another one of the same task gets all', {
  timeout: 120_000,
}, async () => {
  const deleted = Promise.withResolvers<void>();
  // The second notification stays in flight until the configuration is deleted; the task has at least one more event.
  await using webhook = await startWebhook((n, path) => (path === '/gone' && n === 2 ? { after: deleted.promise } : {}));
  const taskId = randomUUID();
  const gone = await putWebhookConfig(log, { taskId, id: 'gone', url: `${webhook.url}/gone` });
  const stays = await putWebhookConfig(log, { taskId, id: 'stays', url: `${webhook.url}/stays` });
  await startTask(cluster.url, taskId);
  await webhook.until(() => webhook.accepted('/gone').length === 2);
  await log.pushConfigs.delete(gone.key);
  assert.equal(await deliveryOutcomeOf(log, stays), 'delivered');
  deleted.resolve();
  // Waits as long as the remaining notifications would take.
  const later = await putWebhookConfig(log, { taskId, id: 'later', url: `${webhook.url}/later` });
  assert.equal(await deliveryOutcomeOf(log, later), 'delivered');
  assert.equal(webhook.accepted('/gone').length, 2);
  for (const path of ['/stays', '/later'])
    assert.equal(foldOf(received(webhook.accepted(path)).kept, '1.0').textOf('response'), TEXT);
  assert.equal((await log.pushProgress.get(gone.key))?.value.over, undefined);
});

test('a webhook configured with the task, as in the S4 example, gets all notifications [S4-22]', {
  timeout: 120_000,
}, async () => {
  await using webhook = await startWebhook();
  const taskId = randomUUID();
  const message = { role: 'user', parts: [{ type: 'text', text: 'count' }] };
  const pushNotification = { url: `${webhook.url}/inline`, token: 'PLANTED-inline', authentication: { schemes: ['bearer'] } };
  const answer = await rpc(cluster.url, 'tasks/send', { id: taskId, message, pushNotification });
  assert.equal(answer.result.id, taskId);
  await webhook.until(() => webhook.accepted().some(({ body }) => body.status?.state === 'completed'));
  const { kept } = received(webhook.accepted());
  assert.equal(foldOf(kept, 'legacy').textOf('response'), TEXT);
  assert.ok(kept.every(({ headers }) => headers.authorization === 'bearer PLANTED-inline'));
});

test('spans, metrics and log lines have no token, credential, path or query of a webhook; each delivery is a span [C-21]', async () => {
  const pushes = () => receiver.spans.filter(({ name }) => name === 'send_push_notification');
  const strangers = () => {
    const byId = new Map(receiver.spans.map(span => [span.spanId, span]));
    return pushes().filter(
      span => span.service !== 'hopline-notifier' || byId.get(span.parentId ?? '')?.service !== 'hopline-relay',
    );
  };
  await until(
    () => pushes().length > 0 && strangers().length === 0,
    () => `the parents of ${JSON.stringify(strangers())}`,
  );
  for (const body of receiver.bodies) assert.ok(!body.includes('PLANTED'));
  for (const service of cluster.services) {
    assert.ok(!service.output.includes('PLANTED'), service.spec.instance);
    assert.ok(!(await (await fetch(`${service.url}/metrics`)).text()).includes('PLANTED'), service.spec.instance);
  }
});
