import { type DirectCluster, startClient, startCluster, startDirectCluster, startProducer } from './bench-cluster.ts';
import { agesMs } from './load.ts';
import { monotonicMs } from './measure/clock.ts';
import { interleave } from './measure/rounds.ts';
import { type Latency, latencyOf, spreadOf } from './measure/spread.ts';
import { SPREAD_COLUMNS, spreadCells } from './measure/table.ts';
import type { Finding, Question, Size } from './question.ts';
import { RecordingFolder } from './recording-file.ts';
import { publishedAtMs } from './stored-records.ts';
import { ANSWER, STREAMED } from './tokens.ts';

const EVERY_MS = 20;
const TOKEN_CHARS = 24;
/** How long the quiet caller's last tokens may take. */
const RECEIPT_MS_MAX = 60_000;
const AGENT = 'reader';
const TENANTS = { quiet: 'quiet', noisy: 'noisy' };
/** Longest acceptable age of the quiet caller's tokens next to a busy neighbor. */
const P99_MS_MAX = 1_000;

/**
 * `stamps`: tokens of the quiet caller while the long task runs. `tasks`, `tokens`, `perSecond`: number, length and pace of the tasks of
 * the caller with many.
 */
type Plan = { rounds: number; stamps: number; longTokens: number; tasks: number; tokens: number; perSecond: number };
const PLANS: Record<Size, Plan> = {
  full: { rounds: 3, stamps: 250, longTokens: 1_000_000, tasks: 1_000, tokens: 100, perSecond: 20 },
  quick: { rounds: 2, stamps: 100, longTokens: 300_000, tasks: 300, tokens: 40, perSecond: 20 },
  tiny: { rounds: 1, stamps: 10, longTokens: 1_000, tasks: 5, tokens: 10, perSecond: 50 },
};

type Round = { age: Latency; firstMs?: number };

/** How old are the tokens of a quiet caller next to a task of a million tokens, and next to a tenant with a thousand tasks? */
export const fairness: Question = {
  name: 'fairness',
  ask: async size => [await besideLongTask(PLANS[size]), await besideManyTasks(PLANS[size])],
};

/** Runs only the path of a token: the bench is the agent of both tasks. */
async function besideLongTask(plan: Plan): Promise<Finding> {
  const { rounds, stamps, longTokens } = plan;
  await using stack = new AsyncDisposableStack();
  const bench = stack.use(await startDirectCluster());
  const neighbor = { asker: stack.use(startClient()), agent: stack.use(await startProducer(bench.cluster.nats.url)) };
  await longTaskRound(bench, neighbor, plan, 0);
  const results = await interleave(rounds, {
    alone: () => longTaskRound(bench, neighbor, plan, 0),
    beside: () => longTaskRound(bench, neighbor, plan, longTokens),
  });
  return finding(`fairness: one task of ${longTokens.toLocaleString('en-US')} tokens, as fast as the log takes them`, results, [
    `the quiet caller has a token every ${EVERY_MS} ms, ${stamps} a round, ${rounds} rounds`,
  ]);
}

type Neighbor = { asker: ReturnType<typeof startClient>; agent: Awaited<ReturnType<typeof startProducer>> };

async function longTaskRound(bench: DirectCluster, { asker, agent }: Neighbor, plan: Plan, tokens: number): Promise<Round> {
  const { client, producer, cluster } = bench;
  const { stamps } = plan;
  const { url } = cluster;
  const begin = { url, text: 'begin', artifact: ANSWER, count: 1 };
  const [taskId] = await client.call('ask', begin);
  await client.call('leave');
  await client.call('watch', { url, count: 1, taskId: taskId! });
  const loud = tokens > 0 ? agent.call('answer', { taskIds: await asker.call('ask', begin), tokens }) : undefined;
  await producer.call('stamp', { taskId: taskId!, count: stamps, everyMs: EVERY_MS, chars: TOKEN_CHARS });
  const ages: number[] = [];
  const untilMs = monotonicMs() + RECEIPT_MS_MAX;
  while (ages.length < stamps && monotonicMs() < untilMs)
    ages.push(...(await client.call('sighted', { count: stamps - ages.length })).sincePublishedMs);
  await client.call('leave');
  if (ages.length !== stamps) throw new Error(`${ages.length} of ${stamps} tokens were received`);
  await loud;
  const [report] = tokens > 0 ? await asker.call('answers', { tokens }) : [];
  if (report?.intact === false) throw new Error("the neighbor's text did not arrive complete");
  return { age: latencyOf(Float64Array.from(ages)) };
}

/** Through all services with their default slots: a tenant with many tasks, and another tenant with one task for the same agent. */
async function besideManyTasks({ rounds, tasks, tokens, perSecond }: Plan): Promise<Finding> {
  await using stack = new AsyncDisposableStack();
  const folder = stack.use(new RecordingFolder());
  const agents = [{ name: AGENT, adapter: 'recording', path: folder.write(tokens), pace: perSecond }];
  const env = { HOPLINE_TENANTS: Object.values(TENANTS).join() };
  const { cluster, client } = stack.use(await startCluster({ agents, env }));
  const asker = stack.use(startClient());
  const ask = { url: cluster.url, text: 'begin', artifact: STREAMED };
  const round = async (): Promise<Round> => {
    const taskIds = await client.call('ask', { ...ask, count: 1, tenant: TENANTS.quiet });
    const reports = await client.call('answers', { tokens });
    if (reports.some(({ intact }) => !intact)) throw new Error('a text did not arrive complete');
    const published = await publishedAtMs(cluster.nats.url, { agent: AGENT, taskIds, tokens });
    return { age: latencyOf(agesMs(reports, published)), firstMs: reports[0]!.firstTextAtMs - reports[0]!.askedAtMs };
  };
  await round();
  const alone = [];
  for (let index = 0; index < rounds; index++) alone.push(await round());
  // Rejects, because tasks are still running and waiting when the cluster ends.
  await asker.call('ask', { ...ask, count: tasks, tenant: TENANTS.noisy });
  const beside = [];
  for (let index = 0; index < rounds; index++) beside.push(await round());
  await asker.call('leave');
  return finding(`fairness: another tenant with ${tasks.toLocaleString('en-US')} tasks of the same agent`, { alone, beside }, [
    `each task has ${tokens} tokens, ${perSecond} a second; default slots: 64 of the agent, 512 of the supervisor; ${rounds} rounds`,
  ]);
}

function finding(title: string, results: { alone: Round[]; beside: Round[] }, notes: string[]): Finding {
  const row = (name: string, values: number[]) => [name, ...spreadCells(spreadOf(values))];
  const rows = (['alone', 'beside'] as const).flatMap(name => {
    const firsts = results[name].flatMap(({ firstMs }) => (firstMs === undefined ? [] : [firstMs]));
    const ages = (['p50', 'p99', 'max'] as const).map(figure =>
      row(
        `${name}: age of a token, ${figure}`,
        results[name].map(({ age }) => age[figure]),
      ),
    );
    return firsts.length === 0 ? ages : [row(`${name}: question to first text`, firsts), ...ages];
  });
  return {
    title,
    table: { columns: ['the quiet caller, ms', ...SPREAD_COLUMNS], rows },
    notes,
    targets: [
      {
        name: `${title}: p99 age of the quiet caller's tokens, ms`,
        wanted: { atMost: P99_MS_MAX },
        found: spreadOf(results.beside.map(({ age }) => age.p99)),
      },
    ],
  };
}
