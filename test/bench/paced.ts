import { setTimeout as delay } from 'node:timers/promises';
import { startNatsCluster } from '../support/nats/nats-server.ts';
import type { AnswerReport } from './client/answer.ts';
import { monotonicMs } from './measure/clock.ts';
import { type CpuSeconds, type Pids, totalOf, withCpu } from './measure/process-usage.ts';
import { latencyOf } from './measure/spread.ts';
import { figure } from './measure/table.ts';
import { type Peer, type Peers, type Remote, startPeers } from './peers.ts';
import type { Finding, Question, Size } from './question.ts';
import { countRecords, type RecordCounts } from './stored-records.ts';

/** The pace of a language model. */
export const PER_SECOND = 20;
/** Users do not send in the same millisecond, and their tokens come at different times. */
const STAGGER_MS = 7;
/** More concurrent turns than one supervisor or agent takes by default. */
const SLOTS = { HOPLINE_SLOTS: '4096' };
/** Streams are sustained while 99 % of their tokens are younger than this at their clients. */
const AGE_P99_MS_MAX = 500;

/** `streams`: number of streams in each run. `seconds`: length of its measured window. `replicated`: the same with three replicas on three nodes. */
type Plan = { streams: number[]; seconds: number; replicated: number[] };
const PLANS: Record<Size, Plan> = {
  full: { streams: [30, 100, 300, 600, 1000], seconds: 15, replicated: [30, 100, 300] },
  quick: { streams: [30, 100, 200], seconds: 8, replicated: [] },
  tiny: { streams: [3], seconds: 0.2, replicated: [] },
};

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
    const plan = PLANS[size];
    const findings = [await withReplicas(1, plan.streams, plan.seconds)];
    if (plan.replicated.length > 0) findings.push(await withReplicas(3, plan.replicated, plan.seconds));
    return findings;
  },
};

async function withReplicas(replicas: 1 | 3, counts: readonly number[], seconds: number): Promise<Finding> {
  const runs = await pacedRuns({ replicas, counts, seconds, asksDirectly: true });
  return finding(
    replicas,
    seconds,
    runs.map(({ direct, ours }) => ({ direct: direct!, ours })),
  );
}

/** Runs of these numbers of streams through Hopline, and with `asksDirectly` of the agent, too. */
export async function pacedRuns({
  replicas,
  counts,
  seconds,
  asksDirectly,
}: {
  replicas: 1 | 3;
  counts: readonly number[];
  seconds: number;
  asksDirectly: boolean;
}): Promise<{ direct: Run | undefined; ours: Run }[]> {
  await using stack = new AsyncDisposableStack();
  const nodes = replicas === 1 ? undefined : await startNatsCluster(['n1', 'n2', 'n3']);
  if (nodes !== undefined) stack.defer(() => nodes.stop());
  const [first] = nodes === undefined ? [] : [...nodes.servers.values()];
  const nats = first && { ...first, url: [...nodes!.servers.values()].map(({ url }) => url).join(',') };
  const env = { ...SLOTS, HOPLINE_REPLICAS: String(replicas) };
  const started = stack.use(await startPeers([REMOTE], { env, ...(nats && { nats }) }));
  const { bench } = started;
  const peers = started.peers[0]!;
  const rig = { ...peers, client: bench.client, natsUrl: bench.cluster.nats.url };
  await run(rig, peers.through, Math.min(20, counts[0]!), Math.min(2, seconds));
  const found: { direct: Run | undefined; ours: Run }[] = [];
  for (const streams of counts) {
    const direct = asksDirectly ? await run(rig, peers.direct, streams, seconds) : undefined;
    found.push({ direct, ours: await run(rig, peers.through, streams, seconds) });
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

function finding(replicas: 1 | 3, seconds: number, runs: readonly { direct: Run; ours: Run }[]): Finding {
  const rows = runs.flatMap(({ direct, ours }) => [rowOf('directly', direct), rowOf('through Hopline', ours)]);
  const perToken = runs.map(({ ours: { streams, cpu, tokens } }) => {
    const each = Object.entries(cpu ?? {}).map(([name, used]) => `${name} ${figure((1e6 * used) / tokens)}`);
    return `CPU µs a token at ${streams} streams through Hopline: ${each.join(', ')}`;
  });
  const sustained = (of: 'direct' | 'ours') =>
    Math.max(0, ...runs.map(pair => pair[of]).flatMap(one => (latencyOf(one.agesMs).p99 < AGE_P99_MS_MAX ? [one.streams] : [])));
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
      `the most streams of these with a p99 of the age below ${AGE_P99_MS_MAX} ms: ${sustained('ours')} through Hopline, ${sustained('direct')} directly`,
    ],
    data: runs.map(({ ours: { streams, cpu, tokens, stored } }) => ({ streams, cpu, tokens, stored })),
  };
}

function rowOf(way: string, { streams, tokens, cpu, stored, agesMs, seconds }: Run): string[] {
  const { p50, p99 } = latencyOf(agesMs);
  const all = cpu && totalOf(cpu);
  const own = all && all - cpu!['the agent']! - cpu!.client!;
  const isOurs = way !== 'directly';
  const each = (value: number | undefined) => (value === undefined ? '–' : figure(value / tokens));
  return [
    `${streams} ${way}`,
    all === undefined ? '–' : figure(all / seconds),
    each(all && 1e6 * all),
    isOurs ? each(own && 1e6 * own) : '–',
    figure(p50),
    figure(p99),
    isOurs ? each(stored.inputs + stored.facts) : '–',
    isOurs ? each(stored.bytes) : '–',
  ];
}
