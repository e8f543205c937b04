import { type DirectCluster, startDirectCluster } from './bench-cluster.ts';
import { totalOf, withCpu } from './measure/process-usage.ts';
import { interleave } from './measure/rounds.ts';
import { spreadOf } from './measure/spread.ts';
import { SPREAD_COLUMNS, spreadCells, type Table } from './measure/table.ts';
import type { Target } from './measure/targets.ts';
import type { Question, Size } from './question.ts';
import { ANSWER } from './tokens.ts';

/** Tokens in one task. */
type Plan = { rounds: number; lengths: [short: number, middle: number, long: number]; pacePerSecond: number };
const PLANS: Record<Size, Plan> = {
  full: { rounds: 5, lengths: [1_000, 10_000, 100_000], pacePerSecond: 25_000 },
  quick: { rounds: 5, lengths: [1_000, 5_000, 25_000], pacePerSecond: 25_000 },
  tiny: { rounds: 1, lengths: [50, 100, 200], pacePerSecond: 5_000 },
};

type Cost = { wallUs: number; cpuUs: number | undefined };

/**
 * Does a token cost more in a long task? Each batch has the same number of tokens, in one task or in a hundred sequential ones: in bursts,
 * and at a fixed pace, where batches and chunks are alike and only the length differs.
 */
export const taskLength: Question = {
  name: 'task-length',
  async ask(size) {
    const { rounds, lengths, pacePerSecond } = PLANS[size];
    await using bench = await startDirectCluster();
    const total = lengths[2];
    const peers = (perSecond?: number) =>
      Object.fromEntries(lengths.map(length => [length, () => batch(bench, total / length, length, perSecond)]));
    await interleave(1, peers());
    const burst = await interleave(rounds, peers());
    const paced = await interleave(rounds, peers(pacePerSecond));
    const [short, , long] = lengths;
    const burstWall = growth(burst, short, long, cost => cost.wallUs);
    const targets: Target[] = [
      { name: `wall time per token at ${long} tokens over that at ${short}`, wanted: { atMost: 1.1 }, found: burstWall },
    ];
    for (const [name, costs] of [
      ['in bursts', burst],
      [`at ${pacePerSecond}/s`, paced],
    ] as const) {
      const found = growth(costs, short, long, cost => cost.cpuUs);
      targets.push({ name: `CPU per token at ${long} tokens over that at ${short}, ${name}`, wanted: { atMost: 1.1 }, found });
    }
    return [
      {
        title: `cost of a token by the length of its task, in bursts, ${total} tokens a round, ${rounds} rounds`,
        table: tableOf(lengths, burst, true),
      },
      {
        title: `the same at ${pacePerSecond} tokens/s`,
        table: tableOf(lengths, paced, false),
        notes: ['CPU of relay, ingress, producer and nats-server together; the client is not counted'],
        targets,
      },
    ];
  },
};

/** `count` sequential tasks; all streams are open before the clock starts. Microseconds per token. */
async function batch(bench: DirectCluster, count: number, tokens: number, perSecond?: number): Promise<Cost> {
  const { client, producer, cluster } = bench;
  const taskIds = await client.call('ask', { url: cluster.url, text: 'begin', artifact: ANSWER, count });
  const { result: wallMs, cpu } = await withCpu(bench.pids, async () => {
    let spentMs = 0;
    for (const taskId of taskIds) {
      const startMs = await producer.call('answer', { taskIds: [taskId], tokens, ...(perSecond !== undefined && { perSecond }) });
      const endMs = await client.call('ended', { taskId });
      spentMs += endMs - startMs;
    }
    return spentMs;
  });
  const reports = await client.call('answers', { tokens });
  if (reports.some(({ intact }) => !intact)) throw new Error('a text did not arrive complete');
  const perToken = 1 / (count * tokens);
  return { wallUs: wallMs * 1e3 * perToken, cpuUs: cpu && totalOf(cpu) * 1e6 * perToken };
}

type Costs = Record<string, Cost[]>;

function growth(costs: Costs, short: number, long: number, of: (cost: Cost) => number | undefined) {
  const ratios = costs[long]!.flatMap((cost, index) => {
    const [above, below] = [of(cost), of(costs[short]![index]!)];
    return above === undefined || !below ? [] : [above / below];
  });
  return ratios.length === 0 ? undefined : spreadOf(ratios);
}

function tableOf(lengths: readonly number[], costs: Costs, wall: boolean): Table {
  const rows: string[][] = [];
  for (const length of lengths) {
    const name = `${length.toLocaleString('en-US')} tokens`;
    if (wall) rows.push([`${name}: wall`, ...spreadCells(spreadOf(costs[length]!.map(cost => cost.wallUs)))]);
    const cpu = costs[length]!.flatMap(({ cpuUs }) => (cpuUs === undefined ? [] : [cpuUs]));
    rows.push([`${name}: CPU`, ...(cpu.length === 0 ? ['unavailable'] : spreadCells(spreadOf(cpu)))]);
  }
  return { columns: ['µs per token', ...SPREAD_COLUMNS], rows };
}
