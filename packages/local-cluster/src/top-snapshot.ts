import { A2AError, stateWord, TASK_STATES, type Task } from '@hopline/a2a';
import type { CallOptions, Client, ListedAgent, Notice } from '@hopline/client';
import { MetricsText } from './metrics-text.ts';
import { type ProcessState, processState } from './process-state.ts';
import type { ListedProcess } from './running-cluster.ts';

/** Tasks listed for each state; the counts include all. */
const LISTED_MAX = 50;
const METRICS_MS_MAX = 2_000;
/** Time limit of the lists of the server: without processes there is nothing else to show. */
const LISTS_MS_MAX = 2_000;
const LISTS_ONLY_MS_MAX = 15_000;

/** The data from one reading of a cluster. `metrics` is absent for a process that did not answer. */
export type TopReading = {
  /** When it was taken, in epoch milliseconds. Only shown; rates use `monotonicMs`. */
  at: number;
  /** Time for rates, from a monotonic clock. */
  monotonicMs: number;
  /** The caller's open tasks, newest first, and how many there are of each state. */
  tasks: Task[];
  counts: Record<string, number>;
  agents: ListedAgent[];
  /** Undefined when only the address of the server is known. */
  processes: ReadProcess[] | undefined;
  /** Parts that could not be read, and why. */
  missing: string[];
  /** Why the server did not answer: the first error, if there were several. */
  fault?: A2AError;
};

export type ReadProcess = ListedProcess & ProcessState & { metrics?: MetricsText };

const OPEN_STATES = TASK_STATES.filter(state =>
  ['submitted', 'working', 'input-required', 'auth-required'].includes(stateWord(state)),
);

const NO_METRICS =
  'rates, lag, processes and the load of agents: known only for the cluster of `npm start` on this machine; elsewhere see its dashboards';

/** Rejects only when `signal` aborts. */
export async function readCluster(
  client: Pick<Client, 'list' | 'agents'>,
  processes: readonly ListedProcess[] | undefined,
  signal: AbortSignal,
): Promise<TopReading> {
  const missing = processes === undefined ? [NO_METRICS] : [];
  let fault: A2AError | undefined;
  const limitMs = processes === undefined ? LISTS_ONLY_MS_MAX : LISTS_MS_MAX;
  const limit = AbortSignal.timeout(limitMs);
  const orMissing = async <T>(what: string, read: (call: CallOptions) => Promise<T>, absent: T): Promise<T> => {
    let why = '';
    const onNotice = (notice: Notice) => {
      if (notice.kind === 'retry') why = `: ${notice.error.message}`;
    };
    try {
      return await read({ signal: AbortSignal.any([signal, limit]), onNotice });
    } catch (thrown) {
      signal.throwIfAborted();
      const isLate = limit.aborted && !(thrown instanceof A2AError);
      const error = isLate ? new A2AError('UNAVAILABLE', { detail: `no answer within ${limitMs / 1_000} s${why}` }) : thrown;
      if (!(error instanceof A2AError)) throw error;
      // It is not a fault that a server lacks such a list.
      const isUnsupported = error.code === 'UNSUPPORTED_OPERATION';
      if (!isUnsupported) fault ??= error;
      missing.push(`${what}: ${isUnsupported ? 'the server does not list them' : error.message}`);
      return absent;
    }
  };
  const pages = (call: CallOptions) =>
    Promise.all(
      OPEN_STATES.map(async state => {
        return [stateWord(state), await client.list({ state, pageSize: LISTED_MAX, historyLength: 0, ...call })] as const;
      }),
    );
  const [found, agents, read] = await Promise.all([
    orMissing('tasks', pages, []),
    orMissing('agents', call => client.agents(call), []),
    processes && Promise.all(processes.map(readProcess)),
  ]);
  const tasks = found.flatMap(([, { tasks: listed }]) => listed);
  return {
    at: Date.now(),
    monotonicMs: performance.now(),
    tasks: tasks.toSorted((a, b) => (b.status.timestamp ?? '').localeCompare(a.status.timestamp ?? '')),
    counts: Object.fromEntries(found.map(([state, { tasks: listed, totalSize = listed.length }]) => [state, totalSize])),
    agents,
    processes: read,
    missing,
    ...(fault && { fault }),
  };
}

async function readProcess(process: ListedProcess): Promise<ReadProcess> {
  const [state, metrics] = await Promise.all([processState(process), readMetrics(process)]);
  return { ...process, ...state, ...(metrics && { metrics }) };
}

async function readMetrics({ url, service, pid }: ListedProcess): Promise<MetricsText | undefined> {
  if (service === 'nats' || pid === null) return undefined;
  try {
    const response = await fetch(new URL('/metrics', url), { signal: AbortSignal.timeout(METRICS_MS_MAX) });
    return response.ok ? new MetricsText(await response.text()) : undefined;
  } catch {
    return undefined;
  }
}

/** The figures of a cluster between two readings; `hopline top --json` prints them. */
export type TopSnapshot = {
  at: string;
  url: string;
  /** The caller's open tasks by state. */
  tasks: Record<string, number>;
  live: { id: string; state: string; since?: string; contextId: string }[];
  agents: TopAgent[];
  cluster?: TopCluster;
  processes?: TopProcess[];
  missing: string[];
};

/** Figures of one agent over all its processes, including its replicas. Absent members are unknown. */
export type TopAgent = {
  name: string;
  state: string;
  /** Why a live agent does not answer, such as `ECONNREFUSED`. */
  fault?: string;
  /** Cause of the newest failed turn while the last turns have all failed. */
  failing?: string;
  activeTasks?: number;
  tokensPerS?: number;
  /** Mean seconds from a work item to its first token: in this interval or, if it had none, since the start. Absent before the first token. */
  firstTokenS?: number;
  turnsEnded?: number;
  turnsFailed?: number;
};

export type TopCluster = {
  openTasks: Record<string, number>;
  /** Records of its shards that are stored but not yet read. */
  lag: number;
  openStreams: number;
  /** Per second, over the interval. */
  rates: Record<keyof typeof RATES, number>;
  /** Totals since the processes started. */
  totals: Record<keyof typeof TOTALS, number>;
  /**
   * Share of each hop in the critical paths of the turns that relays measured, the largest first: in this interval or, if none was measured in
   * it, since the start.
   */
  hops: { hop: string; share: number }[];
};

export type TopProcess = {
  service: string;
  instance: string;
  state: string;
  /** CPU time over the interval as a share of one core; above 1 for more than one core. */
  cpu?: number;
  memoryBytes?: number;
  /** 99th percentile of the event loop delay, in seconds. */
  loopDelayS?: number;
  restarts: number;
};

const PATH_SECONDS = 'hopline_path_time_seconds_total';

const RATES = {
  requests: 'hopline_requests_total',
  requestErrors: 'hopline_request_errors_total',
  tasksCreated: 'hopline_tasks_created_total',
  tasksEnded: 'hopline_tasks_ended_total',
  tokens: 'hopline_tokens_total',
  chunks: 'hopline_chunks_total',
  events: 'hopline_events_total',
} as const;

const TOTALS = {
  takeovers: 'hopline_takeovers_total',
  redeliveries: 'hopline_redeliveries_total',
  requeues: 'hopline_requeues_total',
  deadLetters: 'hopline_dead_letters_total',
  viewersCut: 'hopline_viewers_cut_total',
  gaps: 'hopline_gaps_total',
} as const;

/** Pure: rates come from two readings, so a process that started between them counts from 0. */
export function snapshotOf(url: string, before: TopReading, now: TopReading): TopSnapshot {
  const { at, tasks, counts, missing, processes } = now;
  const seconds = Math.max((now.monotonicMs - before.monotonicMs) / 1_000, 0.001);
  return {
    at: new Date(at).toISOString(),
    url,
    tasks: counts,
    live: tasks.map(({ id, contextId, status: { state, timestamp } }) => {
      return { id, state: stateWord(state), ...(timestamp !== undefined && { since: timestamp }), contextId };
    }),
    agents: now.agents.map(agent => agentOf(agent, before, now, seconds)),
    ...(processes && { cluster: clusterOf(before, now, seconds) }),
    ...(processes && { processes: processes.map(process => processOf(process, before, seconds)) }),
    missing: [...missing, ...unansweredOf(processes ?? [])],
  };
}

function unansweredOf(processes: readonly ReadProcess[]): string[] {
  const silent = processes.filter(({ service, metrics }) => service !== 'nats' && metrics === undefined);
  return silent.map(({ instance, fault }) => `metrics of ${instance}: it ${fault ?? 'does not answer'}`);
}

const metricsOf = ({ processes = [] }: TopReading) =>
  processes.flatMap(({ metrics }) => (metrics === undefined ? [] : [metrics]));

function sumOf(reading: TopReading, name: string, labels: Record<string, string> = {}): number {
  return metricsOf(reading).reduce((sum, metrics) => sum + metrics.sum(name, labels), 0);
}

/**
 * Growth of a counter, summed over the processes. A replaced process counts from 0. One whose earlier reading failed counts as 0: its total would look
 * like the growth of the interval.
 */
function growthOf(before: TopReading, now: TopReading, name: string, labels: Record<string, string> = {}): number {
  if (before.processes === undefined) return 0;
  const earlierOf = new Map(before.processes.map(process => [`${process.instance} ${process.pid}`, process]));
  return (now.processes ?? []).reduce((sum, { instance, pid, metrics }) => {
    const earlier = earlierOf.get(`${instance} ${pid}`);
    if (metrics === undefined || (earlier !== undefined && earlier.metrics === undefined)) return sum;
    return sum + Math.max(0, metrics.sum(name, labels) - (earlier?.metrics?.sum(name, labels) ?? 0));
  }, 0);
}

function clusterOf(before: TopReading, now: TopReading, seconds: number): TopCluster {
  const openTasks = new Map<string, number>();
  for (const metrics of metricsOf(now))
    for (const [state, count] of metrics.by('hopline_open_tasks', 'state'))
      openTasks.set(state, (openTasks.get(state) ?? 0) + count);
  const each = <K extends string>(names: Readonly<Record<K, string>>, read: (name: string) => number) =>
    Object.fromEntries(Object.entries<string>(names).map(([key, name]) => [key, read(name)])) as Record<K, number>;
  return {
    openTasks: Object.fromEntries(openTasks),
    lag: sumOf(now, 'hopline_shard_lag'),
    openStreams: sumOf(now, 'hopline_open_streams'),
    rates: each(RATES, name => growthOf(before, now, name) / seconds),
    hops: hopsOf(before, now),
    totals: {
      ...each(TOTALS, name => sumOf(now, name)),
      // The first owner of a shard did not take it from another process.
      takeovers: sumOf(now, TOTALS.takeovers) - sumOf(now, TOTALS.takeovers, { reason: 'fresh' }),
    },
  };
}

function hopsOf(before: TopReading, now: TopReading): TopCluster['hops'] {
  const names = [...new Set(metricsOf(now).flatMap(metrics => [...metrics.by(PATH_SECONDS, 'hop').keys()]))];
  const grown = names.map(hop => ({ hop, seconds: growthOf(before, now, PATH_SECONDS, { hop }) }));
  const isIdle = grown.every(({ seconds }) => seconds === 0);
  const hops = isIdle ? names.map(hop => ({ hop, seconds: sumOf(now, PATH_SECONDS, { hop }) })) : grown;
  const all = hops.reduce((sum, { seconds }) => sum + seconds, 0);
  const shown = hops.filter(({ seconds }) => seconds > 0).toSorted((a, b) => b.seconds - a.seconds);
  return shown.map(({ hop, seconds }) => ({ hop, share: seconds / all }));
}

function agentOf({ name, state, fault, failing }: ListedAgent, before: TopReading, now: TopReading, seconds: number): TopAgent {
  const agent = { name, state, ...(fault !== undefined && { fault }), ...(failing !== undefined && { failing }) };
  if (now.processes === undefined) return agent;
  const labels = { agent: name };
  const HOPS = 'hopline_hop_duration_seconds';
  // Compared by the agent's own time, because an agent that is asked later could never be the first.
  const hopLabels = { ...labels, hop: 'agent' };
  const [sum, count] = [growthOf(before, now, `${HOPS}_sum`, hopLabels), growthOf(before, now, `${HOPS}_count`, hopLabels)];
  const [sumAll, countAll] = [sumOf(now, `${HOPS}_sum`, hopLabels), sumOf(now, `${HOPS}_count`, hopLabels)];
  const firstTokenS = count > 0 ? sum / count : countAll > 0 ? sumAll / countAll : undefined;
  return {
    ...agent,
    activeTasks: sumOf(now, 'hopline_active_tasks', labels),
    tokensPerS: growthOf(before, now, 'hopline_tokens_total', labels) / seconds,
    ...(firstTokenS !== undefined && { firstTokenS }),
    turnsEnded: sumOf(now, 'hopline_turns_ended_total', labels),
    turnsFailed: sumOf(now, 'hopline_turns_ended_total', { ...labels, outcome: 'failed' }),
  };
}

function processOf(process: ReadProcess, before: TopReading, seconds: number): TopProcess {
  const { service, instance, pid, restarts, isReady, fault, metrics } = process;
  const earlier = before.processes?.find(one => one.instance === instance && one.pid === pid)?.metrics;
  const cpu = (of: MetricsText) => of.sum('process_cpu_time_seconds_total');
  return {
    service,
    instance,
    state: isReady ? 'ready' : (fault ?? 'not ready'),
    ...(metrics && earlier && { cpu: Math.max(0, cpu(metrics) - cpu(earlier)) / seconds }),
    ...(metrics && { memoryBytes: metrics.sum('process_memory_usage_bytes') }),
    ...(metrics && { loopDelayS: metrics.sum('nodejs_eventloop_delay_p99_seconds') }),
    restarts,
  };
}
