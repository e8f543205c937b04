import { rawTaskFilter, WORK_PREFIX } from '@hopline/events';
import type { Log } from '@hopline/log';
import {
  ADMIN,
  BUCKETS,
  LogNames,
  type LogUser,
  openJetStreamLog,
  permissionsOf,
  type ServerUser,
  serverUsers,
  userName,
} from '@hopline/log-jetstream';
import { nuid } from '@nats-io/nats-core';
import type { DoubleUser, ToLeader } from '../nats-double/client-connection.ts';
import type { Clock } from '../nats-double/clock.ts';
import type { MessageStore } from '../nats-double/message-store.ts';
import { NatsDouble } from '../nats-double/nats-double.ts';
import type { LeaderView, PurgeRequest, Stream } from '../nats-double/stream.ts';
import { connectVirtually, listen, type Path, type Port, pathOf } from '../nats-double/virtual-network.ts';
import type { AgentRuns } from './agent-runs.ts';
import { type ClusterSettings, WORK_BOUNDS } from './cluster-settings.ts';
import type { Coverage } from './coverage.ts';
import type { Link } from './link.ts';
import type { LogPart, LogServers, ProcessLog } from './log-servers.ts';
import type { Random } from './random.ts';
import type { Situations } from './situations.ts';
import type { Trace } from './trace.ts';
import { EPOCH_MS, type VirtualClock, type VirtualProcess } from './virtual-clock.ts';

/** The part of a payload that log-jetstream keeps for headers. */
const HEADER_BYTES_MAX = 16 * 1024;
const READER = 'reader';
/** Timers of one idle process. */
const TIMERS_AT_REST_MAX = 25;
/** REQUEST_TIMEOUT_MS of log-jetstream. */
const REQUEST_MS_MAX = 20_000;
/** How far a replica is behind the leader without a fault. */
const LAG_MS_MAX = 5;
const EVERY_PROCESS = '*';
/** Far shorter than in production, so that a layout begins within the run. */
const LAYOUT_TIMES = { pollMs: 500, aheadMs: 3_000 };
const PARTS_OF_BUCKETS = ['leases', 'tasks', 'agents', 'messageIds', 'contexts', 'pushProgress'] as const;

type NatsServersDeps = {
  clock: VirtualClock;
  random: Random;
  trace: Trace;
  runs: AgentRuns;
  situations: Situations;
  coverage: Coverage;
};

/** The log of production, log-jetstream and nats.js, over a double of nats-server in virtual time. */
export class NatsServers implements LogServers {
  log: Log | undefined;
  readonly timersAtRestMax: number;
  readonly requestMsMax = REQUEST_MS_MAX;
  readonly #settings: ClusterSettings;
  readonly #clock: VirtualClock;
  readonly #trace: Trace;
  readonly #double: NatsDouble;
  readonly #names: LogNames;
  readonly #ports: Port[] = [];
  readonly #random: Random;
  readonly #runs: AgentRuns;
  readonly #situations: Situations;
  readonly #coverage: Coverage;
  readonly #links: Link[] = [];
  /** Processes that reach only leaders without followers: every process until another leader is elected, and then one process. */
  readonly #deposed = new Map<string, { views: ReadonlyMap<string, LeaderView>; until: number }>();
  readonly denied = new Set<string>();
  /** The streams of those parts of the log that a loss of power will reset to their state on disk. */
  readonly #synced = new Map<string, MessageStore>();
  #liveToLose = 0;
  #staleReads = 0;

  constructor(settings: ClusterSettings, { clock, random, trace, runs, situations, coverage }: NatsServersDeps) {
    this.#runs = runs;
    this.#coverage = coverage;
    this.#settings = settings;
    this.#situations = situations;
    this.timersAtRestMax = TIMERS_AT_REST_MAX * Object.values(settings.topology).reduce((sum, count) => sum + count, 0);
    this.#clock = clock;
    this.#trace = trace;
    this.#random = random;
    const groups = settings.layouts?.reduce((sum, layout) => sum + layout.groups, 0) ?? 1;
    this.#names = new LogNames('', groups);
    this.#double = new NatsDouble({
      clock: outsideClock(clock),
      maxPayload: settings.recordBytesMax + HEADER_BYTES_MAX,
      nodes: settings.replicas ?? 1,
      replicaOf: stream => this.#replicaOf(stream),
      onStoredAgain: () => situations.add('a message is stored again after its id was forgotten'),
      users: usersOf(settings, this.#names),
      onDenied: what => void this.denied.add(what),
      ...(settings.slowConsumers && {
        slowConsumers: { ...settings.slowConsumers, onCut: () => situations.add('a slow consumer is cut') },
      }),
    });
    // nats.js has one generator of ids for the whole process, which continues where the previous run stopped.
    nuid.reset();
  }

  get unsupported(): readonly string[] {
    return this.#double.unsupported;
  }

  get openItems(): number {
    return this.#double.streams.get(this.#names.workStream)?.store.count ?? 0;
  }

  async open(): Promise<void> {
    const port = this.#listen({ ...pathOf(outsideClock(this.#clock)), toLeader: this.#toLeaderFromOutside() });
    this.log = await this.#openLog(port, READER);
  }

  attach(process: VirtualProcess, slot: string, link: Link): ProcessLog {
    this.#links.push(link);
    const port = this.#listen(this.#path(process, slot, link));
    port.watch = (direction, bytes) => this.#trace.addBytes(process.name, direction, bytes);
    port.lose = ({ subject, reply, header }) => {
      if (subject.startsWith(`${WORK_PREFIX}.`) && reply?.startsWith('$JS.ACK.')) this.#onDelivery(process, subject, reply);
      if (subject.startsWith('a2a.live.') && this.#liveToLose > 0) {
        this.#liveToLose -= 1;
        return true;
      }
      // Answers to publishes and requests. A status concerns a reader.
      return link.areAcksLost() && subject.startsWith('_INBOX.') && !header.startsWith('NATS/1.0 ');
    };
    return {
      open: () => this.#openLog(port, process.name, userOf(slot)),
      cut: () => port.cut(),
      mend: () => port.mend(),
      forget: () => port.forget(),
      breakReads: count => this.#loseReaders(count),
      abandon: () => port.close(),
    };
  }

  /** A server sends an item to a process. */
  #onDelivery(process: VirtualProcess, subject: string, reply: string): void {
    const [role, agent = ''] = subject.slice(WORK_PREFIX.length + 1).split('.');
    const taskId = subject.slice(subject.lastIndexOf('.') + 1);
    const [deliveries = 0, seq = 0] = reply.split('.').slice(4, 6).map(Number);
    this.#situations.onDelivery(taskId, deliveries);
    if (role === 'agent') this.#runs.delivered(process.name, agent, { taskId, seq, deliveries });
  }

  loseLive(count: number): void {
    this.#liveToLose += count;
  }

  staleTails(count: number): void {
    this.#staleReads += count;
  }

  async removeInputs(taskId: string, below: number): Promise<void> {
    const { layouts } = this.log!;
    const stream = this.#names.with(layouts).inputsStreamOf(layouts.shardOf(taskId));
    this.#expire(stream, { filter: rawTaskFilter(taskId, layouts), seq: below });
  }

  async removeAllInputs(below: number): Promise<void> {
    for (const name of this.#names.inputsStreams) this.#expire(name, { seq: below });
  }

  /** nats-server keeps messages for longer than their ids. */
  #expire(name: string, request: PurgeRequest): void {
    const stream = this.#double.streams.get(name);
    stream?.purge(request);
    stream?.forgetIds();
  }

  /** A process that starts creates it with a first sequence of its own. */
  rebuildInputs(_firstSeq: number, forMs: number): void {
    for (const name of this.#names.inputsStreams) this.#double.loseStream(name);
    const port = this.#listen(pathOf(outsideClock(this.#clock)));
    this.#clock.after(forMs, () => void this.#openLog(port, 'creator', 'relay').then(log => log.close()));
  }

  loseFacts(lastSeq: number, group: number): void {
    this.restart(new Map([[this.#names.factsStreams[group]!, lastSeq]]));
  }

  refuseWrites(part: LogPart, group: number | undefined, forMs: number): void {
    const streams = [...this.#double.streams.values()].filter(({ config: { name } }) => {
      const place = this.#placeOf(name);
      return place?.part === part && (group === undefined || place.group === group);
    });
    for (const stream of streams) stream.isFull = true;
    this.#clock.after(forMs, () => {
      for (const stream of streams) stream.isFull = false;
    });
  }

  restart(lastSeqs?: ReadonlyMap<string, number>, states?: ReadonlyMap<string, MessageStore>): void {
    // A server that starts does not believe that it leads.
    this.#deposed.clear();
    this.#double.restart(lastSeqs, states);
  }

  /** The disk gets the current content of a part of the log, and keeps it until the loss of power. */
  sync(part: LogPart): void {
    for (const [name, { store }] of this.#double.streams)
      if (this.#placeOf(name)?.part === part) this.#synced.set(name, store.copy());
  }

  /** The power is lost, and the servers start again with the state on disk of the parts that were synced. */
  losePower(): void {
    const states = new Map(this.#synced);
    this.#synced.clear();
    const lastSeqs = new Map<string, number>();
    for (const [name, { lastSeq }] of states) {
      const { store } = this.#double.streams.get(name)!;
      if (name !== this.#names.workStream) {
        if (store.lastSeq > lastSeq) this.#situations.add('a bucket loses its newest entries');
        continue;
      }
      // Finished items do not come back: nats-server removes them when it starts.
      states.delete(name);
      if ([...store.matchingSeqs('>')].some(seq => seq > lastSeq)) this.#situations.add('the work queue loses its newest items');
      lastSeqs.set(name, lastSeq);
    }
    this.restart(lastSeqs, states);
  }

  forgetIds(): void {
    for (const stream of this.#double.streams.values()) stream.forgetIds();
  }

  forgetDeliveries(): void {
    const stream = this.#double.streams.get(this.#names.workStream);
    for (const consumer of [...(stream?.consumers.values() ?? [])]) consumer.forgetDeliveries();
  }

  /** Streams with one replica have no other server that could lead them. */
  depose(slot: string, electionMs: number, forMs: number): void {
    if ((this.#settings.replicas ?? 1) === 1) return;
    const streams = [...this.#double.streams];
    const views = new Map(streams.map(([name, stream]) => [name, stream.view()]));
    const { nowMs } = this.#clock;
    this.#deposed.set(slot, { views, until: nowMs + forMs });
    this.#deposed.set(EVERY_PROCESS, { views, until: nowMs + electionMs });
    this.#clock.after(electionMs, () => {
      for (const [, stream] of streams) stream.changeLeader();
    });
  }

  close(): void {
    this.#double.close();
    for (const port of this.#ports) port.close();
  }

  /** The replica that answers a direct get. */
  #replicaOf({ store, followers }: Stream): MessageStore {
    const follower = followers[this.#random.between(0, followers.length) - 1];
    if (follower === undefined) return store;
    const { nowMs } = this.#clock;
    const lags = this.#links.map(link => (link.lagUntil > nowMs ? link.lagMs : 0));
    const isStale = this.#staleReads > 0;
    if (isStale) this.#staleReads -= 1;
    const replica = follower.asOf(isStale ? 0 : EPOCH_MS + nowMs - Math.max(this.#random.next() * LAG_MS_MAX, ...lags));
    if (replica.lastSeq < store.lastSeq) this.#situations.add('a replica without the newest record answers');
    return replica;
  }

  #loseReaders(count: number): void {
    const streams = [...this.#double.streams.values()];
    for (let lost = 0; lost < count; lost += 1) {
      const readers = streams.flatMap(stream => [...stream.consumers.values()].filter(({ config }) => config.mem_storage));
      if (readers.length > 0) this.#random.pick(readers).vanish();
    }
  }

  /** The part of the log that a stream is, and its group. */
  #placeOf(stream: string): { part: LogPart; group?: number } | undefined {
    const { inputsStreams, factsStreams, workStream } = this.#names;
    if (stream === workStream) return { part: 'work' };
    if (inputsStreams.includes(stream)) return { part: 'inputs', group: inputsStreams.indexOf(stream) };
    if (factsStreams.includes(stream)) return { part: 'facts', group: factsStreams.indexOf(stream) };
    const part = PARTS_OF_BUCKETS.find(name => stream === `KV_${this.#names.bucket(BUCKETS[name])}`);
    return part && { part };
  }

  /** For the log outside the cluster, from which an operator imports tasks: while servers elect, they store nothing for anyone. */
  #toLeaderFromOutside(): ToLeader {
    return ({ subject }, pass) => {
      const electedAt = this.#deposed.get(EVERY_PROCESS)?.until ?? 0;
      if (this.#clock.nowMs >= electedAt || subject.startsWith('$JS.')) pass();
    };
  }

  #toLeader(slot: string, link: Link): ToLeader {
    return ({ stream, subject }, pass) => {
      const place = this.#placeOf(stream);
      if (place === undefined) return pass();
      const isWrite = !subject.startsWith('$JS.');
      const deposed = [slot, EVERY_PROCESS]
        .map(one => this.#deposed.get(one))
        .find(found => found !== undefined && found.until > this.#clock.nowMs);
      if (deposed !== undefined) {
        // A leader without followers stores nothing and creates no consumer, but answers reads.
        if (!/^\$JS\.API\.(STREAM\.(INFO|MSG\.GET)|DIRECT\.GET)\./.test(subject)) return;
        this.#situations.add('a deposed leader answers a read');
        pass(deposed.views);
        return;
      }
      const arrivesAt = link.leaderReachedAt(place.part, place.group, isWrite);
      if (arrivesAt === undefined) return;
      if (arrivesAt <= this.#clock.nowMs) pass();
      else this.#clock.as(undefined, () => this.#clock.after(arrivesAt - this.#clock.nowMs, pass));
    };
  }

  #listen(path: Path): Port {
    const port = listen(this.#double, path, `run-${this.#ports.length + 1}:4222`);
    this.#ports.push(port);
    return port;
  }

  #openLog(port: Port, name: string, user?: LogUser): Promise<Log> {
    const { shards, layouts: [first, ...later] = [], replicas = 1, ackWaitMs, follow } = this.#settings;
    return openJetStreamLog({
      servers: port.url,
      name,
      ...(user && { user }),
      credentials: loginOf(user ?? ADMIN),
      connect: connectVirtually,
      onEvent: event => {
        this.#trace.add(name, 'log', ...Object.values(event).map(String));
        this.#situations.onLogEvent(event);
        this.#coverage.onLogEvent(event);
      },
      ...(follow && { follow }),
      shards: first?.shards ?? shards,
      groups: first?.groups ?? 1,
      replicas,
      ...(later.length > 0 && {
        layoutTimes: LAYOUT_TIMES,
        ...(user === 'relay' && { addsLayouts: { wanted: later, isAdder: () => true } }),
      }),
      ackWaitMs,
      ...WORK_BOUNDS,
    });
  }

  /** The bytes of a process in both directions. Its own end lives and freezes with it. */
  #path(process: VirtualProcess, slot: string, link: Link): Path {
    const clock = this.#clock;
    const transfer = (end: VirtualProcess | undefined, arrivesAt: number | undefined, arrive: () => void) => {
      if (arrivesAt !== undefined) clock.as(end, () => clock.after(arrivesAt - clock.nowMs, arrive));
    };
    return {
      toServer: (arrive, bytes) => {
        const count = bytes && link.bytesOfWrite(bytes);
        transfer(undefined, link.bytesToServerAt(), () => arrive(count));
      },
      toClient: arrive => transfer(process, link.bytesToClientAt(), arrive),
      toLeader: this.#toLeader(slot, link),
    };
  }
}

/** The clock of servers, which neither freeze nor die. */
function outsideClock(clock: VirtualClock): Clock {
  return {
    nowMs: () => EPOCH_MS + Math.floor(clock.nowMs),
    after: (delayMs, callback) => {
      const timer = clock.as(undefined, () => clock.after(delayMs, callback));
      return () => timer.clear();
    },
  };
}

/** The users of production with their permissions. */
function usersOf({ topology }: ClusterSettings, names: LogNames): DoubleUser[] {
  const agents = Object.keys(topology).flatMap(service => (service.startsWith('agent.') ? [service.slice('agent.'.length)] : []));
  return serverUsers(agents).map(user => {
    if (user === ADMIN) return loginOf(user);
    const { publish, publishDenied, subscribe } = permissionsOf(user, names);
    return {
      ...loginOf(user),
      permissions: { publish: { allow: publish, deny: publishDenied }, subscribe: { allow: subscribe } },
    };
  });
}

/** The password is the name. */
function loginOf(user: ServerUser): { user: string; pass: string } {
  return { user: userName(user), pass: user };
}

function userOf(slot: string): LogUser {
  return slot.slice(0, slot.lastIndexOf('-')) as LogUser;
}
