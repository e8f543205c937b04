import { setTimeout as delay } from 'node:timers/promises';
import { usersConfig } from '../support/cluster/cluster.ts';
import { startNatsCluster } from '../support/nats/nats-server.ts';
import { benchLog } from './bench-cluster.ts';
import type { AnswerReport } from './client/answer.ts';
import { monotonicMs } from './measure/clock.ts';
import { type CpuSeconds, type Pids, totalOf, withCpu } from './measure/process-usage.ts';
import { latencyOf } from './measure/spread.ts';
import { figure } from './measure/table.ts';
import type { Target } from './measure/targets.ts';
import { agentName, type Peer, type Peers, type Remote, startPeers } from './peers.ts';
import type { Finding, Question, Size } from './question.ts';
import { countRecords, type RecordCounts } from './stored-records.ts';

/** The pace of a language model. */
export const PER_SECOND = 20;
/** Users do not send in the same millisecond, and their tokens come at different times. */
const STAGGER_MS = 7;
/** Streams are sustained while 99 % of their tokens are younger than this at their clients. */
const AGE_P99_MS_MAX = 500;

/**
 * Streams before the first run. Services run for days, and V8 still compiles the code of a token within the first minute: at 100 streams 14 to 21 % of
 * the samples of each service were in its compiler and collector then, and a second run took 8 to 27 % less CPU (2026-11-29).
 */
type WarmUp = { streams: number; seconds: number };

/**
 * `streams`: number of streams in each run. `seconds`: length of its measured window. `directly`: numbers that only the agent is asked for.
 * `replicated`: runs with three replicas on three nodes.
 */
type Plan = { warmUp: WarmUp; streams: number[]; seconds: number; directly: number[]; replicated: number[] };
const PLANS: Record<Size, Plan> = {
  full: {
    warmUp: { streams: 200, seconds: 30 },
    streams: [30, 100, 300, 500, 600, 1000],
    seconds: 15,
    directly: [2000, 3000],
    replicated: [30, 100, 300],
  },
  quick: { warmUp: { streams: 100, seconds: 10 }, streams: [30, 100, 200], seconds: 8, directly: [], replicated: [] },
  tiny: { warmUp: { streams: 3, seconds: 0.2 }, streams: [3], seconds: 0.2, directly: [3], replicated: [] },
};

/** Goals with one replica. Streams are those of one run, times are milliseconds, and CPU is microseconds per token, of Hopline and NATS. */
const MANY = { streams: 1000, ageP50: 150, ageP99: AGE_P99_MS_MAX, appends: 0.4, bytes: 300 };
const FEW = { streams: 100, ageP50: 55, appends: 0.7, cpu: 250 };
/** CPU with three replicas over that with one, at the same number of streams. */
const REPLICAS_CPU_FACTOR_MAX = 1.5;

const REMOTE: Remote = {
  wire: 'a2a-0.3',
  title: 'A2A 0.3 agent',
  entry: url => ({ adapter: 'a2a', url: `${url}/` }),
};

export type Run = {
  streams: number;
  tokens: number;
  cpu: CpuSeconds | undefined;
  stored: RecordCounts;
  agesMs: Float64Array;
  seconds: number;
};

/**
 * How many streams at the pace of a model do the cores of this machine sustain, and what does a token of them cost? An A2A 0.3 agent in a process of
 * its own, asked directly and through all services in turn.
 */
export const paced: Question = {
  name: 'paced',
  async ask(size) {
    const { warmUp, streams, seconds, directly, replicated } = PLANS[size];
    const one = await pacedRuns({ replicas: 1, warmUp, through: streams, directly: [...streams, ...directly], seconds });
    const findings = [finding(1, seconds, one, targetsOf(one))];
    if (replicated.length > 0) {
      const three = await pacedRuns({ replicas: 3, warmUp, through: replicated, directly: replicated, seconds });
      findings.push(finding(3, seconds, three, replicaTargets(one, three)));
    }
    return findings;
  },
};

/** `failed`: a sentence for each run of the agent asked directly that did not end. The figures of the other runs remain valid. */
type Runs = { direct: Run[]; ours: Run[]; failed: string[] };

/**
 * Runs these numbers of streams through Hopline, and with the agent asked directly. A number in both lists is run one after the other. Rejects
 * when a run through Hopline fails.
 */
export async function pacedRuns({
  replicas,
  warmUp,
  through,
  directly,
  seconds,
}: {
  replicas: 1 | 3;
  warmUp: WarmUp;
  through: readonly number[];
  directly: readonly number[];
  seconds: number;
}): Promise<Runs> {
  await using stack = new AsyncDisposableStack();
  const config = usersConfig({ ...benchLog, agents: [{ name: agentName(REMOTE) }] });
  const nodes = replicas === 1 ? undefined : await startNatsCluster(['n1', 'n2', 'n3'], { config });
  if (nodes !== undefined) stack.defer(() => nodes.stop());
  const [first] = nodes === undefined ? [] : [...nodes.servers.values()];
  const nats = first && { ...first, url: [...nodes!.servers.values()].map(({ url }) => url).join(',') };
  const env = { HOPLINE_REPLICAS: String(replicas) };
  const started = stack.use(await startPeers([REMOTE], { env, ...(nats && { nats }) }));
  const { bench } = started;
  const peers = started.peers[0]!;
  const rig = { ...peers, client: bench.client, natsUrl: bench.cluster.nats.url };
  await run(rig, peers.through, warmUp.streams, warmUp.seconds);
  const found: Runs = { direct: [], ours: [], failed: [] };
  for (const streams of new Set([...through, ...directly])) {
    if (directly.includes(streams)) {
      // The agent can be beyond its own limit here: 3,000 connections at once were reset on a slow machine.
      const [direct] = await Promise.allSettled([run(rig, peers.direct, streams, seconds)]);
      if (direct.status === 'fulfilled') found.direct.push(direct.value);
      else found.failed.push(`${streams} streams of the agent asked directly failed: ${(direct.reason as Error).message}`);
    }
    if (through.includes(streams)) found.ours.push(await run(rig, peers.through, streams, seconds));
  }
  return found;
}

type Rig = Peers & { client: Parameters<typeof ask>[0]; natsUrl: string };

/** Begins `streams` streams, and measures once all of them run. */
async function run({ client, natsUrl }: Rig, peer: Peer, streams: number, seconds: number): Promise<Run> {
  await peer.server.call('sentAtMs');
  // Long enough that the first stream still runs when the window of the last one ends.
  const tokens = Math.ceil(PER_SECOND * (seconds + 2 + (1.5 * streams * STAGGER_MS) / 1000));
  await ask(client, peer, streams, tokens);
  await delay(Math.min(1_000, 500 * seconds));
  const before = await countRecords(natsUrl);
  const fromMs = monotonicMs();
  const pids: Pids = { ...peer.pids, client: client.pid };
  const { cpu } = await withCpu(pids, () => delay(1_000 * seconds));
  const toMs = monotonicMs();
  const after = await countRecords(natsUrl);
  const stored = {
    inputs: after.inputs - before.inputs,
    facts: after.facts - before.facts,
    bytes: after.bytes - before.bytes,
  };
  const reports = await client.call('answers', { tokens });
  const lost = reports.find(({ intact }) => !intact);
  if (lost !== undefined) throw new Error(`${peer.title}: ${lost.tokens} of ${tokens} tokens arrived`);
  const sent = await peer.server.call('sentAtMs');
  const agesMs = agesWithin(sent, reports, fromMs, toMs);
  return { streams, tokens: agesMs.length, cpu, stored, agesMs, seconds: (toMs - fromMs) / 1000 };
}

async function ask(client: import('./bench-cluster.ts').Client, peer: Peer, streams: number, tokens: number): Promise<void> {
  const begun: Promise<string[]>[] = [];
  for (let stream = 1; stream <= streams; stream++) {
    // The agent returns its send times in the order of this number.
    begun.push(client.call('ask', { ...peer.ask, text: `${tokens} ${1000 / PER_SECOND} ${stream}`, count: 1 }));
    await delay(STAGGER_MS);
  }
  await Promise.all(begun);
}

/** Age at their clients of the tokens that were sent within the window. */
function agesWithin(sent: number[][], reports: readonly AnswerReport[], fromMs: number, toMs: number): Float64Array {
  const ages: number[] = [];
  for (const [stream, { arrivals }] of reports.entries()) {
    const times = sent[stream]!;
    let token = 0;
    for (let index = 0; index < arrivals.length; index += 2)
      for (; token < arrivals[index + 1]!; token++)
        if (times[token]! >= fromMs && times[token]! < toMs) ages.push(arrivals[index]! - times[token]!);
  }
  return Float64Array.from(ages);
}

function finding(replicas: 1 | 3, seconds: number, { direct, ours, failed }: Runs, targets: Target[]): Finding {
  const byStreams = [...direct.map(one => rowOf('directly', one)), ...ours.map(one => rowOf('through Hopline', one))];
  const rows = byStreams.toSorted(([one], [other]) => Number.parseInt(one!, 10) - Number.parseInt(other!, 10));
  const perToken = ours.map(({ streams, cpu, tokens }) => {
    const each = Object.entries(cpu ?? {}).map(([name, used]) => `${name} ${figure((1e6 * used) / tokens)}`);
    return `CPU µs a token at ${streams} streams through Hopline: ${each.join(', ')}`;
  });
  const sustained = (runs: readonly Run[]) =>
    Math.max(0, ...runs.flatMap(one => (latencyOf(one.agesMs).p99 < AGE_P99_MS_MAX ? [one.streams] : [])));
  return {
    title: `paced: streams of ${PER_SECOND} tokens/s, window of ${seconds} s, ${replicas === 1 ? '1 replica' : '3 replicas on 3 nodes'}, ${REMOTE.title}`,
    table: {
      columns: [
        'streams',
        'cores',
        'CPU µs a token',
        'Hopline and NATS',
        'age p50, ms',
        'p99',
        'appends a token',
        'bytes stored',
      ],
      rows,
    },
    notes: [
      ...perToken,
      ...failed,
      `the most streams of these with a p99 of the age below ${AGE_P99_MS_MAX} ms: ${sustained(ours)} through Hopline, ${sustained(direct)} directly`,
    ],
    targets,
    data: ours.map(({ streams, cpu, tokens, stored }) => ({ streams, cpu, tokens, stored })),
  };
}

/** Goals of the numbers of streams that were run. */
function targetsOf({ ours }: Runs): Target[] {
  return ours.flatMap(one => {
    const { p50, p99 } = latencyOf(one.agesMs);
    const appends = (one.stored.inputs + one.stored.facts) / one.tokens;
    const atMost = (name: string, bound: number, found: number | undefined): Target => ({
      name: `${one.streams} streams of ${PER_SECOND} tokens/s: ${name}`,
      wanted: { atMost: bound },
      found,
    });
    if (one.streams === MANY.streams)
      return [
        atMost('age p50, ms', MANY.ageP50, p50),
        atMost('age p99, ms', MANY.ageP99, p99),
        atMost('appends a token', MANY.appends, appends),
        atMost('bytes stored a token', MANY.bytes, one.stored.bytes / one.tokens),
      ];
    if (one.streams === FEW.streams)
      return [
        atMost('age p50, ms', FEW.ageP50, p50),
        atMost('appends a token', FEW.appends, appends),
        atMost('CPU µs a token, Hopline and NATS', FEW.cpu, ownMicros(one)),
      ];
    return [];
  });
}

function replicaTargets(one: Runs, three: Runs): Target[] {
  return three.ours.flatMap(run => {
    const alike = one.ours.find(({ streams }) => streams === run.streams);
    const [ours, theirs] = [ownMicros(run), alike && ownMicros(alike)];
    const name = `CPU of three replicas over one, ${run.streams} streams`;
    return [{ name, wanted: { atMost: REPLICAS_CPU_FACTOR_MAX }, found: ours && theirs && ours / theirs }];
  });
}

/** CPU of Hopline and NATS, microseconds a token; undefined where CPU cannot be measured. */
function ownMicros({ cpu, tokens }: Run): number | undefined {
  return cpu && (1e6 * (totalOf(cpu) - cpu['the agent']! - cpu.client!)) / tokens;
}

function rowOf(way: string, run: Run): string[] {
  const { streams, tokens, cpu, stored, agesMs, seconds } = run;
  const { p50, p99 } = latencyOf(agesMs);
  const all = cpu && totalOf(cpu);
  const isOurs = way !== 'directly';
  const figureOrNone = (value: number | undefined) => (value === undefined ? '–' : figure(value));
  const each = (value: number | undefined) => figureOrNone(value && value / tokens);
  return [
    `${streams} ${way}`,
    all === undefined ? '–' : figure(all / seconds),
    each(all && 1e6 * all),
    isOurs ? figureOrNone(ownMicros(run)) : '–',
    figure(p50),
    figure(p99),
    isOurs ? each(stored.inputs + stored.facts) : '–',
    isOurs ? each(stored.bytes) : '–',
  ];
}
