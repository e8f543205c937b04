import type { BareSseMethods } from './bare-sse/main.ts';
import { type Client, type DirectCluster, startClient, startDirectCluster } from './bench-cluster.ts';
import type { Sightings } from './client/main.ts';
import { LoadProcess } from './measure/load-process.ts';
import { withCpu } from './measure/process-usage.ts';
import { interleave } from './measure/rounds.ts';
import { type Latency, latencyOf, spreadOf } from './measure/spread.ts';
import { SPREAD_COLUMNS, spreadCells } from './measure/table.ts';
import type { Finding, Question, Size } from './question.ts';
import { storedAtMs } from './stored-records.ts';
import { ANSWER } from './tokens.ts';

const EVENT_CHARS = 256;
/** Each token is a frame, because the coalescer's intended delay is not part of this question. */
const PASS_THROUGH = { HOPLINE_EVENT_COST_MS: '0' };

type Plan = { rounds: number; viewers: number; events: number; everyMs: number };
const PLANS: Record<Size, Plan[]> = {
  full: [
    { rounds: 5, viewers: 100, events: 250, everyMs: 20 },
    { rounds: 3, viewers: 1_000, events: 50, everyMs: 200 },
  ],
  quick: [
    { rounds: 5, viewers: 100, events: 50, everyMs: 20 },
    { rounds: 3, viewers: 1_000, events: 20, everyMs: 200 },
  ],
  tiny: [{ rounds: 1, viewers: 3, events: 10, everyMs: 20 }],
};

/** `serverUs`: CPU of the process that writes to the viewers, microseconds for each event and viewer. */
type Round = { sincePublished: Latency; sinceStored?: Latency; serverUs: number };

/** With many viewers of one task, how much later than over bare SSE does a viewer get an event, and what does each viewer cost? */
export const fanOut: Question = {
  name: 'fan-out',
  async ask(size) {
    await using stack = new AsyncDisposableStack();
    const bareClient = stack.use(startClient());
    const server = stack.use(new LoadProcess<BareSseMethods>(new URL('bare-sse/main.ts', import.meta.url)));
    const bareUrl = await server.call('listen');
    const bench = stack.use(await startDirectCluster(PASS_THROUGH));
    const peers = (of: Plan) => ({
      bare: () => bareRound(server, bareUrl, bareClient, of),
      ours: () => oursRound(bench, of),
    });
    const findings: Finding[] = [];
    for (const plan of PLANS[size]) {
      await interleave<'bare' | 'ours', Round>(1, peers({ ...plan, events: Math.ceil(plan.events / 4) }));
      const { bare, ours } = await interleave<'bare' | 'ours', Round>(plan.rounds, peers(plan));
      findings.push(found(plan, bare, ours));
    }
    return findings;
  },
};

async function bareRound(
  server: LoadProcess<BareSseMethods>,
  url: string,
  client: Client,
  { viewers, events, everyMs }: Plan,
): Promise<Round> {
  await client.call('watch', { url, count: viewers });
  const { result: seen, cpu } = await withCpu({ server: server.pid }, async () => {
    await server.call('stamp', { count: events, everyMs, chars: EVENT_CHARS });
    return allSeen(client, viewers * events);
  });
  return { sincePublished: latencyOf(seen.sincePublishedMs), serverUs: perFrameUs(cpu?.server, viewers * events) };
}

async function oursRound({ client, producer, cluster, pids }: DirectCluster, { viewers, events, everyMs }: Plan): Promise<Round> {
  const [taskId] = await client.call('ask', { url: cluster.url, text: 'begin', artifact: ANSWER, count: 1 });
  await client.call('leave');
  await client.call('watch', { url: cluster.url, count: viewers, taskId: taskId! });
  const { result: seen, cpu } = await withCpu({ ingress: pids.ingress! }, async () => {
    await producer.call('stamp', { taskId: taskId!, count: events, everyMs, chars: EVENT_CHARS });
    return allSeen(client, viewers * events);
  });
  const stored = await storedAtMs(cluster.nats.url, new Set(seen.seq));
  const sinceStored = seen.atEpochMs.map((atMs, index) => atMs - stored.get(seen.seq[index]!)!);
  return {
    sincePublished: latencyOf(seen.sincePublishedMs),
    sinceStored: latencyOf(sinceStored),
    serverUs: perFrameUs(cpu?.ingress, viewers * events),
  };
}

function perFrameUs(cpuSeconds: number | undefined, frames: number): number {
  return ((cpuSeconds ?? Number.NaN) * 1e6) / frames;
}

async function allSeen(client: Client, count: number): Promise<Sightings> {
  const seen = await client.call('sighted', { count });
  await client.call('leave');
  if (seen.seq.length !== count) throw new Error(`${seen.seq.length} of ${count} events were received`);
  return seen;
}

function found({ rounds, viewers, events, everyMs }: Plan, bare: Round[], ours: Round[]): Finding {
  const values = (list: Round[], pick: (round: Round) => number) => spreadCells(spreadOf(list.map(pick)));
  const over = (pick: (round: Round) => Latency) =>
    spreadOf(ours.map((round, index) => pick(round).p50 / bare[index]!.sincePublished.p50));
  const sincePublished = over(round => round.sincePublished);
  const sinceStored = over(round => round.sinceStored!);
  const late = spreadOf(ours.map((round, index) => round.sincePublished.p99 / bare[index]!.sincePublished.p99));
  return {
    title: `fan-out: ${viewers} viewers of one task, an event of ${EVENT_CHARS} B every ${everyMs} ms, ${events} events, ${rounds} rounds`,
    table: {
      columns: ['ms to a viewer', ...SPREAD_COLUMNS],
      rows: [
        ['bare SSE, write to receipt: p50', ...values(bare, round => round.sincePublished.p50)],
        ['bare SSE, write to receipt: p99', ...values(bare, round => round.sincePublished.p99)],
        ["ours, the agent's publish to receipt: p50", ...values(ours, round => round.sincePublished.p50)],
        ["ours, the agent's publish to receipt: p99", ...values(ours, round => round.sincePublished.p99)],
        ["ours, the fact's append to receipt: p50", ...values(ours, round => round.sinceStored!.p50)],
        ["ours, the fact's append to receipt: p99", ...values(ours, round => round.sinceStored!.p99)],
        ['p50 over bare, from the publish', ...spreadCells(sincePublished)],
        ['p50 over bare, from the append', ...spreadCells(sinceStored)],
        ['p99 over bare, from the publish', ...spreadCells(late)],
        ['CPU of bare for an event and viewer, µs', ...values(bare, round => round.serverUs)],
        ['CPU of ingress for an event and viewer, µs', ...values(ours, round => round.serverUs)],
      ],
    },
    notes: [
      'from the publish: two stores on disk and three processes more than bare; from the append: the cost of fan-out itself. The coalescer passes each token here',
    ],
    targets: [
      {
        name: `fan-out p50 over bare SSE, from the agent’s publish, ${viewers} viewers`,
        wanted: { atMost: 1.5 },
        found: sincePublished,
      },
      {
        name: `fan-out p50 over bare SSE, from the fact’s append, ${viewers} viewers`,
        wanted: { atMost: 1.2 },
        found: sinceStored,
      },
      { name: `fan-out p99 over bare SSE, from the agent’s publish, ${viewers} viewers`, wanted: { atMost: 2 }, found: late },
    ],
  };
}
