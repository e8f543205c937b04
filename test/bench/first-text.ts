import { type BenchCluster, startClient } from './bench-cluster.ts';
import type { AnswerReport } from './client/answer.ts';
import { HOPS_NOTE, hopsOf, meanOf } from './hops.ts';
import { interleave } from './measure/rounds.ts';
import { latencyOf, type Spread, spreadOf } from './measure/spread.ts';
import { figure, SPREAD_COLUMNS, spreadCells } from './measure/table.ts';
import { type Peer, type Peers, REMOTE_A2A, runs, startPeers } from './peers.ts';
import type { Finding, Question, Size } from './question.ts';

/** Tokens of an answer, and milliseconds between them. */
type Answer = { tokens: number; everyMs: number };
const STREAM: Answer = { tokens: 3, everyMs: 20 };
const ONE_TOKEN: Answer = { tokens: 1, everyMs: 0 };
/** Tasks that run during the question. They have more tokens than they can stream while the bench runs. */
const LOAD: Answer & { tasks: number } = { tasks: 40, tokens: 50 * 600, everyMs: 20 };
const STAGGER_MS = 10;

/**
 * Targets for the time from the question to the first text in milliseconds. All except the last are in addition to the time of an agent
 * that is asked directly.
 */
const IDLE_P50_MS_MAX = 10;
const IDLE_P99_MS_MAX = 25;
const BESIDE_LOAD_P99_MS_MAX = 40;
const AT_ONCE_P50_MS_MAX = 250;

/**
 * `asks`: questions of a round, asked one at a time. `warmUps`: questions of one token to each peer before the rounds; a process just
 * started runs code that is not compiled yet.
 */
type Plan = { rounds: number; asks: number; warmUps: number; atOnce: number };
const PLANS: Record<Size, Plan> = {
  full: { rounds: 5, asks: 60, warmUps: 300, atOnce: 200 },
  quick: { rounds: 5, asks: 20, warmUps: 150, atOnce: 200 },
  tiny: { rounds: 1, asks: 2, warmUps: 1, atOnce: 3 },
};

type Rig = Peers & { plan: Plan; bench: BenchCluster };
/** One answer. `sentMs`: from the question until the agent sends its first token. `receivedMs`: from then until the client receives it. */
type Ask = { report: AnswerReport; totalMs: number; sentMs: number; receivedMs: number };
type Asks = { direct: Ask[]; ours: Ask[] };

/**
 * When does a client see the first text? An A2A agent that streams at a steady pace, asked directly and through all services in turn: one question at
 * a time, many at once, and one at a time during other tasks.
 */
export const firstText: Question = {
  name: 'first-text',
  async ask(size) {
    await using started = await startPeers([REMOTE_A2A]);
    const { bench, peers } = started;
    const rig: Rig = { ...peers[0]!, plan: PLANS[size], bench };
    const idle = await whenIdle(rig);
    return [idle.finding, ...(await atOnce(rig, idle.hops)), await besideLoad(rig)];
  },
};

async function ask({ bench }: Rig, peer: Peer, answer: Answer): Promise<Ask> {
  const { tokens, everyMs } = answer;
  await peer.server.call('sentAtMs');
  const [report] = (await runs(bench.client, peer, `${tokens} ${everyMs}`, { count: 1, atOnce: 1, tokens })) as [AnswerReport];
  const [sent, ...more] = await peer.server.call('sentAtMs');
  if (sent === undefined || more.length > 0) throw new Error(`${peer.title}: the agent ran ${more.length + 1} times`);
  const { askedAtMs, firstTextAtMs } = report;
  return { report, totalMs: firstTextMs(report), sentMs: sent[0]! - askedAtMs, receivedMs: firstTextAtMs - sent[0]! };
}

function firstTextMs({ askedAtMs, firstTextAtMs }: AnswerReport): number {
  return firstTextAtMs - askedAtMs;
}

const total = ({ totalMs }: Ask) => totalMs;
const received = ({ receivedMs }: Ask) => receivedMs;

async function asksInTurn(rig: Rig, count: number, answer: Answer): Promise<Asks> {
  return interleave(count, { direct: () => ask(rig, rig.direct, answer), ours: () => ask(rig, rig.through, answer) });
}

async function whenIdle(rig: Rig): Promise<{ finding: Finding; hops: Map<string, number[]> }> {
  const { rounds, asks, warmUps } = rig.plan;
  const atFirst = await asksInTurn(rig, 1, STREAM);
  await asksInTurn(rig, warmUps, ONE_TOKEN);
  const found = await asksInTurn(rig, rounds * asks, STREAM);
  const finding: Finding = {
    title: `first text: one question at a time, ${rounds * asks} each after ${warmUps} to warm up, ${STREAM.tokens} tokens ${STREAM.everyMs} ms apart`,
    table: {
      columns: PERCENTILE_COLUMNS,
      rows: [
        ...percentileRows(found),
        percentileRow('just started, the agent asked directly, question to first text', atFirst.direct, total).slice(0, 2),
        percentileRow('just started, through Hopline, question to first text', atFirst.ours, total).slice(0, 2),
      ],
    },
    notes: [
      'question to yield: the message, the plan and the call are stored before the agent starts; yield to client: the first text is stored twice',
    ],
    targets: [
      {
        name: 'first text, idle, ms over the agent asked directly: p50',
        wanted: { atMost: IDLE_P50_MS_MAX },
        found: p50Over(found, asks),
      },
      {
        name: 'first text, idle, ms over the agent asked directly: p99',
        wanted: { atMost: IDLE_P99_MS_MAX },
        found: p99Over(found),
      },
    ],
  };
  const reports = found.ours.map(({ report }) => report);
  return { finding, hops: await hopsOf(rig.bench.cluster.nats.url, reports) };
}

function percentiles(values: number[]): [p50: number, p99: number, max: number] {
  const { p50, p99, max } = latencyOf(Float64Array.from(values));
  return [p50, p99, max];
}

/** The median of each round. */
function p50Over({ direct, ours }: Asks, asks: number): Spread {
  const p50 = (all: Ask[], round: number) => percentiles(all.slice(round * asks, (round + 1) * asks).map(total))[0];
  return spreadOf(Array.from({ length: ours.length / asks }, (_, round) => p50(ours, round) - p50(direct, round)));
}

/** The 99th percentile over all rounds, because one round has too few questions. */
function p99Over({ direct, ours }: Asks): number {
  const p99 = (all: Ask[]) => percentiles(all.map(total))[1];
  return p99(ours) - p99(direct);
}

/** `alone`: the hops of questions that were asked one at a time. */
async function atOnce(rig: Rig, alone: Map<string, number[]>): Promise<Finding[]> {
  const { rounds, atOnce: count } = rig.plan;
  const { tokens } = ONE_TOKEN;
  const all = (peer: Peer) => runs(rig.bench.client, peer, `${tokens}`, { count, atOnce: count, tokens });
  const peers = { direct: () => all(rig.direct), ours: () => all(rig.through) };
  await interleave(1, peers);
  const { direct, ours } = await interleave(rounds, peers);
  const ofRounds = (name: string, found: AnswerReport[][], pick: (times: number[]) => number) => [
    name,
    ...spreadCells(spreadOf(found.map(reports => pick(reports.map(firstTextMs))))),
  ];
  const ends = (reports: AnswerReport[]) =>
    Math.max(...reports.map(({ endedAtMs }) => endedAtMs)) - Math.min(...reports.map(({ askedAtMs }) => askedAtMs));
  const p50 = spreadOf(ours.map(reports => percentiles(reports.map(firstTextMs))[0]));
  const rows = [
    ofRounds('the agent asked directly, question to first text: p50', direct, times => percentiles(times)[0]),
    ['through Hopline, question to first text: p50', ...spreadCells(p50)],
    ofRounds('through Hopline, question to first text: min', ours, times => Math.min(...times)),
    ofRounds('through Hopline, question to first text: p99', ours, times => percentiles(times)[1]),
    ['the agent asked directly, all answers complete', ...spreadCells(spreadOf(direct.map(ends)))],
    ['through Hopline, all answers complete', ...spreadCells(spreadOf(ours.map(ends)))],
  ];
  const found: Finding = {
    title: `first text: ${count} questions at once, one token each, ${rounds} rounds`,
    table: { columns: ['ms', ...SPREAD_COLUMNS], rows },
    targets: [
      {
        name: `first text, ${count} questions at once, ms from question to client: p50`,
        wanted: { atMost: AT_ONCE_P50_MS_MAX },
        found: p50,
      },
    ],
  };
  const hopRows = [...(await hopsOf(rig.bench.cluster.nats.url, ours.flat()))].map(([hop, ms]) => [
    hop,
    ...[meanOf(alone.get(hop) ?? [0]), meanOf(ms), percentiles(ms)[1]].map(figure),
  ]);
  const where: Finding = {
    title: `first text: where the milliseconds go, of a question alone and of ${count} at once`,
    table: { columns: ['ms', 'alone: mean', 'at once: mean', 'at once: p99'], rows: hopRows },
    notes: [HOPS_NOTE, `alone: ${STREAM.tokens} tokens ${STREAM.everyMs} ms apart`],
  };
  return [found, where];
}

async function besideLoad(rig: Rig): Promise<Finding> {
  const { rounds, asks } = rig.plan;
  const { tasks, tokens, everyMs } = LOAD;
  await using loader = startClient();
  const { ask: toAgent, server } = rig.through;
  await server.call('sentAtMs');
  await loader.call('ask', { ...toAgent, text: `${tokens} ${everyMs}`, count: tasks, staggerMs: STAGGER_MS });
  for (let begun = 0; begun < tasks; ) begun += (await server.call('sentAtMs')).length;
  const found = await asksInTurn(rig, rounds * asks, STREAM);
  return {
    title: `first text: beside ${tasks} tasks at ${1000 / everyMs} tokens/s through Hopline, one question at a time, ${rounds * asks} each`,
    table: { columns: PERCENTILE_COLUMNS, rows: percentileRows(found) },
    targets: [
      {
        name: `first text, beside ${tasks} tasks at ${1000 / everyMs} tokens/s, ms over the agent asked directly: p99`,
        wanted: { atMost: BESIDE_LOAD_P99_MS_MAX },
        found: p99Over(found),
      },
    ],
  };
}

const PERCENTILE_COLUMNS = ['ms', 'p50', 'p99', 'max'];
const percentileRow = (name: string, asks: Ask[], pick: (ask: Ask) => number) => [
  name,
  ...percentiles(asks.map(pick)).map(figure),
];

function percentileRows({ direct, ours }: Asks): string[][] {
  return [
    percentileRow('the agent asked directly, question to first text', direct, total),
    percentileRow('through Hopline, question to first text', ours, total),
    percentileRow('the agent asked directly, yield to client', direct, received),
    percentileRow('through Hopline, yield to client', ours, received),
    percentileRow('through Hopline, question to yield', ours, ({ sentMs }) => sentMs),
  ];
}
