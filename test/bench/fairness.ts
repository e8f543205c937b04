import { type DirectCluster, startClient, startDirectCluster, startProducer } from './bench-cluster.ts';
import { monotonicMs } from './measure/clock.ts';
import { interleave } from './measure/rounds.ts';
import { type Latency, latencyOf, spreadOf } from './measure/spread.ts';
import { SPREAD_COLUMNS, spreadCells } from './measure/table.ts';
import type { Target } from './measure/targets.ts';
import type { Finding, Question, Size } from './question.ts';
import { ANSWER } from './tokens.ts';

const EVERY_MS = 20;
const TOKEN_CHARS = 24;
/** Longest acceptable age of the quiet caller's tokens beside a neighbor; milliseconds. */
const P99_MS_MAX = 1_000;
/** How long the quiet caller's last tokens may take; milliseconds. */
const RECEIPT_MS_MAX = 60_000;

type Noise = { tasks: number; tokens: number; perSecond?: number };
type Case = 'alone' | 'long task' | 'many tasks';
/** `stamps`: tokens of the quiet caller in a round. */
type Plan = { rounds: number; stamps: number; long: Noise; many: Noise };
const PLANS: Record<Size, Plan> = {
  full: {
    rounds: 3,
    stamps: 500,
    long: { tasks: 1, tokens: 1_000_000 },
    many: { tasks: 1_000, tokens: 150, perSecond: 10 },
  },
  quick: { rounds: 3, stamps: 200, long: { tasks: 1, tokens: 300_000 }, many: { tasks: 1_000, tokens: 50, perSecond: 10 } },
  tiny: { rounds: 1, stamps: 10, long: { tasks: 1, tokens: 1_000 }, many: { tasks: 5, tokens: 20, perSecond: 50 } },
};

type Round = { age: Latency; noiseMs: number; lastMs: number };
type Load = { asker: ReturnType<typeof startClient>; agent: Awaited<ReturnType<typeof startProducer>> };

/** How old are the tokens of a quiet caller beside a task of a million tokens, and beside a caller with a thousand tasks? */
export const fairness: Question = {
  name: 'fairness',
  async ask(size) {
    const plan = PLANS[size];
    await using stack = new AsyncDisposableStack();
    const bench = stack.use(await startDirectCluster());
    const load = { asker: stack.use(startClient()), agent: stack.use(await startProducer(bench.cluster.nats.url)) };
    const peers = (of: Plan) => ({
      alone: () => round(bench, load, of.stamps),
      'long task': () => round(bench, load, of.stamps, of.long),
      'many tasks': () => round(bench, load, of.stamps, of.many),
    });
    await round(bench, load, plan.stamps, PLANS.tiny.many);
    return [found(plan, await interleave<Case, Round>(plan.rounds, peers(plan)))];
  },
};

/** The quiet caller's tokens, from their publication to the receipt of their frames, while the neighbor's are published. */
async function round(bench: DirectCluster, { asker, agent }: Load, stamps: number, noise?: Noise): Promise<Round> {
  const { client, producer, cluster } = bench;
  const { url } = cluster;
  const [taskId] = await client.call('ask', { url, text: 'begin', artifact: ANSWER, count: 1 });
  await client.call('leave');
  await client.call('watch', { url, count: 1, taskId: taskId! });
  const startMs = monotonicMs();
  const neighbor = noise && (await begin(asker, url, noise));
  const loud = neighbor && agent.call('answer', { ...noise!, taskIds: neighbor });
  await producer.call('stamp', { taskId: taskId!, count: stamps, everyMs: EVERY_MS, chars: TOKEN_CHARS });
  const lastMs = monotonicMs() - startMs;
  const ages: number[] = [];
  const untilMs = monotonicMs() + RECEIPT_MS_MAX;
  while (ages.length < stamps && monotonicMs() < untilMs)
    ages.push(...(await client.call('sighted', { count: stamps - ages.length })).sincePublishedMs);
  await client.call('leave');
  if (ages.length !== stamps) throw new Error(`${ages.length} of ${stamps} tokens were received`);
  await loud;
  const reports = noise === undefined ? [] : await asker.call('answers', { tokens: noise.tokens });
  if (reports.some(({ intact }) => !intact)) throw new Error("a neighbor's text did not arrive complete");
  return { age: latencyOf(Float64Array.from(ages)), noiseMs: monotonicMs() - startMs, lastMs };
}

function begin(asker: Load['asker'], url: string, { tasks }: Noise): Promise<string[]> {
  return asker.call('ask', { url, text: 'begin', artifact: ANSWER, count: tasks });
}

function found({ rounds, stamps, long, many }: Plan, results: Record<Case, Round[]>): Finding {
  const names: Record<Case, string> = {
    alone: 'alone',
    'long task': `beside one task of ${long.tokens.toLocaleString('en-US')} tokens, as fast as the log takes them`,
    'many tasks': `beside ${many.tasks.toLocaleString('en-US')} tasks of ${many.perSecond} tokens/s`,
  };
  const cases = Object.keys(names) as Case[];
  const rows = cases.flatMap(name =>
    (['p50', 'p99', 'max'] as const).map(figure => [
      `${names[name]}: ${figure}`,
      ...spreadCells(spreadOf(results[name].map(({ age }) => age[figure]))),
    ]),
  );
  const seconds = (name: Case) => spreadOf(results[name].map(({ noiseMs }) => noiseMs / 1_000)).median.toFixed(1);
  const targets: Target[] = cases.slice(1).map(name => ({
    name: `age of a quiet caller's token, p99 ms, ${names[name]}`,
    wanted: { atMost: P99_MS_MAX },
    found: spreadOf(results[name].map(({ age }) => age.p99)),
  }));
  return {
    title: `fairness: a token every ${EVERY_MS} ms of a quiet caller, ${stamps} tokens, ${rounds} rounds`,
    table: { columns: ['age at the client, ms', ...SPREAD_COLUMNS], rows },
    notes: [`the neighbor is served after ${seconds('long task')} s (one task) and ${seconds('many tasks')} s (many), whole`],
    targets,
  };
}
