import {
  AckPolicy,
  DeliverPolicy,
  type JetStreamManager,
  jetstream,
  jetstreamManager,
  RetentionPolicy,
} from '@nats-io/jetstream';
import { connect, headers, type Msg, type NatsConnection, nanos } from '@nats-io/transport-node';
import { startNats } from '../support/nats/nats-server.ts';
import { monotonicMs } from './measure/clock.ts';
import { children, cpuSecondsOf } from './measure/process-usage.ts';
import { interleave } from './measure/rounds.ts';
import { latencyOf, spreadOf } from './measure/spread.ts';
import { SPREAD_COLUMNS, spreadCells } from './measure/table.ts';
import type { Finding, Question, Size } from './question.ts';

/**
 * The ways in which a stored record reaches a process that follows its task: a consumer of the stream (ordered: pushed, without acks), the
 * message that the stream republishes, and a message that the writer publishes itself once its append is acknowledged.
 */
const RECORD = 'x'.repeat(600);
const STREAM = 'WAYS';
const WAYS = ['consumer', 'republish', 'published after the ack'] as const;
type Way = (typeof WAYS)[number];

type Plan = { rounds: number; tasks: number; records: number; everyMs: number };
const PLANS: Record<Size, Plan> = {
  full: { rounds: 7, tasks: 100, records: 20, everyMs: 2 },
  quick: { rounds: 3, tasks: 100, records: 10, everyMs: 2 },
  tiny: { rounds: 1, tasks: 3, records: 3, everyMs: 2 },
};

/**
 * `openMs`: until the way of one task is open. `p50`, `p99`: milliseconds from the append to the follower. `serverUs`: CPU of nats-server
 * per record.
 */
type Round = { openMs: number; p50: number; p99: number; fromAck: number; serverUs: number };

/** Which way through NATS is the fastest for followers of many tasks? */
export const ways: Question = {
  name: 'ways',
  async ask(size) {
    const plan = PLANS[size];
    const before = new Set(children().map(({ pid }) => pid));
    const server = await startNats();
    const pid = children().find(found => found.program === 'nats-server' && !before.has(found.pid))?.pid;
    const [writer, reader] = [await connect({ servers: server.url }), await connect({ servers: server.url })];
    try {
      const jsm = await jetstreamManager(writer);
      const peers = (of: Plan) =>
        Object.fromEntries(WAYS.map(way => [way, () => oneRound(way, { writer, reader, jsm, pid }, of)])) as Record<
          Way,
          () => Promise<Round>
        >;
      await interleave(1, peers(plan));
      return [found(plan, await interleave(plan.rounds, peers(plan)))];
    } finally {
      await Promise.all([writer.close(), reader.close()]);
      await server.stop();
    }
  },
};

type Rig = { writer: NatsConnection; reader: NatsConnection; jsm: JetStreamManager; pid: number | undefined };

async function oneRound(way: Way, { writer, reader, jsm, pid }: Rig, plan: Plan): Promise<Round> {
  const { tasks, records, everyMs } = plan;
  const republish = way === 'republish' ? { republish: { src: 'w.log.*', dest: 'w.live.{{wildcard(1)}}' } } : {};
  await jsm.streams.add({
    name: STREAM,
    subjects: ['w.log.*'],
    retention: RetentionPolicy.Limits,
    allow_direct: true,
    ...republish,
  });
  const sentAt = new Map<number, number>();
  const ackedAt = new Map<number, number>();
  const seenAt = new Map<number, number>();
  const all = Promise.withResolvers<void>();
  const onRecord = (msg: Msg) => {
    const index = Number(msg.headers?.get('index'));
    if (!msg.headers?.has('index') || seenAt.has(index)) return;
    seenAt.set(index, monotonicMs());
    if (seenAt.size === tasks * records) all.resolve();
  };
  const startMs = monotonicMs();
  for (let task = 0; task < tasks; task++) await follow(way, task, reader, onRecord);
  await reader.flush();
  const openMs = (monotonicMs() - startMs) / tasks;
  const js = jetstream(writer);
  const cpuBefore = pid === undefined ? Number.NaN : (cpuSecondsOf(pid) ?? Number.NaN);
  const appends: Promise<void>[] = [];
  for (let index = 0; index < tasks * records; index++) {
    const task = index % tasks;
    const head = headers();
    head.set('index', String(index));
    sentAt.set(index, monotonicMs());
    const acked = js.publish(`w.log.${task}`, RECORD, { headers: head }).then(({ seq }) => {
      ackedAt.set(index, monotonicMs());
      if (way !== 'published after the ack') return;
      head.set('seq', String(seq));
      writer.publish(`w.live.${task}`, RECORD, { headers: head });
    });
    appends.push(acked);
    if (index % 5 === 4) await new Promise(resolve => setTimeout(resolve, everyMs));
  }
  await Promise.all(appends);
  await all.promise;
  const cpu = (pid === undefined ? Number.NaN : (cpuSecondsOf(pid) ?? Number.NaN)) - cpuBefore;
  await jsm.streams.delete(STREAM);
  await leave(reader);
  const latency = latencyOf(Float64Array.from(seenAt, ([index, at]) => at - sentAt.get(index)!));
  const sinceAck = latencyOf(Float64Array.from(seenAt, ([index, at]) => at - ackedAt.get(index)!));
  return { openMs, p50: latency.p50, p99: latency.p99, fromAck: sinceAck.p50, serverUs: (cpu * 1e6) / (tasks * records) };
}

const opened: { unsubscribe(): void }[] = [];

async function follow(way: Way, task: number, nc: NatsConnection, onRecord: (msg: Msg) => void): Promise<void> {
  const callback = (_error: unknown, msg: Msg) => onRecord(msg);
  if (way !== 'consumer') {
    opened.push(nc.subscribe(`w.live.${task}`, { callback }));
    return;
  }
  const inbox = `inbox.${crypto.randomUUID()}`;
  opened.push(nc.subscribe(inbox, { callback }));
  const config = {
    name: crypto.randomUUID(),
    filter_subject: `w.log.${task}`,
    deliver_subject: inbox,
    deliver_policy: DeliverPolicy.All,
    ack_policy: AckPolicy.None,
    idle_heartbeat: nanos(5_000),
    mem_storage: true,
    num_replicas: 1,
  };
  await (await jetstreamManager(nc, { checkAPI: false })).consumers.add(STREAM, config);
}

async function leave(nc: NatsConnection): Promise<void> {
  for (const subscription of opened.splice(0)) subscription.unsubscribe();
  await nc.flush();
}

function found({ rounds, tasks, records }: Plan, of: Record<Way, Round[]>): Finding {
  const rows = (name: string, pick: (round: Round) => number) =>
    WAYS.map(way => [`${way}: ${name}`, ...spreadCells(spreadOf(of[way].map(pick)))]);
  return {
    title: `ways: ${tasks} tasks followed by one process, ${records} records of ${RECORD.length} B each, ${rounds} rounds`,
    table: {
      columns: ['way', ...SPREAD_COLUMNS],
      rows: [
        ...rows('opening, ms a task', round => round.openMs),
        ...rows('append to follower p50, ms', round => round.p50),
        ...rows('append to follower p99, ms', round => round.p99),
        ...rows('acknowledgement to follower p50, ms', round => round.fromAck),
        ...rows('CPU of nats-server, µs a record', round => round.serverUs),
      ],
    },
    notes: ['writer and reader are one process here, with a connection each; the log uses republish (docs/adr/0071)'],
  };
}
