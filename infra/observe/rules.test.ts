import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempDisposableSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

const RULES = fileURLToPath(new URL('../helm/hopline/rules/', import.meta.url));
const FILES = ['recording.yaml', 'alerts.yaml'].map(name => join(RULES, name));
const PROMTOOL = process.env.PROMTOOL ?? 'promtool';
const isMissing = spawnSync(PROMTOOL, ['--version']).error !== undefined;
const skip = isMissing && 'no promtool on PATH (Debian: apt install prometheus)';

const bucket = (metric: string, labels: string, fast: string, all: string, le: string) => ({
  [`${metric}_bucket{job="hopline", ${labels}le="${le}"}`]: fast,
  [`${metric}_bucket{job="hopline", ${labels}le="+Inf"}`]: all,
  [`${metric}_count{job="hopline"${labels === '' ? '' : `, ${labels.replace(/, $/, '')}`}}`]: all,
});

/** A healthy cluster of one relay and one agent. Each series has one value a minute. */
const QUIET: Record<string, string> = {
  'up{job="hopline", instance="relay-1"}': '1x90',
  'process_start_time_seconds{job="hopline", instance="relay-1"}': '-86400x90',
  'hopline_gaps_total{job="hopline", service="ingress"}': '0x90',
  'hopline_records_rejected_total{job="hopline", reason="too_deep"}': '0x90',
  'hopline_log_events_total{job="hopline", service="relay", kind="facts_lost"}': '0x90',
  // Every restart of NATS raises this counter.
  'hopline_log_events_total{job="hopline", service="relay", kind="reconnected"}': '0+1x90',
  'hopline_dead_letters_total{job="hopline", agent="files", reason="attempts_exhausted"}': '0x90',
  'hopline_webhooks_abandoned_total{job="hopline", reason="http_5xx"}': '0x90',
  'hopline_log_shortages_total{job="hopline", stream="A2A_WORK", reason="full"}': '0x90',
  'hopline_check_failing{job="hopline", service="relay", instance="relay-1", check="appends"}': '0x90',
  'hopline_check_failing{job="hopline", service="ingress", instance="ingress-1", check="api_keys"}': '0x90',
  'hopline_unknown_removed_total{job="hopline", stream="A2A_LOG", kind="unknown_consumers"}': '0x90',
  'jetstream_stream_total_bytes{stream_name="A2A_WORK"}': '10x90',
  'jetstream_stream_limit_bytes{stream_name="A2A_WORK"}': '100x90',
  'gnatsd_healthz_status{job="nats", instance="nats-0"}': '0x90',
  // A node restarted.
  'gnatsd_healthz_status{job="nats", instance="nats-1"}': '0x60 1 0x29',
  'kubelet_volume_stats_available_bytes{namespace="a2a", persistentvolumeclaim="data-hopline-nats-0"}': '30x90',
  'kubelet_volume_stats_capacity_bytes{namespace="a2a", persistentvolumeclaim="data-hopline-nats-0"}': '100x90',
  // A volume of another program.
  'kubelet_volume_stats_available_bytes{namespace="a2a", persistentvolumeclaim="data-postgres-0"}': '1x90',
  'kubelet_volume_stats_capacity_bytes{namespace="a2a", persistentvolumeclaim="data-postgres-0"}': '100x90',
  'hopline_requests_total{job="hopline", outcome="ok"}': '0+60x90',
  'hopline_requests_total{job="hopline", outcome="server_error"}': '0x90',
  'hopline_shard_lag{job="hopline", service="relay", instance="relay-1", shard="3"}': '2x90',
  'hopline_shard_lag{job="hopline", service="relay", instance="relay-1", shard="4"}': '2x90',
  'hopline_shard_oldest_input_seconds{job="hopline", shard="3"}': '0.2x90',
  'hopline_shard_restarts_total{job="hopline", reason="log_fault", shard="3"}': '0x90',
  'hopline_log_connected{job="hopline", service="relay", instance="relay-1"}': '1x90',
  'hopline_log_connected{job="hopline", service="supervisor", instance="supervisor-1"}': '1x90',
  'hopline_active_tasks{job="hopline", service="supervisor", instance="supervisor-1"}': '0x90',
  'hopline_owned_shards{job="hopline", service="notifier", instance="notifier-1"}': '16x90',
  'hopline_webhook_failing_seconds{job="hopline", service="notifier"}': '0x90',
  'hopline_webhook_oldest_event_seconds{job="hopline", service="notifier"}': '1x90',
  // A task that is two days old; the stream removes records of three days ago.
  'hopline_open_tasks_oldest_start_timestamp_seconds{job="hopline", service="relay"}': '86400x90',
  'hopline_log_first_timestamp_seconds{job="hopline", service="relay", stream="A2A_LOG"}': '0+60x90',
  // A client reads a task of the day before, and has not caught up.
  'hopline_streams_oldest_needed_timestamp_seconds{job="hopline", service="ingress", instance="ingress-1"}': '172800x90',
  'hopline_active_tasks{job="hopline", service="sub-agent", instance="agent-1", agent="files"}': '1x90',
  'hopline_turn_silence_seconds{job="hopline", service="sub-agent", instance="agent-1", agent="files"}': '30x90',
  'hopline_active_tasks{job="hopline", service="sub-agent", instance="agent-2", agent="guide"}': '0x90',
  'jetstream_consumer_num_pending{job="nats", stream_name="A2A_WORK", consumer_name="agent-files"}': '1x90',
  'jetstream_consumer_delivered_consumer_seq{job="nats", stream_name="A2A_WORK", consumer_name="agent-files"}': '0+10x90',
  'hopline_takeovers_total{job="hopline", service="relay", reason="lost"}': '0x90',
  'nodejs_eventloop_delay_p99_seconds{job="hopline", instance="relay-1"}': '0.02x90',
  'hopline_certificate_expiry_timestamp_seconds{job="hopline", service="relay", instance="relay-1", kind="nats"}': '2592000x90',
  'hopline_spans_lost_total{job="hopline", service="relay", reason="queue_full"}': '0x90',
  'hopline_turns_ended_total{job="hopline", agent="files", outcome="completed"}': '0+10x90',
  'hopline_turns_ended_total{job="hopline", agent="files", outcome="failed"}': '0x90',
  'hopline_build_info{job="hopline", service="ingress", instance="ingress-1"}': '1x90',
  'hopline_build_info{job="hopline", service="sub-agent", instance="agent-1"}': '1x90',
  'hopline_build_info{job="hopline", service="sub-agent", instance="agent-2"}': '1x90',
  'hopline_build_info{job="hopline", service="sub-agent", instance="agent-3"}': '1x90',
  ...bucket('hopline_chunk_duration_seconds', '', '0+600x90', '0+600x90', '0.512'),
  ...bucket('hopline_time_to_first_token_seconds', '', '0+60x90', '0+60x90', '4.096'),
  ...bucket('hopline_hop_duration_seconds', 'hop="agent_queue", agent="files", ', '0+60x90', '0+60x90', '0.512'),
};

/** Ticket alerts that share their cause with a page. */
const WITH_BUDGET: Record<string, string> = {
  HoplineTextLate: 'HoplineTextBudget',
  HoplineFirstTokenLate: 'HoplineFirstTokenBudget',
};

/** The change at minute 70 that must cause each alert. */
const FAULTS: Record<string, Record<string, string>> = {
  HoplineGaps: { 'hopline_gaps_total{job="hopline", service="ingress"}': '0x70 1x20' },
  HoplineRecordsRejected: { 'hopline_records_rejected_total{job="hopline", reason="too_deep"}': '0x70 1x20' },
  HoplineFactsLost: { 'hopline_log_events_total{job="hopline", service="relay", kind="facts_lost"}': '0x70 1x20' },
  HoplineDeadLetters: { 'hopline_dead_letters_total{job="hopline", agent="files", reason="attempts_exhausted"}': '0x70 1x20' },
  HoplineWebhooksAbandoned: { 'hopline_webhooks_abandoned_total{job="hopline", reason="http_5xx"}': '0x70 1x20' },
  HoplineLogShortage: { 'hopline_log_shortages_total{job="hopline", stream="A2A_WORK", reason="full"}': '0x70 3x20' },
  HoplineWritesFail: {
    'hopline_check_failing{job="hopline", service="relay", instance="relay-1", check="appends"}': '0x70 1x20',
  },
  HoplineCredentialsOld: {
    'hopline_check_failing{job="hopline", service="ingress", instance="ingress-1", check="api_keys"}': '0x70 1x20',
  },
  HoplineUnknownOnLog: {
    'hopline_unknown_removed_total{job="hopline", stream="A2A_LOG", kind="unknown_consumers"}': '0x70 1000x20',
  },
  HoplineNatsNearlyFull: { 'jetstream_stream_total_bytes{stream_name="A2A_WORK"}': '10x70 90x20' },
  HoplineNatsUnhealthy: { 'gnatsd_healthz_status{job="nats", instance="nats-0"}': '0x70 1x20' },
  HoplineNatsVolumeNearlyFull: {
    'kubelet_volume_stats_available_bytes{namespace="a2a", persistentvolumeclaim="data-hopline-nats-0"}': '30x70 14x20',
  },
  HoplineTextLate: bucket('hopline_chunk_duration_seconds', '', '0+300x90', '0+600x90', '0.512'),
  HoplineFirstTokenLate: bucket('hopline_time_to_first_token_seconds', '', '0+30x90', '0+60x90', '4.096'),
  HoplineTextBudget: bucket('hopline_chunk_duration_seconds', '', '0+570x90', '0+600x90', '0.512'),
  HoplineFirstTokenBudget: bucket('hopline_time_to_first_token_seconds', '', '0+57x90', '0+60x90', '4.096'),
  HoplineNatsAway: {
    'hopline_log_connected{job="hopline", service="relay", instance="relay-1"}': '1x70 0x20',
    'hopline_log_connected{job="hopline", service="supervisor", instance="supervisor-1"}': '1x70 0x20',
    // Relays and notifiers lose their leases through no fault of their own.
    'hopline_shard_lag{job="hopline", service="relay", instance="relay-1", shard="3"}': '2x70 stale',
    'hopline_shard_lag{job="hopline", service="relay", instance="relay-1", shard="4"}': '2x70 stale',
    'hopline_owned_shards{job="hopline", service="notifier", instance="notifier-1"}': '16x70 0x20',
  },
  HoplineShardsWithoutNotifier: {
    'hopline_owned_shards{job="hopline", service="notifier", instance="notifier-1"}': '16x70 stale',
  },
  HoplineSupervisorsGone: {
    'hopline_active_tasks{job="hopline", service="supervisor", instance="supervisor-1"}': '0x70 stale',
    'hopline_log_connected{job="hopline", service="supervisor", instance="supervisor-1"}': '1x70 stale',
  },
  HoplineWorkNotTaken: {
    'jetstream_consumer_delivered_consumer_seq{job="nats", stream_name="A2A_WORK", consumer_name="agent-files"}':
      '0+10x70 700x20',
  },
  HoplineWebhookFails: {
    'hopline_webhook_failing_seconds{job="hopline", service="notifier"}': '0x10 0+60x80',
  },
  HoplineRequestsFail: { 'hopline_requests_total{job="hopline", outcome="server_error"}': '0x70 0+10x20' },
  // 0.5 %: five times the objective, and less than a page needs.
  HoplineRequestsBudget: { 'hopline_requests_total{job="hopline", outcome="server_error"}': '0+0.3x90' },
  HoplineIngressGone: { 'hopline_build_info{job="hopline", service="ingress", instance="ingress-1"}': '1x70 stale' },
  HoplineProcessesMissing: {
    'hopline_build_info{job="hopline", service="sub-agent", instance="agent-2"}': '1x65 stale',
    'hopline_build_info{job="hopline", service="sub-agent", instance="agent-3"}': '1x65 stale',
  },
  HoplineAgentGone: {
    'hopline_active_tasks{job="hopline", service="sub-agent", instance="agent-2", agent="guide"}': '0x70 stale',
  },
  HoplineProcessDown: { 'up{job="hopline", instance="relay-1"}': '1x70 0x20' },
  HoplineShardsWithoutRelay: {
    'hopline_shard_lag{job="hopline", service="relay", instance="relay-1", shard="4"}': '2x70 stale',
  },
  HoplineShardLag: {
    'hopline_shard_lag{job="hopline", service="relay", instance="relay-1", shard="3"}': '2x70 6000x20',
    'hopline_shard_lag{job="hopline", service="relay", instance="relay-1", shard="4"}': '2x70 6000x20',
  },
  HoplineInputsOld: { 'hopline_shard_oldest_input_seconds{job="hopline", shard="3"}': '0.2x70 60+60x20' },
  HoplineWebhooksLate: { 'hopline_webhook_oldest_event_seconds{job="hopline", service="notifier"}': '1x70 301x20' },
  // Fifty records of a minute each are removed in a minute: 75,600 s ahead are gone in less than half an hour.
  HoplineRetentionNear: {
    'hopline_log_first_timestamp_seconds{job="hopline", service="relay", stream="A2A_LOG"}': '0+600x70 42000+1800x20',
  },
  HoplineShardRestarts: { 'hopline_shard_restarts_total{job="hopline", reason="log_fault", shard="3"}': '0x70 0+1x20' },
  HoplineOwnersLost: { 'hopline_takeovers_total{job="hopline", service="relay", reason="lost"}': '0x70 8x20' },
  HoplineEventLoopSlow: { 'nodejs_eventloop_delay_p99_seconds{job="hopline", instance="relay-1"}': '0.02x70 0.9x20' },
  HoplineCertificateExpires: {
    'hopline_certificate_expiry_timestamp_seconds{job="hopline", service="relay", instance="relay-1", kind="nats"}':
      '2592000x70 360000x20',
  },
  HoplineSpansLost: { 'hopline_spans_lost_total{job="hopline", service="relay", reason="queue_full"}': '0x70 0+500x20' },
  HoplineAgentSilent: {
    'hopline_turn_silence_seconds{job="hopline", service="sub-agent", instance="agent-1", agent="files"}': '30x40 0+60x50',
  },
  HoplineAgentFails: { 'hopline_turns_ended_total{job="hopline", agent="files", outcome="failed"}': '0x70 0+10x20' },
  HoplineAgentBusy: {
    'hopline_hop_duration_seconds_bucket{job="hopline", hop="agent_queue", agent="files", le="0.512"}': '0+1x90',
    'hopline_hop_duration_seconds_bucket{job="hopline", hop="agent_queue", agent="files", le="4.096"}': '0+1x90',
    'hopline_hop_duration_seconds_bucket{job="hopline", hop="agent_queue", agent="files", le="16.384"}': '0+60x90',
  },
};

/** Names of the alerts that fire at a time, minute 80 by default, or at any moment `within` a duration before it. */
function checkFiring(
  series: Record<string, string>,
  firing: readonly string[],
  { at = '80m', interval = '1m', within = '' } = {},
): void {
  const alerts = within === '' ? 'ALERTS{alertstate="firing"}' : `max_over_time(ALERTS{alertstate="firing"}[${within}])`;
  assert.equal(failuresOf(series, [{ alerts, firing }], { at, interval }), '');
}

/** Evaluates the rules once. Empty, or promtool's errors: the expression of each question whose answer differs. */
function failuresOf(
  series: Record<string, string>,
  questions: readonly { alerts: string; firing: readonly string[] }[],
  { at, interval }: { at: string; interval: string },
): string {
  using folder = mkdtempDisposableSync(join(tmpdir(), 'hopline-rules-'));
  const input = Object.entries(series).map(([name, values]) => ({ series: name, values }));
  const asked = questions.map(({ alerts, firing }) => ({
    expr: `count by (alertname) (${alerts})`,
    eval_time: at,
    exp_samples: firing.map(name => ({ labels: `{alertname="${name}"}`, value: 1 })),
  }));
  const tests = [{ interval, input_series: input, promql_expr_test: asked }];
  const file = join(folder.path, 'test.json');
  writeFileSync(file, JSON.stringify({ rule_files: FILES, evaluation_interval: interval, tests }));
  const { status, stderr } = spawnSync(PROMTOOL, ['test', 'rules', file], { encoding: 'utf8' });
  return status === 0 ? '' : stderr || `promtool ended with ${status}`;
}

/** A cluster, and the alerts that must fire in it at the end. */
type Case = { series: Record<string, string>; firing: readonly string[] };
type Titled = (title: string, ...cases: readonly Case[]) => void;

const OF_HOPLINE = 'job="hopline"';

/**
 * Returns a function that adds a test of clusters, which differ from QUIET only in series of Hopline's own job. All of its tests share one
 * Prometheus, in which each cluster has a job, because promtool takes 0.8 CPU seconds for the rules with one cluster and 3.9 with 32.
 */
function clustersOf({ at, interval }: { at: string; interval: string }): Titled {
  const all: Case[] = [];
  let failures: readonly string[] | undefined;
  const evaluate = () => {
    const series = all.flatMap((one, index) =>
      Object.entries(one.series).map(([name, values]) => {
        if (name.includes(OF_HOPLINE)) return [name.replace(OF_HOPLINE, `job="hopline/${index}"`), values];
        assert.equal(values, QUIET[name], `all clusters share ${name}: use checkFiring`);
        return [name, values];
      }),
    );
    const questions = all.map(({ firing }, index) => ({
      alerts: `ALERTS{alertstate="firing", job="hopline/${index}"}`,
      firing,
    }));
    const ofNone = { alerts: 'ALERTS{alertstate="firing", job!~"hopline/.*"}', firing: [] };
    const output = failuresOf(Object.fromEntries(series), [...questions, ofNone], { at, interval });
    return output.split(/^(?= +expr:)/m).filter(text => !['', '  FAILED:\n'].includes(text));
  };
  return (title, ...cases) => {
    const first = all.push(...cases) - cases.length;
    const jobs = cases.map((_, index) => `${first + index}`);
    test(title, { skip }, () => {
      failures ??= evaluate();
      // A failure without the job of one cluster concerns all of them.
      assert.deepEqual(
        failures.filter(text => jobs.includes(/job=\\"hopline\/(\d+)\\"/.exec(text)?.[1] ?? jobs[0]!)),
        [],
      );
    });
  };
}

const testFiring = clustersOf({ at: '80m', interval: '1m' });

test('the rules are valid for Prometheus', { skip }, () => {
  const { status, stderr } = spawnSync(PROMTOOL, ['check', 'rules', ...FILES], { encoding: 'utf8' });
  assert.equal(status, 0, stderr);
});

testFiring('no alert fires on a quiet cluster', { series: QUIET, firing: [] });

for (const [alert, fault] of Object.entries(FAULTS)) {
  const budget = WITH_BUDGET[alert];
  const firing = budget === undefined ? [alert] : [budget, alert];
  const series = { ...QUIET, ...fault };
  const title = `${alert} fires, and no other alert`;
  if (Object.keys(fault).every(name => name.includes(OF_HOPLINE))) testFiring(title, { series, firing });
  else test(title, { skip }, () => checkFiring(series, firing));
}

/** The counters of rare events. A process may count such an event before its first scrape, and `increase` then finds nothing. */
const RARE = [
  'HoplineGaps',
  'HoplineRecordsRejected',
  'HoplineFactsLost',
  'HoplineDeadLetters',
  'HoplineWebhooksAbandoned',
  'HoplineLogShortage',
  'HoplineUnknownOnLog',
  'HoplineOwnersLost',
];

for (const alert of RARE) {
  const [counter] = Object.keys(FAULTS[alert]!) as [string];
  const ofNew = (name: string) => name.replace('{job="hopline"', '{job="hopline", instance="new-1"');
  const counts = { ...QUIET, [ofNew(counter)]: '_x74 1x15' };
  const start = ofNew('process_start_time_seconds{job="hopline"}');
  testFiring(
    `${alert} fires when a process that has just started counts the event before its first scrape`,
    { series: { ...counts, [start]: '_x74 4490x15' }, firing: [alert] },
    // The same series after an outage of Prometheus: the process is old.
    { series: { ...counts, [start]: '_x74 -86400x15' }, firing: [] },
  );
}

testFiring('HoplineFactsLost fires when a relay has created missing streams again', {
  series: { ...QUIET, 'hopline_log_events_total{job="hopline", service="relay", kind="streams_lost"}': '0x70 1x20' },
  firing: ['HoplineFactsLost'],
});

{
  const lags = Object.keys(QUIET).filter(name => name.startsWith('hopline_shard_lag'));
  const gone = Object.fromEntries(lags.map(name => [name, '2x70 stale']));
  const withIngress = { ...QUIET, 'up{job="hopline", instance="ingress-1"}': '1x90' };
  const dead = { ...gone, 'up{job="hopline", instance="relay-1"}': '1x70 0x20' };
  const removed = { ...gone, 'up{job="hopline", instance="relay-1"}': '1x70 stale' };
  testFiring(
    'HoplineShardsWithoutRelay fires when no relay is left, while another process answers',
    { series: { ...withIngress, ...dead }, firing: ['HoplineProcessDown', 'HoplineShardsWithoutRelay'] },
    // A removed cluster raises no alert.
    { series: { ...QUIET, ...removed }, firing: [] },
  );
}

test('the alerts on shards keep firing for hours while no process owns them', { skip }, () => {
  const hours = (value: string, until: string) => `${value}x30 ${until}`;
  const series = {
    'up{job="hopline", instance="ingress-1"}': '1x140',
    'hopline_shard_lag{job="hopline", service="relay", instance="relay-1", shard="3"}': hours('2', 'stale'),
    'hopline_owned_shards{job="hopline", service="notifier", instance="notifier-1"}': '16x70 stale',
  };
  for (const at of ['80m', '134m']) checkFiring(series, ['HoplineShardsWithoutNotifier', 'HoplineShardsWithoutRelay'], { at });
});

const STEP_S = 5;
const steps = (minutes: number) => (minutes * 60) / STEP_S;
const SCRAPE_STEPS = steps(0.5);
const ROLLOUT_SHARDS = 20;
const ROLLOUT_MINUTES = 20;
/** From this minute on no process owns the last shard. */
const LOST_MINUTE = 14;
/** A process serves its metrics while it drains. */
const DRAIN_STEPS = 4;

/**
 * Series of a cluster, a value each STEP_S, in which the processes of a service are replaced one after the other. Each is scraped at a time of its own,
 * so a shard that changes its owner is in the newest scrapes of both for a while, or of neither.
 */
function rollout(service: 'relay' | 'notifier', count: number, { job = '', from = 0, lost = false }): [string, string][] {
  const end = steps(ROLLOUT_MINUTES);
  const lives = Array.from({ length: count }, (_, index) => {
    const replacedAt = from + index * 3;
    return [
      { instance: `old-${index}`, from: 0, releasesAt: replacedAt + 1, to: replacedAt + 1 + DRAIN_STEPS },
      { instance: `new-${index}`, from: replacedAt, releasesAt: end, to: end },
    ];
  }).flat();
  const owners: string[][] = [];
  for (let at = 0; at < end; at++) {
    const live = lives.filter(({ from, releasesAt }) => from <= at && at < releasesAt).map(({ instance }) => instance);
    owners.push(balanced(owners.at(-1) ?? [], live));
  }
  const ownedAt = (instance: string, at: number) => {
    const shards = owners[at]!.flatMap((owner, shard) => (owner === instance ? shard : []));
    return lost && at >= steps(LOST_MINUTE) ? shards.filter(shard => shard !== ROLLOUT_SHARDS - 1) : shards;
  };
  const values = new Map<string, string[]>();
  const add = (name: string, at: number, value: string) => {
    const all = values.get(name) ?? new Array<string>(end).fill('_');
    values.set(name, all);
    all[at] = value;
  };
  for (const [index, { instance, from, to }] of lives.entries()) {
    const labels = `job="${job}", service="${service}", instance="${instance}"`;
    const total = `hopline_owned_shards{${labels}}`;
    let scraped: string[] = [];
    for (let at = from; at <= Math.min(to, end - 1); at++) {
      const isGone = at === to;
      if (!isGone && (at + index * 5) % SCRAPE_STEPS !== 0) continue;
      const owned = isGone ? [] : ownedAt(instance, at);
      const lags = service === 'relay' ? owned.map(shard => `hopline_shard_lag{${labels}, shard="${shard}"}`) : [];
      const now = isGone ? [] : [total, ...lags];
      for (const name of now) add(name, at, name === total ? `${owned.length}` : '0');
      for (const name of scraped) if (!now.includes(name)) add(name, at, 'stale');
      scraped = now;
    }
  }
  return [...values].map(([name, all]) => [name, all.join(' ')]);
}

/** The next owner of each shard: as few change it as the equal shares of the live processes permit. */
function balanced(before: readonly string[], live: readonly string[]): string[] {
  const share = ROLLOUT_SHARDS / live.length;
  const counts = new Map(live.map(instance => [instance, 0]));
  const keep = (owner: string | undefined) => {
    if (owner === undefined || (counts.get(owner) ?? share) >= share) return undefined;
    counts.set(owner, counts.get(owner)! + 1);
    return owner;
  };
  const kept = Array.from({ length: ROLLOUT_SHARDS }, (_, shard) => keep(before[shard]));
  return kept.map(owner => owner ?? keep(live.find(instance => counts.get(instance)! < share))!);
}

for (const [service, alert] of [
  ['relay', 'HoplineShardsWithoutRelay'],
  ['notifier', 'HoplineShardsWithoutNotifier'],
] as const) {
  /** One cluster for each start of the update within a minute, because the rules evaluate a value once a minute. */
  const clusters = (count: number, options: { lost?: boolean } = {}) => {
    const starts = Array.from({ length: steps(1) }, (_, start) => start);
    const series = starts.flatMap(start =>
      rollout(service, count, { ...options, job: `hopline/${start}`, from: steps(5) + start }),
    );
    const up = starts.map(start => [`up{job="hopline/${start}", instance="ingress"}`, `1x${steps(ROLLOUT_MINUTES)}`]);
    return Object.fromEntries([...series, ...up]);
  };
  const at = { at: `${ROLLOUT_MINUTES - 1}m`, interval: `${STEP_S}s` };
  for (const count of [2, 10])
    test(`a rolling update of ${count} ${service}s raises no alert`, { skip }, () =>
      checkFiring(clusters(count), [], { ...at, within: `${ROLLOUT_MINUTES}m` }),
    );
  test(`a shard that is lost after a rolling update raises ${alert}`, { skip }, () =>
    checkFiring(
      Object.fromEntries(Object.entries(clusters(2, { lost: true })).filter(([name]) => name.includes('"hopline/0"'))),
      [alert],
      at,
    ),
  );
}

/** SAMPLES_MIN and LATE_MIN of recording.yaml. */
const SAMPLES_MIN = 20;
const LATE_MIN = 5;

test('the numbers of samples in the alerts match recording.yaml', () => {
  const [recording, alerts] = FILES.map(file => readFileSync(file, 'utf8')) as [string, string];
  assert.ok(recording.includes(`SAMPLES_MIN, ${SAMPLES_MIN}, and LATE_MIN, ${LATE_MIN}:`));
  const bounds = [...alerts.matchAll(/(?:increase1h|\[(?:5m|10m)\]\)\)) >= (\d+)/g)].map(([, bound]) => Number(bound));
  assert.ok(bounds.length >= 9, `${bounds}`);
  for (const bound of bounds) assert.ok([SAMPLES_MIN, LATE_MIN].includes(bound), `${bound}`);
});

// The first samples come with the scrape of minute 71, as on a rarely used cluster. increase() extrapolates, so a count equal
// to a bound is not tested.
for (const [what, all, late, pages] of [
  ['one slow answer of two', 2, 1, false],
  [`${SAMPLES_MIN - 2} answers, all slow`, SAMPLES_MIN - 2, SAMPLES_MIN - 2, false],
  [`${LATE_MIN - 1} slow answers of ${SAMPLES_MIN + 2}`, SAMPLES_MIN + 2, LATE_MIN - 1, false],
  [`${LATE_MIN + 1} slow answers of ${SAMPLES_MIN + 2}`, SAMPLES_MIN + 2, LATE_MIN + 1, true],
] as const) {
  const from0 = (count: number) => `0x75 ${count}x14`;
  const series = {
    ...QUIET,
    ...bucket('hopline_time_to_first_token_seconds', '', from0(all - late), from0(all), '4.096'),
    ...bucket('hopline_chunk_duration_seconds', '', from0(all - late), from0(all), '0.512'),
    'hopline_requests_total{job="hopline", outcome="ok"}': from0(all - late),
    'hopline_requests_total{job="hopline", outcome="server_error"}': from0(late),
  };
  // The ticket is opened an hour later.
  const firing = pages ? ['HoplineFirstTokenLate', 'HoplineRequestsFail', 'HoplineTextLate'] : [];
  testFiring(`${what}: ${pages ? 'a page' : 'no page'}`, { series, firing });
}

/** Series of three days of steady traffic, a value each five minutes: `all` events an hour, of which a share is bad. */
function threeDays(all: number, bad: number): Record<string, string> {
  const samples = (3 * 24 * 60) / 5 + 1;
  const steady = (perHour: number) => `0+${perHour / 12}x${samples}`;
  const good = steady(all * (1 - bad));
  return {
    'up{job="hopline", instance="ingress-1"}': `1x${samples}`,
    ...bucket('hopline_chunk_duration_seconds', '', good, steady(all), '0.512'),
    ...bucket('hopline_time_to_first_token_seconds', '', good, steady(all), '4.096'),
    'hopline_requests_total{job="hopline", outcome="ok"}': good,
    'hopline_requests_total{job="hopline", outcome="server_error"}': steady(all * bad),
  };
}

const BUDGETS = ['HoplineFirstTokenBudget', 'HoplineRequestsBudget', 'HoplineTextBudget'];
const testAfterThreeDays = clustersOf({ at: '72h', interval: '5m' });
for (const [what, all, bad, firing] of [
  ['twice the budget for three days', 600, 0.02, [...BUDGETS, 'HoplineRequestsFail']],
  ['the budget of requests is used five times over, that of texts half', 600, 0.005, ['HoplineRequestsBudget']],
  ['half of every budget', 600, 0.0005, []],
  [`twice the budget in ${SAMPLES_MIN - 2} events an hour`, SAMPLES_MIN - 2, 0.02, []],
] as const)
  testAfterThreeDays(`${what}: ${firing.join(', ') || 'no alert'}`, { series: threeDays(all, bad), firing: firing.toSorted() });

test('a cluster whose metrics all disappear at once raises no alert', { skip }, () => {
  const gone = Object.entries(QUIET).map(([name, values]) => [name, `${values.replace(/x90$/, 'x70')} stale`]);
  checkFiring(Object.fromEntries(gone), []);
});

test('a cluster whose scrapes fail raises only HoplineProcessDown', { skip }, () => {
  const gone = Object.entries(QUIET).map(([name, values]) =>
    name.startsWith('up{') ? [name, '1x70 0x20'] : [name, `${values.replace(/x90$/, 'x70')} stale`],
  );
  checkFiring(Object.fromEntries(gone), ['HoplineProcessDown']);
});

const RESTARTS_OF_16_SHARDS = Array.from({ length: 16 }, (_, shard) => [
  `hopline_shard_restarts_total{job="hopline", reason="log_fault", shard="${shard}"}`,
  '0x70 1x20',
]);
testFiring('one restart of every shard raises no alert, however many shards there are', {
  series: { ...QUIET, ...Object.fromEntries(RESTARTS_OF_16_SHARDS) },
  firing: [],
});

const SUPERVISOR = 'hopline_active_tasks{job="hopline", service="supervisor", instance="supervisor-1"}';
testFiring(
  'a cluster that has had no supervisor for a day counts as one without a supervisor, and a removed cluster raises no alert',
  { series: { ...QUIET, [SUPERVISOR]: '_x90' }, firing: [] },
  { series: { ...QUIET, [SUPERVISOR]: '0x70 stale', 'up{job="hopline", instance="relay-1"}': '1x70 stale' }, firing: [] },
);

const NEEDED = 'hopline_open_tasks_oldest_start_timestamp_seconds{job="hopline", service="relay"}';
const READ = 'hopline_streams_oldest_needed_timestamp_seconds{job="hopline", service="ingress", instance="ingress-1"}';
const firstOf = (stream: string, relay = 'relay-1') =>
  `hopline_log_first_timestamp_seconds{job="hopline", service="relay", instance="${relay}", stream="${stream}"}`;

const { [NEEDED]: _open, ...QUIET_WITHOUT_TASKS } = QUIET;
testFiring(
  'HoplineRetentionNear fires for a stream that reads slowly, without an open task',
  { series: QUIET_WITHOUT_TASKS, firing: [] },
  // It reads 20 times slower than the clock, while retention keeps pace with the clock.
  { series: { ...QUIET_WITHOUT_TASKS, [READ]: '6000+3x90' }, firing: ['HoplineRetentionNear'] },
);

/** QUIET without what concerns retention. */
const withoutRetention = () =>
  Object.fromEntries(
    Object.entries(QUIET).filter(([name]) => !/^hopline_(log_first|open_tasks_oldest|streams_oldest)/.test(name)),
  );

test('a quiet cluster raises no HoplineRetentionNear when the record that an open task needs becomes the oldest', {
  skip,
}, () => {
  // The task began three and a half days after the record before it. Within a minute, both relays see that the earlier record has expired.
  const jump = { [firstOf('A2A_LOG')]: '-302400x60 0x30', [firstOf('A2A_LOG', 'relay-2')]: '-302400x61 0x29' };
  checkFiring({ ...withoutRetention(), ...jump, [NEEDED]: '0x90' }, [], { within: '60m' });
});

testFiring('a stream whose records are all newer than what an open task needs raises no HoplineRetentionNear', {
  series: {
    ...withoutRetention(),
    [firstOf('A2A_LOG')]: '-500000+60x90',
    [firstOf('A2A_LOG_1')]: '0+60x90',
    [NEEDED]: '-300000x90',
  },
  firing: [],
});

{
  const limit = { 'hopline_log_age_limit_seconds{job="hopline", service="relay", stream="A2A_LOG"}': '604800x90' };
  const needs = (leftAt80m: number) => ({ [firstOf('A2A_LOG')]: '-600000x90', [NEEDED]: `${leftAt80m + 4_800 - 604_800}x90` });
  // An age limit of an hour: its last six minutes.
  const hour = Object.fromEntries(Object.keys(limit).map(name => [name, '3600x90']));
  const young = (leftAt80m: number) => ({ [firstOf('A2A_LOG')]: '-3600+60x90', [NEEDED]: `${leftAt80m + 4_800 - 3_600}x90` });
  const { [NEEDED]: needed, ...stream } = needs(3_000);
  const firing = ['HoplineRetentionNear'];
  testFiring(
    'HoplineRetentionNear fires within an hour of the age limit, even for a stream that removes nothing',
    { series: { ...withoutRetention(), ...limit, ...needs(3_000) }, firing },
    { series: { ...withoutRetention(), ...limit, ...needs(3_700) }, firing: [] },
    { series: { ...withoutRetention(), ...hour, ...young(1_000) }, firing: [] },
    { series: { ...withoutRetention(), ...hour, ...young(50) }, firing },
    { series: { ...withoutRetention(), ...limit, ...stream, [READ]: needed! }, firing },
  );
}

const FAILED = 'hopline_turns_ended_total{job="hopline", agent="files", outcome="failed"}';
const ENDED = 'hopline_turns_ended_total{job="hopline", agent="files", outcome="completed"}';

for (const [failed, firing] of [
  [LATE_MIN - 1, []],
  [LATE_MIN + 1, ['HoplineAgentFails']],
] as const)
  testFiring(`an agent with ${failed} turns in ten minutes, all failed: ${firing.join('') || 'no page'}`, {
    series: { ...QUIET, [ENDED]: '5x90', [FAILED]: `0x75 ${failed}x14` },
    firing,
  });

/** Minutes between two items, each of which waits for a slot for more than 4 s. */
for (const [minutes, firing] of [
  [2, []],
  [0.5, ['HoplineAgentBusy']],
] as const) {
  const of = 'hopline_hop_duration_seconds';
  const labels = 'job="hopline", hop="agent_queue", agent="files"';
  const none = Object.fromEntries(['0.512', '4.096'].map(le => [`${of}_bucket{${labels}, le="${le}"}`, '0x90']));
  const all = `0+${1 / minutes}x90`;
  const late = Object.fromEntries(['16.384', '+Inf'].map(le => [`${of}_bucket{${labels}, le="${le}"}`, all]));
  testFiring(`work that waits for an agent every ${minutes} minutes: ${firing.join('') || 'no page'}`, {
    series: { ...QUIET, ...none, ...late, [`${of}_count{${labels}}`]: all },
    firing,
  });
}

test('an agent that is gone raises one ticket, a page only while its work waits, and nothing once the cluster is removed', {
  skip,
}, () => {
  const own = Object.keys(QUIET).filter(name => name.includes('agent="files"') && !name.includes('dead_letters'));
  const gone = { ...QUIET, ...Object.fromEntries(own.map(name => [name, `${QUIET[name]!.replace(/x90$/, 'x70')} stale`])) };
  checkFiring(gone, ['HoplineAgentGone']);
  const waits = FAULTS.HoplineWorkNotTaken;
  checkFiring({ ...gone, ...waits }, ['HoplineAgentGone', 'HoplineWorkNotTaken']);
  checkFiring({ ...gone, 'up{job="hopline", instance="relay-1"}': '1x70 stale' }, []);
});

testFiring('a webhook that fails does not hide another one that waits', {
  series: { ...QUIET, ...FAULTS.HoplineWebhookFails, ...FAULTS.HoplineWebhooksLate },
  firing: ['HoplineWebhookFails', 'HoplineWebhooksLate'],
});

test('alerts match the job name of the chart, and streams with a prefix', { skip }, () => {
  const down = { 'up{job="hopline/default/prod", instance="10.0.0.1:8000"}': '1x70 0x20' };
  checkFiring({ ...QUIET, ...down }, ['HoplineProcessDown']);
  const queue = 'stream_name="blue_A2A_WORK"';
  const full = {
    [`jetstream_stream_total_bytes{${queue}}`]: '10x70 90x20',
    [`jetstream_stream_limit_bytes{${queue}}`]: '100x90',
  };
  checkFiring({ ...QUIET, ...full }, ['HoplineNatsNearlyFull']);
});

test('every alert has a case here and a section in the runbook', () => {
  const alerts = [...readFileSync(FILES[1]!, 'utf8').matchAll(/- alert: (\w+)/g)].map(([, name]) => name!);
  assert.deepEqual(alerts.toSorted(), Object.keys(FAULTS).toSorted());
  const runbook = readFileSync(new URL('../RUNBOOK.md', import.meta.url), 'utf8');
  for (const name of alerts) assert.match(runbook, new RegExp(`^### ${name}$`, 'm'));
});
