import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { after, before, describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { Layouts, rawSubject, shardOf, workFilter } from '@hopline/events';
import { freePort } from '@hopline/local-cluster';
import { FACTS_STREAM, INPUTS_STREAM, openJetStreamLog, WORK_STREAM } from '@hopline/log-jetstream';
import { AckPolicy, type ConsumerInfo, jetstreamManager } from '@nats-io/jetstream';
import { connect, type NatsConnection } from '@nats-io/transport-node';
import { until } from '../kit/until.ts';
import { countingTokens } from '../support/agents/counting-agent.ts';
import { type RemoteAgent, type RemoteAgentOptions, startRemoteAgent } from '../support/agents/remote-agent.ts';
import { collect, frames, rpc } from '../support/cluster/a2a-stream.ts';
import { Cluster, SHARDS } from '../support/cluster/cluster.ts';
import { startWebhook } from '../support/webhooks/webhook.ts';
import { finalStateOf, putWebhookConfig, startTask } from '../support/webhooks/webhook-delivery.ts';
import { type Prometheus, startMonitoredNats, startPrometheus, withoutPrometheus } from './prometheus-server.ts';

/**
 * The shipped rules, unchanged, in a real Prometheus that observes a cluster from its first second: each fault is caused once, and its
 * alert must follow. If a rule delays its alert for minutes, or a fault would take a minute of full load, the alert need only be pending
 * here. infra/observe/rules.test.ts tests that such an alert fires afterwards.
 */
const ALERTS_FILE = new URL('../../infra/helm/hopline/rules/alerts.yaml', import.meta.url);
const ALERT_MS_MAX = 420_000;
/** Prometheus evaluates the rules every second. Each question costs it, and this process, as much as the evaluation of a rule. */
const LOOK_MS = 500;

/** More than the text objective: 0.512 s. */
const VIEWER_PAUSE_MS = 1_500;
/** More than the objectives of the first token (4.096 s) and of the wait for a slot (5 s). */
const LATE_MS = 6_000;
const LAYOUTS = Layouts.one(SHARDS);
const SLOTS = 4;
/** Well above the limit of HoplineShardLag. A relay reads 512 records in one round trip to NATS, so that the limit is exceeded for many scrapes. */
const FLOOD_RECORDS = 40_000;
const SLOW_NATS_MS = 200;
const CONFLICT_EVERY_MS = 500;
/** SAMPLES_MIN and LATE_MIN of the rules, plus a margin. */
const SAMPLES = 22;
const FAILURES = 7;
/** HoplineWebhookFails fires after an hour. */
const FAILING_MS = 2 * 3_600_000;

/** A metric of the kubelet, and a full disk, which `npm run traffic` causes; rules.test.ts covers both. */
const OF_KUBERNETES = ['HoplineNatsVolumeNearlyFull', 'HoplineNatsUnhealthy'];
/** Ages of minutes and hours, which rules.test.ts covers. */
const OF_AGES = ['HoplineInputsOld', 'HoplineWebhooksLate', 'HoplineRetentionNear', 'HoplineAgentSilent'];
/** No service of this cluster has three processes; rules.test.ts covers it. */
const OF_COUNTS = ['HoplineProcessesMissing'];
/** No service of this cluster has a certificate; rules.test.ts covers the rule, and certificate-expiry.test.ts of lifecycle the metric. */
const OF_CERTIFICATES = ['HoplineCertificateExpires'];
/** No disk of this cluster is full; rules.test.ts covers the rule, and append-health.test.ts of log-jetstream the check. */
const OF_DISKS = ['HoplineWritesFail'];
/** No ingress of this cluster has credentials; rules.test.ts covers the rule, and authenticator.test.ts of endpoint the metric. */
const OF_CREDENTIALS = ['HoplineCredentialsOld'];
/** test/faults/lost-facts.test.ts causes it, because afterwards the log must be restored. */
const OF_LOST_FACTS = ['HoplineFactsLost'];

const seen = new Set<string>();
const stack = new AsyncDisposableStack();
let cluster: Cluster;
let prometheus: Prometheus;
let nc: NatsConnection;

describe('alerts of a live cluster', { skip: withoutPrometheus }, () => {
  before(async () => {
    const { nats, exporterPort } = await startMonitoredNats(stack);
    const counter = await startAgent({ dialect: '0.3', script: slowCount });
    const quick = await startAgent({ dialect: '0.3', script: [{ token: 'quick' }, { complete: true }] });
    const late = await startAgent({ dialect: '0.3', script: [{ pause: LATE_MS }, { token: 'late' }, { complete: true }] });
    const broken = await startAgent({ dialect: '0.3', script: [{ fail: true }] });
    cluster = stack.use(
      await Cluster.start({
        shards: SHARDS,
        nats,
        proxied: true,
        relays: 2,
        ingresses: 2,
        notifiers: 1,
        agents: [
          { name: 'counter', adapter: 'a2a', url: counter.url, default: true },
          { name: 'quick', adapter: 'a2a', url: quick.url },
          { name: 'late', adapter: 'a2a', url: late.url },
          { name: 'broken', adapter: 'a2a', url: broken.url },
          { name: 'deadly', adapter: 'module', path: fileURLToPath(import.meta.resolve('../support/agents/crashing-agent.ts')) },
        ],
        env: {
          HOPLINE_PUSH: 'true',
          HOPLINE_WEBHOOK_ALLOW: '127.0.0.1',
          HOPLINE_WEBHOOK_HTTP: 'true',
          HOPLINE_SLOTS: String(SLOTS),
          HOPLINE_ACK_WAIT_MS: '1500',
          // On a busy machine the dying agent restarts so slowly that the supervisor would abandon it.
          HOPLINE_AGENT_GONE_MS: '600000',
          HOPLINE_CODE_USER: 'same',
          // A collector that refuses connections, so that spans are lost from the beginning.
          OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${await freePort()}`,
        },
      }),
    );
    nc = await connect({ servers: nats.url });
    stack.defer(() => nc.close());
    prometheus = await startPrometheus(stack, { cluster, exporterPort });
    // Counters must have been scraped at 0, and the limit of HoplineShardsWithoutRelay is evaluated once a minute.
    await evaluated('all shards within the last hour', async () => {
      const [most] = await prometheus.query('max_over_time(count(count by (shard) (hopline_shard_lag))[1h:1m])');
      return Number(most?.value[1]) >= SHARDS;
    });
  });
  after(() => stack.disposeAsync());

  test('HoplineSpansLost: the collector is dead', async () => {
    await collect(cluster.url, questionTo('counter'));
    await reaches('HoplineSpansLost', 'pending');
  });

  test('HoplineTextLate, HoplineEventLoopSlow: an ingress freezes repeatedly while it streams', async () => {
    const [ingress] = cluster.ingresses;
    const streams = Promise.all(Array.from({ length: 4 }, () => collect(ingress!.url, questionTo('counter'))));
    const isOver = { yes: false };
    streams.finally(() => (isOver.yes = true)).catch(() => {});
    while (!isOver.yes) {
      ingress!.pause();
      await sleep(VIEWER_PAUSE_MS);
      ingress!.resume();
      await sleep(VIEWER_PAUSE_MS / 10);
    }
    await streams;
    await reaches('HoplineTextLate');
    await reaches('HoplineTextBudget', 'pending');
    await reaches('HoplineEventLoopSlow', 'pending');
  });

  test('HoplineFirstTokenLate, HoplineAgentBusy: an agent is slow, and more tasks wait for it than it has slots', async () => {
    await askFirst('quick', 'hopline_time_to_first_token_seconds_count');
    for (let turn = 0; turn < SAMPLES; turn++) await collect(cluster.url, questionTo('quick'));
    await askFirst('late', 'hopline_time_to_first_token_seconds_count');
    await Promise.all(Array.from({ length: 3 * SLOTS }, () => collect(cluster.url, questionTo('late'))));
    await reaches('HoplineFirstTokenLate');
    await reaches('HoplineFirstTokenBudget', 'pending');
    await reaches('HoplineAgentBusy', 'pending');
  });

  test('HoplineAgentFails: an agent fails every turn', async () => {
    await askFirst('broken', 'hopline_turns_ended_total');
    for (let turn = 0; turn < FAILURES; turn++) await collect(cluster.url, questionTo('broken'));
    await reaches('HoplineAgentFails');
  });

  test('HoplineDeadLetters: work kills its process in each attempt', async () => {
    const deadly = cluster.agents.at(-1)!;
    const isOver = { yes: false };
    const task = collect(cluster.url, questionTo('deadly')).finally(() => (isOver.yes = true));
    while (!isOver.yes) {
      if (deadly.hasEnded) await deadly.start();
      await sleep(100);
    }
    await task;
    await reaches('HoplineDeadLetters');
  });

  test('HoplineWebhooksAbandoned: a webhook answers 410', async () => {
    await using webhook = await startWebhook(() => ({ status: 410 }));
    const log = await openJetStreamLog({ servers: cluster.nats.url, name: 'test' });
    const taskId = randomUUID();
    await putWebhookConfig(log, { taskId, url: webhook.url });
    await startTask(cluster.url, taskId);
    await finalStateOf(log, taskId);
    await log.close();
    await reaches('HoplineWebhooksAbandoned');
  });

  test('HoplineWebhookFails: the attempts of a webhook have failed for two hours', async () => {
    await using webhook = await startWebhook(() => ({ status: 500 }));
    const log = await openJetStreamLog({ servers: cluster.nats.url, name: 'test' });
    const taskId = randomUUID();
    const { key } = await putWebhookConfig(log, { taskId, url: webhook.url });
    const { revision: config } = (await log.pushConfigs.get(key))!;
    const failingSince = Date.now() - FAILING_MS;
    await log.pushProgress.create(key, { config, generation: 0, seq: 0, failures: 1, failingSince });
    await startTask(cluster.url, taskId);
    await reaches('HoplineWebhookFails');
    await log.close();
  });

  test('HoplineGaps: a client resumes at events that are gone', async () => {
    const [here, there] = cluster.ingresses;
    for await (const { id, result, event } of frames(here!.url, questionTo('counter'))) {
      if (!('artifactUpdate' in event)) continue;
      const taskId = String(result.taskId);
      const { streams } = await jetstreamManager(nc);
      const filter = `a2a.log.*.${taskId}`;
      const stored = async () => {
        const { subjects = {} } = (await streams.info(FACTS_STREAM, { subjects_filter: filter })).state;
        return Object.values(subjects).reduce((sum, count) => sum + count, 0);
      };
      const before = await stored();
      // The newest record stays, so that another later one must be there to be missed.
      await until(async () => (await stored()) >= before + 2, 'later events are stored');
      await streams.purge(FACTS_STREAM, { filter, keep: 1 });
      const stream = frames(there!.url, { method: 'tasks/resubscribe', params: { id: taskId }, lastEventId: id });
      await stream.next();
      await stream.return(undefined);
      break;
    }
    await reaches('HoplineGaps');
  });

  test('HoplineShardLag: the connection to NATS is slow, and a shard has many inputs', async t => {
    const { streams, consumers } = await jetstreamManager(nc);
    const newest = await streams.getMessage(INPUTS_STREAM, { last_by_subj: 'a2a.raw.*.*.client' });
    const unread = async () =>
      (await consumers.list(INPUTS_STREAM).next()).reduce((sum, { num_pending: pending }) => sum + pending, 0);
    const proxy = cluster.natsProxy!;
    t.after(() => proxy.delay(0));
    proxy.delay(SLOW_NATS_MS);
    const isOver = { yes: false };
    const alert = reaches('HoplineShardLag', 'pending').finally(() => (isOver.yes = true));
    // The fault lasts until it is seen: on a loaded machine a flood may be read between two scrapes.
    while (!isOver.yes) {
      for (let record = 0; record < FLOOD_RECORDS; record++) {
        nc.publish(newest!.subject, newest!.data);
        if (record % 5_000 === 0) await nc.flush();
      }
      await evaluated('the flood is read', async () => isOver.yes || (await unread()) === 0);
    }
    await alert;
  });

  test('HoplineRecordsRejected: a stored input is not a record', async () => {
    nc.publish(rawSubject(randomUUID(), LAYOUTS, 'client'), 'no record');
    await reaches('HoplineRecordsRejected');
  });

  test('HoplineShardRestarts: another writer appends facts', async () => {
    const { streams } = await jetstreamManager(nc);
    const isOver = { yes: false };
    const alert = reaches('HoplineShardRestarts').finally(() => (isOver.yes = true));
    // All tasks are in one shard, because the rule counts the restarts of each shard.
    while (!isOver.yes) {
      const taskId = await startTask(cluster.url, taskIdInShard(0));
      const ofTask = { last_by_subj: `a2a.log.*.${taskId}` };
      const newest = await until(() => streams.getMessage(FACTS_STREAM, ofTask));
      nc.publish(newest.subject, newest.data);
      // Conflicts before the shard has restarted count once, and each of these tasks keeps a slot for seconds.
      await sleep(CONFLICT_EVERY_MS);
    }
    await alert;
  });

  test('HoplineUnknownOnLog: another program creates a durable consumer', async () => {
    const { consumers } = await jetstreamManager(nc);
    await consumers.add(FACTS_STREAM, { durable_name: 'dos' });
    await reaches('HoplineUnknownOnLog');
  });

  test('HoplineNatsNearlyFull, HoplineLogShortage: the work queue has no room', async () => {
    const { streams, consumers } = await jetstreamManager(nc);
    // Work for an agent that has left. No other work may be in the queue, because its end would make room.
    const filter = workFilter('agent.absent');
    await consumers.add(WORK_STREAM, { durable_name: 'agent-absent', filter_subject: filter, ack_policy: AckPolicy.Explicit });
    // It has the form of a record: a full queue is searched for other payloads, which are removed.
    nc.publish(`a2a.work.agent.absent.${randomUUID()}`, JSON.stringify({ v: 1, text: 'x'.repeat(1_000) }));
    await nc.flush();
    await evaluated('only this item', async () => (await streams.info(WORK_STREAM)).state.messages === 1);
    const { state, config } = await streams.info(WORK_STREAM);
    await streams.update(WORK_STREAM, { max_bytes: state.bytes + 1 });
    await reaches('HoplineNatsNearlyFull', 'pending');
    await reaches('HoplineLogShortage');
    await streams.update(WORK_STREAM, { max_bytes: config.max_bytes });
    // Otherwise this item would raise HoplineWorkNotTaken.
    await consumers.delete(WORK_STREAM, 'agent-absent');
    await streams.purge(WORK_STREAM, { filter });
  });

  test('HoplineRequestsFail, HoplineRequestsBudget, HoplineNatsAway: NATS cannot be reached', async () => {
    cluster.natsProxy!.cut();
    const isOver = { yes: false };
    const alert = reaches('HoplineRequestsFail', 'pending').finally(() => (isOver.yes = true));
    while (!isOver.yes) {
      const ask = () => rpc(cluster.url, questionTo('counter')).then(response => response.text());
      await Promise.allSettled(Array.from({ length: FAILURES }, ask));
      await sleep(200);
    }
    await alert;
    await reaches('HoplineRequestsBudget', 'pending');
    await reaches('HoplineNatsAway');
    cluster.natsProxy!.mend();
    await evaluated('the ingress is ready', async () => (await fetch(`${cluster.url}/readyz`)).ok);
  });

  describe('most services die', () => {
    // The rules delay these alerts for one or two minutes, so they wait together.
    before(async () => {
      const { consumers } = await jetstreamManager(nc);
      const quick = cluster.agents.find(({ spec }) => spec.instance === 'sub-agent-quick');
      await quick!.kill();
      const { params } = questionTo('quick');
      await rpc(cluster.url, { params: { ...params, configuration: { blocking: false } } });
      // The supervisor queues the question for its agent, so it must die later.
      const waits = ({ name, num_pending: pending }: ConsumerInfo) => name.startsWith('agent-quick') && pending > 0;
      await until(async () => (await consumers.list(WORK_STREAM).next()).some(waits), 'the question waits for its agent');
      await Promise.all([cluster.supervisors[0], cluster.notifiers[0], cluster.relays[1]].map(service => service!.kill()));
      await reaches('HoplineOwnersLost');
      await Promise.all([cluster.relays[0]!, ...cluster.ingresses].map(service => service.kill()));
    });

    test('HoplineSupervisorsGone, HoplineWorkNotTaken, HoplineShardsWithoutNotifier, HoplineAgentGone: supervisor, notifier and an agent die, a question arrives', async () => {
      await reaches('HoplineSupervisorsGone');
      await reaches('HoplineWorkNotTaken', 'pending');
      await reaches('HoplineShardsWithoutNotifier');
      await reaches('HoplineAgentGone', 'pending');
    });

    test('HoplineOwnersLost, HoplineProcessDown: a relay dies and does not come back', async () => {
      await reaches('HoplineOwnersLost');
      await reaches('HoplineProcessDown');
    });

    test('HoplineShardsWithoutRelay: the last relay dies', () => reaches('HoplineShardsWithoutRelay'));

    test('HoplineIngressGone: the last ingresses die', () => reaches('HoplineIngressGone'));
  });

  test('every alert of the rules was caused here', () => {
    const alerts = [...readFileSync(ALERTS_FILE, 'utf8').matchAll(/- alert: (\w+)/g)].map(([, name]) => name!);
    const elsewhere = [
      ...OF_KUBERNETES,
      ...OF_AGES,
      ...OF_COUNTS,
      ...OF_CERTIFICATES,
      ...OF_DISKS,
      ...OF_CREDENTIALS,
      ...OF_LOST_FACTS,
    ];
    assert.deepEqual([...seen].sort(), alerts.filter(name => !elsewhere.includes(name)).sort());
  });
});

function questionTo(agent: string) {
  const message = { kind: 'message', role: 'user', messageId: randomUUID(), parts: [{ kind: 'text', text: 'go' }] };
  return { params: { message: { ...message, metadata: { agent } } } };
}

function taskIdInShard(shard: number): string {
  for (;;) {
    const taskId = randomUUID();
    if (shardOf(taskId, LAYOUTS) === shard) return taskId;
  }
}

function* slowCount() {
  for (const token of countingTokens(150)) {
    yield { token };
    yield { pause: 25 };
  }
  yield { complete: true as const };
}

async function startAgent(options: RemoteAgentOptions): Promise<RemoteAgent> {
  const agent = await startRemoteAgent(options);
  stack.defer(() => agent.close());
  return agent;
}

/**
 * Asks one question and waits until Prometheus has read its sample. increase() ignores the first value of a series: on an idle machine 22
 * answers end between two scrapes, and would all be in it.
 */
async function askFirst(agent: string, metric: string): Promise<void> {
  await collect(cluster.url, questionTo(agent));
  await evaluated(`${metric} of ${agent}`, async () => (await prometheus.query(`${metric}{agent="${agent}"} > 0`)).length > 0);
}

/** Waits until the alert fires; with `pending`, until its condition holds. */
async function reaches(alert: string, state: 'firing' | 'pending' = 'firing'): Promise<void> {
  const states = state === 'firing' ? 'firing' : 'firing|pending';
  const expr = `max_over_time(ALERTS{alertname="${alert}", alertstate=~"${states}"}[10m])`;
  await evaluated(`${alert} ${states}`, async () => (await prometheus.query(expr)).length > 0);
  seen.add(alert);
}

/** Waits for as long as the evaluation of a rule may take. */
async function evaluated(what: string, condition: () => Promise<boolean>): Promise<void> {
  await until(async () => (await condition()) || sleep(LOOK_MS, false), what, ALERT_MS_MAX);
}
