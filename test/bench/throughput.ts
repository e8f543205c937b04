import { startNats } from '../support/nats/nats-server.ts';
import { type DirectCluster, type Producer, startDirectCluster, startProducer } from './bench-cluster.ts';
import { type CpuSeconds, withCpu } from './measure/process-usage.ts';
import { interleave } from './measure/rounds.ts';
import { spreadOf } from './measure/spread.ts';
import { SPREAD_COLUMNS, spreadCells } from './measure/table.ts';
import type { Finding, Question, Size } from './question.ts';
import { countRecords, type RecordCounts } from './stored-records.ts';
import { ANSWER } from './tokens.ts';

const IN_FLIGHT = 512;
const PER_CPU_FIGURE = 100_000;

type Plan = { rounds: number; rawTokens: number; rawTasks: number; tasks: number; tokensEach: number };
const PLANS: Record<Size, Plan> = {
  full: { rounds: 7, rawTokens: 60_000, rawTasks: 64, tasks: 32, tokensEach: 3_125 },
  quick: { rounds: 5, rawTokens: 20_000, rawTasks: 64, tasks: 32, tokensEach: 1_000 },
  tiny: { rounds: 1, rawTokens: 200, rawTasks: 8, tasks: 4, tokensEach: 50 },
};

type Round = { tokensPerSecond: number; cpu?: CpuSeconds | undefined; frames?: number };

/**
 * How many tokens per second can the whole path process, compared with the broker's limit for one message per token, and how much CPU does
 * each service spend? The limit is measured on a second nats-server, without relays as readers.
 */
export const throughput: Question = {
  name: 'throughput',
  async ask(size) {
    const plan = PLANS[size];
    await using stack = new AsyncDisposableStack();
    const rawNats = await startNats();
    stack.defer(() => rawNats.stop());
    const rawProducer = stack.use(await startProducer(rawNats.url));
    const bench = stack.use(await startDirectCluster());
    await warmUp(bench, rawProducer, plan);
    const before = await countRecords(bench.cluster.nats.url);
    let run = 0;
    const { raw, whole } = await interleave<'raw' | 'whole', Round>(plan.rounds, {
      raw: () => rawCeiling(rawProducer, plan, `run-${++run}`),
      whole: () => wholePath(bench, plan.tasks, plan.tokensEach),
    });
    const after = await countRecords(bench.cluster.nats.url);
    const stored = { inputs: after.inputs - before.inputs, facts: after.facts - before.facts, bytes: after.bytes - before.bytes };
    return [rates(plan, raw, whole, stored), cpuByService(plan, whole)];
  },
};

async function warmUp(bench: DirectCluster, rawProducer: Producer, plan: Plan): Promise<void> {
  await rawCeiling(rawProducer, { ...plan, rawTokens: Math.ceil(plan.rawTokens / 4) }, 'warm-up');
  for (let index = 0; index < 2; index++) await wholePath(bench, plan.tasks, plan.tokensEach);
}

async function rawCeiling(producer: Producer, { rawTasks, rawTokens }: Plan, run: string): Promise<Round> {
  const seconds = await producer.call('publish', { run, tasks: rawTasks, tokens: rawTokens, inFlight: IN_FLIGHT });
  return { tokensPerSecond: rawTokens / seconds };
}

/**
 * Measures from the first published token to the end of the last text at the client. The tasks and their streams are open before the clock
 * starts.
 */
async function wholePath(bench: DirectCluster, tasks: number, tokens: number): Promise<Required<Round>> {
  const { client, producer, cluster } = bench;
  const taskIds = await client.call('ask', { url: cluster.url, text: 'begin', artifact: ANSWER, count: tasks });
  const { result, cpu } = await withCpu({ ...bench.pids, client: client.pid }, async () => {
    const startMs = await producer.call('answer', { taskIds, tokens });
    return { startMs, reports: await client.call('answers', { tokens }) };
  });
  const lost = result.reports.filter(({ intact }) => !intact);
  if (lost.length > 0) throw new Error(`${lost.length} of ${tasks} texts did not arrive complete`);
  const endMs = Math.max(...result.reports.map(({ endedAtMs }) => endedAtMs));
  const frames = result.reports.reduce((sum, report) => sum + report.frames, 0);
  return { tokensPerSecond: (tasks * tokens * 1000) / (endMs - result.startMs), cpu, frames };
}

function rates(plan: Plan, raw: Round[], whole: Round[], stored: RecordCounts): Finding {
  const { tasks, tokensEach, rounds } = plan;
  const per1000 = (count: number) => ((1000 * count) / (rounds * tasks * tokensEach)).toFixed(1);
  const ratio = spreadOf(whole.map((round, index) => round.tokensPerSecond / raw[index]!.tokensPerSecond));
  const frames = whole.reduce((sum, round) => sum + (round.frames ?? 0), 0);
  const row = (name: string, values: number[]) => [name, ...spreadCells(spreadOf(values))];
  return {
    title: `throughput: ${tasks} tasks of ${tokensEach} tokens at once, ${rounds} rounds`,
    table: {
      columns: ['tokens/s', ...SPREAD_COLUMNS],
      rows: [
        row(
          `raw publish, one token a message, ${IN_FLIGHT} in flight`,
          raw.map(round => round.tokensPerSecond),
        ),
        row(
          'whole path: publish to the end of the text at the client',
          whole.map(round => round.tokensPerSecond),
        ),
        ['whole path over raw publish of its round', ...spreadCells(ratio)],
      ],
    },
    notes: [
      `the whole path stores ${per1000(stored.inputs)} inputs and ${per1000(stored.facts)} facts per 1000 tokens, and the client reads ${per1000(frames)} frames: the producer batches what meets in it`,
    ],
    targets: [{ name: 'whole path over raw publish', wanted: { atLeast: 0.5 }, found: ratio }],
  };
}

function cpuByService({ tasks, tokensEach, rounds }: Plan, whole: Round[]): Finding {
  const title = `CPU seconds per ${PER_CPU_FIGURE.toLocaleString('en-US')} tokens, same rounds`;
  const columns = ['service', ...SPREAD_COLUMNS];
  const spent = whole.flatMap(({ cpu }) => (cpu === undefined ? [] : [cpu]));
  if (spent.length < rounds) return { title, table: { columns, rows: [] }, notes: ['unavailable on this platform'] };
  const scale = PER_CPU_FIGURE / (tasks * tokensEach);
  const services = Object.keys(spent[0]!);
  const row = (name: string, of: (cpu: CpuSeconds) => number) => [
    name,
    ...spreadCells(spreadOf(spent.map(cpu => of(cpu) * scale))),
  ];
  const total = (cpu: CpuSeconds) => services.filter(name => name !== 'client').reduce((sum, name) => sum + cpu[name]!, 0);
  const rows = [...services.map(name => row(name, cpu => cpu[name]!)), row('all but the client', total)];
  return { title, table: { columns, rows }, notes: ['read in ticks of 10 ms; garbage collection and compilation included'] };
}
