import { setTimeout as delay } from 'node:timers/promises';
import { createStreams, startNats } from '../support/nats/nats-server.ts';
import { ATTACKS, type Attack, type AttackerMethods } from './attacker/main.ts';
import { benchLog, startClient, startCluster } from './bench-cluster.ts';
import { agesMs } from './load.ts';
import { LoadProcess } from './measure/load-process.ts';
import { interleave } from './measure/rounds.ts';
import { type Latency, latencyOf, spreadOf } from './measure/spread.ts';
import { figure, SPREAD_COLUMNS, spreadCells } from './measure/table.ts';
import type { Finding, Question, Size } from './question.ts';
import { RecordingFolder } from './recording-file.ts';
import { publishedAtMs } from './stored-records.ts';
import { STREAMED } from './tokens.ts';

const ATTACKER_MAIN = new URL('attacker/main.ts', import.meta.url);
const VICTIM = 'reader';
/** An agent whose login the attacker has. */
const STOLEN = 'stolen';
const TOKENS_PER_SECOND = 20;
/** Between two questions of a round. */
const STAGGER_MS = 200;
/** For the relays to reject what an attack has left, before the next round. */
const SETTLE_MS = 3_000;

type Plan = { rounds: number; questions: number; tokens: number };
const PLANS: Record<Size, Plan> = {
  full: { rounds: 5, questions: 20, tokens: 60 },
  quick: { rounds: 3, questions: 10, tokens: 40 },
  tiny: { rounds: 1, questions: 2, tokens: 5 },
};

/**
 * The same flood of inputs against a nats-server that Hopline does not use. It costs the machine what a flood costs it, so only the rest of
 * what the attack costs others is a cost of sharing NATS and relays.
 */
const ELSEWHERE = 'inputs, to another nats-server';

type Round = { first: Latency; age: Latency; attacks: number };

/** How long do others wait while the stolen login of an agent does what NATS permits it, as fast as it can? Services have users of NATS. */
export const attack: Question = {
  name: 'attack',
  onlyIfNamed: true,
  ask: async size => [await besideAttacks(PLANS[size])],
};

async function besideAttacks({ rounds, questions, tokens }: Plan): Promise<Finding> {
  await using stack = new AsyncDisposableStack();
  const folder = stack.use(new RecordingFolder());
  const path = folder.write(tokens);
  const agents = [VICTIM, STOLEN].map(name => ({ name, adapter: 'recording', path, pace: TOKENS_PER_SECOND }));
  const users = { users: true, admitsAll: true, agentAccounts: benchLog.agentAccounts ?? true };
  const { cluster } = stack.use(await startCluster({ agents, ...users }));
  const client = stack.use(startClient());
  const other = await startNats();
  stack.defer(() => other.stop());
  await createStreams(other.url);
  const attacker = stack.use(new LoadProcess<AttackerMethods>(ATTACKER_MAIN));
  const ask = { url: cluster.url, text: 'begin', artifact: STREAMED, agent: VICTIM, count: questions, staggerMs: STAGGER_MS };
  const round = async (kind?: Attack, servers = cluster.nats.url): Promise<Round> => {
    if (kind !== undefined) await attacker.call('start', { servers, agent: STOLEN, attack: kind });
    const taskIds = await client.call('ask', ask);
    const reports = await client.call('answers', { tokens });
    const attacks = kind === undefined ? 0 : await attacker.call('end');
    await client.call('leave');
    if (reports.some(({ intact }) => !intact)) throw new Error('a text did not arrive complete');
    const published = await publishedAtMs(cluster.nats.url, { agent: VICTIM, taskIds, tokens });
    await delay(SETTLE_MS);
    const first = latencyOf(Float64Array.from(reports, ({ askedAtMs, firstTextAtMs }) => firstTextAtMs - askedAtMs));
    return { first, age: latencyOf(agesMs(reports, published)), attacks };
  };
  await round();
  type Peer = Attack | typeof ELSEWHERE | 'quiet' | 'quiet again';
  const peers = Object.fromEntries(ATTACKS.map(kind => [kind, () => round(kind)])) as Record<Attack, () => Promise<Round>>;
  const results = await interleave<Peer, Round>(rounds, {
    quiet: () => round(),
    ...peers,
    [ELSEWHERE]: () => round('inputs', other.url),
    'quiet again': () => round(),
  });
  const quiet = [...results.quiet, ...results['quiet again']];
  const rowsOf = (name: string, found: Round[]) =>
    (['first', 'age'] as const).flatMap(what =>
      (['p50', 'p99'] as const).map(percentile => [
        `${name}: ${what === 'first' ? 'question to first text' : 'age of a token'}, ${percentile}`,
        ...spreadCells(spreadOf(found.map(result => result[what][percentile]))),
        figure(spreadOf(found.map(({ attacks }) => attacks)).median),
      ]),
    );
  const rows = [...rowsOf('quiet', quiet), ...([...ATTACKS, ELSEWHERE] as const).flatMap(kind => rowsOf(kind, results[kind]))];
  // The lowest priority does not keep an attack from sharing the caches and the memory of the machine, and two cores run both.
  const slowest = Math.max(...[...quiet, ...results[ELSEWHERE]].map(({ first }) => first.p50));
  return {
    title: `attack: a stolen login of an agent, ${users.agentAccounts ? 'with an account of its own' : 'in one account'}`,
    table: { columns: ['others, ms', ...SPREAD_COLUMNS, 'attacks in a round'], rows },
    notes: [
      `${questions} questions a round, one every ${STAGGER_MS} ms, ${tokens} tokens each, ${TOKENS_PER_SECOND} a second; ${rounds} rounds`,
    ],
    targets: ATTACKS.map(kind => ({
      name: `attack: ${kind}: question to first text, p50, ms, at most that of the slowest round without it, quiet or beside another nats-server`,
      wanted: { atMost: slowest },
      found: spreadOf(results[kind].map(({ first }) => first.p50)),
    })),
  };
}
