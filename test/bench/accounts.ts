import { type Client, usersOf } from './bench-cluster.ts';
import type { AnswerReport } from './client/answer.ts';
import { totalOf, withCpu } from './measure/process-usage.ts';
import { latencyOf, spreadOf } from './measure/spread.ts';
import { SPREAD_COLUMNS, spreadCells } from './measure/table.ts';
import { type Peer, REMOTE_A2A, runs, startPeers } from './peers.ts';
import type { Finding, Question, Size } from './question.ts';

const FORMS = ['one', 'agents'] as const;
type Form = (typeof FORMS)[number];

/**
 * `asks`: questions one at a time; they are compared in blocks of ASKS_PER_BLOCK. `rounds`: of each of the other loads. `warmUps`: questions
 * to each cluster, because a process just started runs code that is not compiled yet.
 */
type Plan = { asks: number; rounds: number; warmUps: number; atOnce: number; burst: Load; pace: Load };
type Load = { streams: number; tokens: number; everyMs: number };
const PLANS: Record<Size, Plan> = {
  full: {
    asks: 400,
    rounds: 8,
    warmUps: 300,
    atOnce: 200,
    burst: { streams: 20, tokens: 2_000, everyMs: 0 },
    pace: { streams: 100, tokens: 100, everyMs: 50 },
  },
  quick: {
    asks: 200,
    rounds: 4,
    warmUps: 300,
    atOnce: 200,
    burst: { streams: 20, tokens: 1_000, everyMs: 0 },
    pace: { streams: 100, tokens: 60, everyMs: 50 },
  },
  tiny: {
    asks: 2,
    rounds: 1,
    warmUps: 1,
    atOnce: 2,
    burst: { streams: 2, tokens: 10, everyMs: 0 },
    pace: { streams: 2, tokens: 5, everyMs: 20 },
  },
};
const ASKS_PER_BLOCK = 20;
/** Largest price of accounts: the median of the ratios of both orders. */
const RATIO_MAX = 1.05;

/**
 * What does an account of NATS for each agent cost, against one account with a user for each service? Both clusters run at once and are
 * asked in turn, because a shared machine changes its speed from minute to minute by more than accounts cost. The cluster that was started
 * first can be a few percent faster or slower, so this is done in both orders.
 */
export const accounts: Question = {
  name: 'accounts',
  onlyIfNamed: true,
  async ask(size) {
    const plan = PLANS[size];
    const [first, second] = [await compare(plan, FORMS), await compare(plan, FORMS.toReversed())];
    const targets = Object.entries(first).map(([name, pairs]) => ({
      name: `accounts over one account: ${name}`,
      wanted: { atMost: RATIO_MAX },
      found: spreadOf([...ratiosOf(pairs), ...ratiosOf(second[name]!)]),
    }));
    return [findingOf(plan, first, 'one account'), { ...findingOf(plan, second, 'accounts'), targets }];
  },
};

type Clusters = Record<Form, Peer & { client: Client }>;
type Asked = { count: number; atOnce: number; tokens: number; everyMs: number };
/** Figures by form, of the same round. */
type Pairs = Record<Form, number[]>;

async function compare(plan: Plan, order: readonly Form[]): Promise<Record<string, Pairs>> {
  await using stack = new AsyncDisposableStack();
  const clusters = {} as Clusters;
  for (const form of order) {
    const { bench, peers } = stack.use(await startPeers([REMOTE_A2A], usersOf(form)));
    clusters[form] = { ...peers[0]!.through, client: bench.client };
  }
  const ask = (form: Form, { tokens, everyMs, ...asked }: Asked): Promise<AnswerReport[]> =>
    runs(clusters[form].client, clusters[form], `${tokens} ${everyMs}`, { tokens, ...asked });
  for (const form of order) await ask(form, { count: plan.warmUps, atOnce: 1, tokens: 1, everyMs: 0 });

  const inPairs = async (rounds: number, measure: (form: Form) => Promise<number>): Promise<Pairs> => {
    const pairs: Pairs = { one: [], agents: [] };
    for (let round = 0; round < rounds; round += 1)
      for (const form of round % 2 === 0 ? order : order.toReversed()) pairs[form].push(await measure(form));
    return pairs;
  };
  const firstTextMs = (reports: readonly AnswerReport[]) =>
    latencyOf(Float64Array.from(reports, ({ askedAtMs, firstTextAtMs }) => firstTextAtMs - askedAtMs)).p50;
  const microseconds = async (form: Form, { streams, tokens, everyMs }: Load) => {
    const asked = { count: streams, atOnce: streams, tokens, everyMs };
    const { cpu } = await withCpu(clusters[form].pids, () => ask(form, asked));
    return cpu === undefined ? Number.NaN : (totalOf(cpu) * 1e6) / (streams * tokens);
  };

  const asked = { count: 1, atOnce: 1, tokens: 3, everyMs: 20 };
  const singles = await inPairs(plan.asks, async form => firstTextMs(await ask(form, asked)));
  const many = { count: plan.atOnce, atOnce: plan.atOnce, tokens: 1, everyMs: 0 };
  const { burst, pace } = plan;
  return {
    'first text of a question at a time, p50, ms': { one: blocks(singles.one), agents: blocks(singles.agents) },
    [`first text of ${plan.atOnce} at once, p50, ms`]: await inPairs(plan.rounds, async form =>
      firstTextMs(await ask(form, many)),
    ),
    [`burst: ${burst.streams} answers at once, CPU µs a token`]: await inPairs(plan.rounds, form => microseconds(form, burst)),
    [`pace: ${pace.streams} streams of ${1_000 / pace.everyMs} tokens a second, CPU µs a token`]: await inPairs(
      plan.rounds,
      form => microseconds(form, pace),
    ),
  };
}

function findingOf({ asks, rounds }: Plan, figures: Record<string, Pairs>, startedFirst: string): Finding {
  const rows = Object.entries(figures).flatMap(([name, pairs]) => [
    [`${name}: one account`, ...spreadCells(spreadOf(pairs.one))],
    [`${name}: accounts`, ...spreadCells(spreadOf(pairs.agents))],
    ['  ratio of the same round', ...spreadCells(spreadOf(ratiosOf(pairs)))],
  ]);
  return {
    title: `accounts of agents against one account, the cluster with ${startedFirst} started first`,
    table: { columns: ['', ...SPREAD_COLUMNS], rows },
    notes: [
      `${asks} questions one at a time, compared in blocks of ${ASKS_PER_BLOCK}; ${rounds} rounds of each other load`,
      'both clusters run, and are asked in turn',
    ],
  };
}

const ratiosOf = ({ one, agents }: Pairs): number[] => agents.map((value, round) => value / one[round]!);

/** The median of each block of questions. */
function blocks(values: readonly number[]): number[] {
  const medians: number[] = [];
  for (let at = 0; at < values.length; at += ASKS_PER_BLOCK)
    medians.push(latencyOf(Float64Array.from(values.slice(at, at + ASKS_PER_BLOCK))).p50);
  return medians;
}
