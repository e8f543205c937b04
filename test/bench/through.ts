import type { BenchCluster } from './bench-cluster.ts';
import type { AnswerReport } from './client/answer.ts';
import { FIRST_TEXT_SUM, HOPS_NOTE, hopsOf, meanOf } from './hops.ts';
import { type CpuSeconds, totalOf, withCpu } from './measure/process-usage.ts';
import { interleave } from './measure/rounds.ts';
import { latencyOf, type Spread, spreadOf } from './measure/spread.ts';
import { figure, SPREAD_COLUMNS, spreadCells } from './measure/table.ts';
import { type Peer, type Peers, REMOTE_A2A, type Remote, runs, startPeers } from './peers.ts';
import type { Finding, Question, Size } from './question.ts';

const PER_CPU_FIGURE = 100_000;
/** Milliseconds between two tokens of a steady answer. */
const STEADY_MS = 20;

/** Targets for the cost of an agent through Hopline, compared with asking it directly. */
const BURST_RATIO_MIN = 0.95;
const TOKEN_US_MAX = 8;
const TASKS_PER_SECOND_MIN = 250;
const TASK_RATIO_MIN = 0.25;
const ALONE_MS_MAX = 12;
const TASK_CPU_MS_MAX = 6;

const REMOTES: Remote[] = [
  REMOTE_A2A,
  { wire: 'a2a-0.3', title: 'A2A 0.3, status messages', entry: url => ({ adapter: 'a2a', url: `${url}/` }) },
  { wire: 'langgraph', title: 'LangGraph server', entry: url => ({ adapter: 'langgraph', url, assistant: 'chat' }) },
  {
    wire: 'model',
    title: 'model, chat completions',
    entry: url => ({ adapter: 'model', model: 'stand-in', baseUrl: `${url}/v1` }),
  },
];

/**
 * `burst`, `steady`: tokens of an answer. `short`: one-token tasks of a round, `atOnce` at a time. `alone`: one-token tasks, one after
 * another.
 */
type Plan = { rounds: number; burst: number; steady: number; short: number; atOnce: number; alone: number };
const PLANS: Record<Size, Plan> = {
  full: { rounds: 5, burst: 100_000, steady: 150, short: 650, atOnce: 50, alone: 40 },
  quick: { rounds: 3, burst: 25_000, steady: 50, short: 200, atOnce: 50, alone: 15 },
  tiny: { rounds: 1, burst: 200, steady: 5, short: 4, atOnce: 2, alone: 2 },
};

type Rig = Peers & { plan: Plan; bench: BenchCluster };

type Burst = { tokensPerSecond: number; cpu: CpuSeconds | undefined };
type Short = { tasksPerSecond: number; cpu: CpuSeconds | undefined };

/** How much do agents in separate processes cost if they are asked through Hopline instead of directly? */
export const through: Question = {
  name: 'through',
  async ask(size) {
    const plan = PLANS[size];
    await using started = await startPeers(REMOTES);
    const { bench, peers } = started;
    const rigs = peers.map(asked => ({ ...asked, plan, bench }));
    const findings: Finding[] = [await bursts(rigs)];
    // One wire is enough, because the cost of a task without its tokens does not depend on the adapter.
    findings.push(await steady(rigs[0]!), ...(await shortTasks(rigs[0]!)));
    return findings;
  },
};

async function burst(rig: Rig, peer: Peer, tokens: number): Promise<Burst> {
  const { result, cpu } = await withCpu({ ...peer.pids, client: rig.bench.client.pid }, () =>
    runs(rig.bench.client, peer, String(tokens), { count: 1, atOnce: 1, tokens }),
  );
  const [{ askedAtMs, endedAtMs }] = result as [AnswerReport];
  return { tokensPerSecond: (1000 * tokens) / (endedAtMs - askedAtMs), cpu };
}

async function bursts(rigs: Rig[]): Promise<Finding> {
  const { rounds, burst: tokens } = rigs[0]!.plan;
  const rows: string[][] = [];
  const targets: Finding['targets'] = [];
  for (const rig of rigs) {
    const { title } = rig.remote;
    const peers = { direct: () => burst(rig, rig.direct, tokens), ours: () => burst(rig, rig.through, tokens) };
    await interleave(1, peers);
    const { direct, ours } = await interleave(rounds, peers);
    const rate = (found: Burst[]) => found.map(({ tokensPerSecond }) => tokensPerSecond);
    const ratio = spreadOf(rate(ours).map((value, round) => value / rate(direct)[round]!));
    rows.push([`${title}: directly, tokens/s`, ...spreadCells(spreadOf(rate(direct)))]);
    rows.push([`${title}: through Hopline, tokens/s`, ...spreadCells(spreadOf(rate(ours)))]);
    rows.push([`${title}: through over directly`, ...spreadCells(ratio)]);
    const cpu = cpuSpreads(ours, PER_CPU_FIGURE / tokens);
    for (const [service, spread] of cpu)
      rows.push([`  CPU seconds per ${PER_CPU_FIGURE.toLocaleString('en-US')} tokens: ${service}`, ...spreadCells(spread)]);
    targets.push({ name: `${title}: burst, through over directly`, wanted: { atLeast: BURST_RATIO_MIN }, found: ratio });
    const subAgent = cpu.get('sub-agent');
    const found = subAgent && scaled(subAgent, 1e6 / PER_CPU_FIGURE);
    targets.push({ name: `${title}: a token in the sub-agent, µs of CPU`, wanted: { atMost: TOKEN_US_MAX }, found });
  }
  return {
    title: `through: ${tokens.toLocaleString('en-US')} tokens in a burst, ${rounds} rounds after one to warm up`,
    table: { columns: ['', ...SPREAD_COLUMNS], rows },
    notes: ['the agent writes each token by itself; CPU is read in ticks of 10 ms, with garbage collection and compilation'],
    targets,
  };
}

/** The spread of CPU times by process; empty without /proc. */
function cpuSpreads(rounds: { cpu: CpuSeconds | undefined }[], scale: number): Map<string, Spread> {
  const spent = rounds.flatMap(({ cpu }) => (cpu === undefined ? [] : [cpu]));
  if (spent.length < rounds.length) return new Map();
  return new Map(Object.keys(spent[0]!).map(name => [name, spreadOf(spent.map(cpu => cpu[name]! * scale))]));
}

function scaled({ min, median, max, rounds }: Spread, factor: number): Spread {
  // Rounds, because ticks are exact and a figure equal to its target must not miss it by a rounding error.
  const times = (value: number) => Math.round(value * factor * 1e6) / 1e6;
  return { min: times(min), median: times(median), max: times(max), rounds };
}

/** From the agent's write of a token to the client's receipt of the frame that contains it, in milliseconds. */
async function ages(rig: Rig, peer: Peer): Promise<number[]> {
  const { steady: tokens } = rig.plan;
  await peer.server.call('sentAtMs');
  const [{ arrivals }] = (await runs(rig.bench.client, peer, `${tokens} ${STEADY_MS}`, { count: 1, atOnce: 1, tokens })) as [
    AnswerReport,
  ];
  const [sent, ...more] = await peer.server.call('sentAtMs');
  if (sent === undefined || more.length > 0) throw new Error(`${peer.title}: the agent ran ${more.length + 1} times`);
  const found: number[] = [];
  for (let index = 0; index < arrivals.length; index += 2)
    while (found.length < arrivals[index + 1]!) found.push(arrivals[index]! - sent[found.length]!);
  return found;
}

async function steady(rig: Rig): Promise<Finding> {
  const { rounds, steady: tokens } = rig.plan;
  const { direct, ours } = await interleave(rounds, {
    direct: () => ages(rig, rig.direct),
    ours: () => ages(rig, rig.through),
  });
  const percentiles = (name: string, found: number[][]) =>
    (['p50', 'p99'] as const).map(which => [
      `${name}: ${which}`,
      ...spreadCells(spreadOf(found.map(values => latencyOf(Float64Array.from(values))[which]))),
    ]);
  return {
    title: `through: age of a token at 50 tokens/s, ${tokens} tokens, ${rounds} rounds, ${rig.remote.title}`,
    table: {
      columns: ['ms', ...SPREAD_COLUMNS],
      rows: [...percentiles('directly', direct), ...percentiles('through Hopline', ours)],
    },
  };
}

async function short(rig: Rig, peer: Peer): Promise<Short> {
  const { short: count, atOnce } = rig.plan;
  const startMs = performance.now();
  const { cpu } = await withCpu(peer.pids, () => runs(rig.bench.client, peer, '1', { count, atOnce, tokens: 1 }));
  return { tasksPerSecond: (1000 * count) / (performance.now() - startMs), cpu };
}

async function shortTasks(rig: Rig): Promise<Finding[]> {
  const { rounds, short: count, atOnce, alone } = rig.plan;
  const peers = { direct: () => short(rig, rig.direct), ours: () => short(rig, rig.through) };
  await interleave(1, peers);
  const { direct, ours } = await interleave(rounds, peers);
  const one = (peer: Peer) => runs(rig.bench.client, peer, '1', { count: alone, atOnce: 1, tokens: 1 });
  const single = await interleave(rounds, { direct: () => one(rig.direct), ours: () => one(rig.through) });
  const rate = (found: Short[]) => found.map(({ tasksPerSecond }) => tasksPerSecond);
  const rates = { direct: rate(direct), ours: rate(ours) };
  const ratio = spreadOf(rates.ours.map((value, round) => value / rates.direct[round]!));
  const perTask = cpuSpreads(ours, 1000 / count);
  const ownCpu = ours.flatMap(({ cpu }) => (cpu === undefined ? [] : [(1000 * (totalOf(cpu) - cpu['the agent']!)) / count]));
  const p50 = (reports: AnswerReport[]) =>
    latencyOf(Float64Array.from(reports, ({ askedAtMs, endedAtMs }) => endedAtMs - askedAtMs)).p50;
  const oursAlone = spreadOf(single.ours.map(p50));
  const totalCpu = ownCpu.length === rounds ? spreadOf(ownCpu) : undefined;
  const rows = [
    [`directly, ${atOnce} at once, tasks/s`, ...spreadCells(spreadOf(rates.direct))],
    [`through Hopline, ${atOnce} at once, tasks/s`, ...spreadCells(spreadOf(rates.ours))],
    ['through over directly', ...spreadCells(ratio)],
    ['directly, one at a time, p50 ms', ...spreadCells(spreadOf(single.direct.map(p50)))],
    ['through Hopline, one at a time, p50 ms', ...spreadCells(oursAlone)],
    ...[...perTask].map(([service, spread]) => [`  CPU ms a task: ${service}`, ...spreadCells(spread)]),
    ...(totalCpu === undefined ? [] : [['  CPU ms a task: all but the agent', ...spreadCells(totalCpu)]]),
  ];
  const rateFinding: Finding = {
    title: `through: tasks of one token, ${count} a round, ${rounds} rounds, ${rig.remote.title}`,
    table: { columns: ['', ...SPREAD_COLUMNS], rows },
    targets: [
      { name: 'one-token tasks/s through all services', wanted: { atLeast: TASKS_PER_SECOND_MIN }, found: spreadOf(rates.ours) },
      { name: `one-token tasks, ${atOnce} at once, through over directly`, wanted: { atLeast: TASK_RATIO_MIN }, found: ratio },
      { name: 'one one-token task at a time, p50 ms', wanted: { atMost: ALONE_MS_MAX }, found: oursAlone },
      { name: 'a one-token task, CPU ms in all services', wanted: { atMost: TASK_CPU_MS_MAX }, found: totalCpu },
    ],
  };
  return [rateFinding, await hops(rig, single.ours.flat())];
}

/** Hops of the one-token tasks, in milliseconds. */
async function hops({ bench, remote }: Rig, reports: AnswerReport[]): Promise<Finding> {
  const rows = [...(await hopsOf(bench.cluster.nats.url, reports))].map(([hop, ms]) => {
    const { p50, p99 } = latencyOf(Float64Array.from(ms));
    return [hop, ...[meanOf(ms), p50, p99].map(figure)];
  });
  return {
    title: `through: where the milliseconds of one one-token task at a time go, ${reports.length} tasks, ${remote.title}`,
    table: { columns: ['ms', 'mean', 'p50', 'p99'], rows },
    notes: [HOPS_NOTE, `the rows up to the first text add up to "${FIRST_TEXT_SUM}", the two after it to "question to end"`],
  };
}
