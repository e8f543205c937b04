import { type BenchCluster, type Client, startClient, startCluster } from './bench-cluster.ts';
import { epochOffsetMs } from './measure/clock.ts';
import { LoadProcess } from './measure/load-process.ts';
import { interleave } from './measure/rounds.ts';
import { latencyOf, spreadOf } from './measure/spread.ts';
import { figure, SPREAD_COLUMNS, spreadCells } from './measure/table.ts';
import type { Finding, Question, Size } from './question.ts';
import type { SdkServerMethods } from './sdk-server/main.ts';
import { firstTextStored } from './stored-records.ts';
import { ANSWER } from './tokens.ts';

const AGENT = 'paced';
const STREAMED = 'streaming_result';
const STREAM = { tokens: 25, everyMs: 20 };
const ONE_TOKEN = { tokens: 1, everyMs: 0 };
/** Hopline's share of the time to the first text, milliseconds, p50 on an idle machine. */
const ADDED_MS_MAX = 12;

/** `warmUps`: questions of one token to each peer before the rounds. A process just started runs code that is not compiled yet. */
type Plan = { rounds: number; asks: number; warmUps: number };
const PLANS: Record<Size, Plan> = {
  full: { rounds: 5, asks: 8, warmUps: 300 },
  quick: { rounds: 5, asks: 4, warmUps: 150 },
  tiny: { rounds: 1, asks: 2, warmUps: 1 },
};

type Peer = { client: Client; server: LoadProcess<SdkServerMethods>; url: string; artifact: string };
/** One answer. `sentMs`: from the question to the agent's first token; `receivedMs`: from there to the client. */
type Ask = { taskId: string; totalMs: number; sentMs: number; receivedMs: number; firstTextAtMs: number; frames: number };

/**
 * When does a client see the first text? An A2A agent that streams at a steady pace, asked directly and through all services in turn, one
 * question at a time.
 */
export const firstText: Question = {
  name: 'first-text',
  async ask(size) {
    const { rounds, asks, warmUps } = PLANS[size];
    await using stack = new AsyncDisposableStack();
    const server = stack.use(new LoadProcess<SdkServerMethods>(new URL('sdk-server/main.ts', import.meta.url)));
    const agentUrl = await server.call('listen');
    const bench = stack.use(await startCluster({ agents: [{ name: AGENT, adapter: 'a2a', url: agentUrl }] }));
    const direct: Peer = { client: stack.use(startClient()), server, url: agentUrl, artifact: ANSWER };
    const ours: Peer = { client: bench.client, server, url: bench.cluster.url, artifact: STREAMED };
    const peers = { direct: () => ask(direct, STREAM), ours: () => ask(ours, STREAM) };
    const { direct: directAtFirst, ours: oursAtFirst } = await interleave(asks, peers);
    await interleave(warmUps, { direct: () => ask(direct, ONE_TOKEN), ours: () => ask(ours, ONE_TOKEN) });
    const found = await interleave(rounds * asks, peers);
    const atFirst = { direct: [directAtFirst], ours: [oursAtFirst] };
    const warm = { direct: byRound(found.direct, asks), ours: byRound(found.ours, asks) };
    return [finding({ rounds, warmUps, atFirst, warm, stagesMs: await stages(bench, found.ours) })];
  },
};

async function ask({ client, server, url, artifact }: Peer, { tokens, everyMs }: typeof STREAM): Promise<Ask> {
  await client.call('ask', { url, text: `${tokens} ${everyMs}`, artifact, count: 1 });
  const [report] = await client.call('answers', { tokens });
  if (!report?.intact) throw new Error(`${url}: ${report?.tokens} of ${tokens} tokens arrived`);
  const { taskId, askedAtMs, firstTextAtMs, frames } = report;
  const [yieldedAtMs, ...more] = await server.call('yieldedAtMs');
  if (yieldedAtMs === undefined || more.length > 0) throw new Error(`${url}: the agent ran ${more.length + 1} times`);
  const sentMs = yieldedAtMs - askedAtMs;
  return { taskId, totalMs: firstTextAtMs - askedAtMs, sentMs, receivedMs: firstTextAtMs - yieldedAtMs, firstTextAtMs, frames };
}

function byRound(all: readonly Ask[], asks: number): Ask[][] {
  return Array.from({ length: all.length / asks }, (_, round) => all.slice(round * asks, (round + 1) * asks));
}

/** The way of the first text through Hopline, milliseconds between the stages, one list a stage. */
async function stages({ cluster }: BenchCluster, asks: readonly Ask[]): Promise<Record<string, number[]>> {
  const offsetMs = epochOffsetMs();
  const stored = await firstTextStored(cluster.nats.url, { agent: AGENT, taskIds: asks.map(({ taskId }) => taskId) });
  const found: Record<string, number[]> = {};
  const add = (stage: string, ms: number) => {
    found[stage] ??= [];
    found[stage].push(ms);
  };
  for (const { taskId, firstTextAtMs, receivedMs } of asks) {
    const { atMs, inputStoredAtMs, factStoredAtMs } = stored.get(taskId)!;
    const toClientMs = firstTextAtMs + offsetMs - factStoredAtMs;
    add('the agent’s yield to the sub-agent, to 1 ms', receivedMs - (firstTextAtMs + offsetMs - atMs));
    add('the sub-agent to the input log', inputStoredAtMs - atMs);
    add('the input log to the fact log, by the relay', factStoredAtMs - inputStoredAtMs);
    add('the fact log to the client, by the ingress', toClientMs);
  }
  return found;
}

type Peers = { direct: Ask[][]; ours: Ask[][] };
type Found = { rounds: number; warmUps: number; atFirst: Peers; warm: Peers; stagesMs: Record<string, number[]> };

function finding({ rounds, warmUps, atFirst, warm, stagesMs }: Found): Finding {
  const { direct, ours } = warm;
  const percentile = (asks: readonly Ask[], which: 'p50' | 'p99', pick: (ask: Ask) => number) =>
    latencyOf(Float64Array.from(asks, pick))[which];
  const figures = (name: string, peer: Ask[][], pick: (ask: Ask) => number) =>
    (['p50', 'p99'] as const).map(which => [
      `${name}: ${which}`,
      ...spreadCells(spreadOf(peer.map(asks => percentile(asks, which, pick)))),
    ]);
  const added = (pick: (ask: Ask) => number) =>
    spreadOf(ours.map((asks, round) => percentile(asks, 'p50', pick) - percentile(direct[round]!, 'p50', pick)));
  const total = ({ totalMs }: Ask) => totalMs;
  const received = ({ receivedMs }: Ask) => receivedMs;
  const rows = [
    ...figures('the agent asked directly, question to first text', direct, total),
    ...figures('through Hopline, question to first text', ours, total),
    ...figures('the agent asked directly, yield to client', direct, received),
    ...figures('through Hopline, yield to client', ours, received),
    ...figures('through Hopline, question to yield', ours, ({ sentMs }) => sentMs),
    ...Object.entries(stagesMs).map(([stage, ms]) => {
      const { p50, p99 } = latencyOf(Float64Array.from(ms));
      return [`  ${stage}`, '', `p50 ${figure(p50)}`, `p99 ${figure(p99)}`];
    }),
    ...figures('just started, the agent asked directly, question to first text', atFirst.direct, total).slice(0, 1),
    ...figures('just started, through Hopline, question to first text', atFirst.ours, total).slice(0, 1),
    ['frames of an answer through Hopline', ...spreadCells(spreadOf(ours.flat().map(({ frames }) => frames)))],
  ];
  return {
    title: `first text: ${STREAM.tokens} tokens ${STREAM.everyMs} ms apart, one question at a time, ${rounds} rounds of ${direct[0]!.length} after ${warmUps} short ones`,
    table: { columns: ['ms', ...SPREAD_COLUMNS], rows },
    notes: [
      'question to yield: the message, the plan and the call are stored before the agent starts; yield to client: the first text is stored twice',
    ],
    targets: [
      {
        name: 'first text, yield to client, ms over the agent asked directly: p50',
        wanted: { atMost: ADDED_MS_MAX },
        found: added(received),
      },
      {
        name: 'first text, question to client, ms over the agent asked directly: p50',
        wanted: { atMost: ADDED_MS_MAX },
        found: added(total),
      },
    ],
  };
}
