import type { AgentInput, Fact, FactRecord, InputRecord, Role, TraceCarrier, Work } from '@hopline/events';
import {
  backoffMs,
  type Change,
  type Entry,
  type FactLog,
  type InputLog,
  type Job,
  type KeyValue,
  type Log,
  LogFull,
  LogUnavailable,
  newestForJob,
  purposeOf,
  REDELIVERY_MS_BASE,
  REDELIVERY_MS_MAX,
  REDELIVERY_MS_MIN,
  Requeued,
  requireRole,
  requireTaskId,
  Superseded,
  taskOfFactsId,
  type WorkQueue,
} from '@hopline/log';
import type { MemoryLog } from '@hopline/log/memory';
import type { Link } from './link.ts';
import type { Trace } from './trace.ts';
import type { VirtualClock, VirtualProcess } from './virtual-clock.ts';
import { CLAIM_MS, type Delivery, type SimulatedWorker, type WorkBroker } from './work-broker.ts';

/** How long to wait for an answer before a request is repeated, and the time limit of an operation, as in the JetStream log. */
const ANSWER_TIMEOUT_MS = 2_000;
const OPERATION_TIMEOUT_MS = 20_000;
const DONE_TIMEOUT_MS = 10_000;
const REQUEUE_COUNT_MS_MAX = 5_000;
const KEEP_ALIVES_PER_ACK_WAIT = 3;
const PULL_EXPIRES_MS = 10_000;

type FaultyLogDeps = {
  clock: VirtualClock;
  process: VirtualProcess;
  link: Link;
  trace: Trace;
  broker: WorkBroker;
  /** This process's handle of the memory log that all processes share. */
  store: MemoryLog;
};

/**
 * The log as one process sees it. Every request and every answer goes through the process's link, and its writes reach the shared in-memory
 * log only while it lives.
 */
export function faultyLog(deps: FaultyLogDeps): Log {
  const { store } = deps;
  const wire = new Wire(deps);
  const bucket = <V>(name: string, inner: KeyValue<V>) => new FaultyKeyValue(wire, name, inner);
  return {
    layouts: store.layouts,
    shards: store.shards,
    recordBytesMax: store.recordBytesMax,
    inputs: new FaultyInputs(new GroupWires(deps), store.inputs),
    facts: new FaultyFacts(new GroupWires(deps), store.facts),
    work: new FaultyWork(wire, deps),
    wakeUps: store.wakeUps,
    presence: {
      enter: (member, signal) => store.presence.enter(member, signal),
      isGone: member => wire.read('presence', member, () => store.presence.isGone(member)).catch(() => false),
    },
    leases: bucket('leases', store.leases),
    tasks: bucket('tasks', store.tasks),
    taskLists: bucket('taskLists', store.taskLists),
    agents: bucket('agents', store.agents),
    messageIds: bucket('messageIds', store.messageIds),
    contexts: bucket('contexts', store.contexts),
    pushConfigs: bucket('pushConfigs', store.pushConfigs),
    pushProgress: bucket('pushProgress', store.pushProgress),
    check: () => wire.read('check', '', () => store.check()),
    checkAppends: () => store.checkAppends(),
    purgeTask: taskId => wire.write('erase', taskId, () => store.purgeTask(taskId)),
    close: async () => store.close(),
  };
}

type Outcome<T> = { value: T } | { error: unknown };

/** Sends the requests and subscriptions of one process, to `groups` if they are for stream groups. */
class Wire {
  readonly #deps: FaultyLogDeps;
  readonly #groups: readonly number[];

  constructor(deps: FaultyLogDeps, groups: readonly number[] = []) {
    this.#deps = deps;
    this.#groups = groups;
  }

  get link(): Link {
    return this.#deps.link;
  }

  read<T>(part: string, what: string, operation: () => Promise<T>, timeoutMs = OPERATION_TIMEOUT_MS): Promise<T> {
    return this.#request(part, what, operation, timeoutMs);
  }

  /** A write is executed once, however often it is sent, because its repetitions have the same message id. */
  write<T>(part: string, what: string, operation: () => Promise<T>, timeoutMs = OPERATION_TIMEOUT_MS): Promise<T> {
    let result: Promise<T> | undefined;
    const once = () => {
      if (result === undefined && this.link.isRefused(part, this.#groups)) {
        // The streams of groups remove their oldest records to make room. A server refuses only records that it cannot store, and the
        // client sends those again.
        if (this.#groups.length > 0) return new Promise<T>(() => {});
        result = Promise.reject(new LogFull('maximum bytes exceeded'));
      }
      result ??= operation();
      return result;
    };
    return this.#request(part, what, once, timeoutMs);
  }

  /** An acknowledgement is confirmed like a write, but stores nothing, so a full stream does not refuse it. */
  acknowledge(part: string, what: string, operation: () => Promise<void>, timeoutMs: number): Promise<void> {
    let result: Promise<void> | undefined;
    return this.#request(part, what, () => (result ??= operation()), timeoutMs);
  }

  /** Sends a message that gets no answer. */
  send(part: string, operation: () => void): void {
    const { clock, process } = this.#deps;
    if (process.state === 'dead') return;
    const arrivesAt = this.link.requestArrivesAt(part, this.#groups);
    if (arrivesAt !== undefined) clock.as(undefined, () => clock.after(arrivesAt - clock.nowMs, operation));
  }

  #request<T>(part: string, what: string, operation: () => Promise<T>, timeoutMs: number): Promise<T> {
    const { clock, link, trace, process } = this.#deps;
    const { promise, resolve, reject } = Promise.withResolvers<T>();
    const deadline = clock.nowMs + timeoutMs;
    let isSettled = false;
    const settle = (outcome: Outcome<T>) => {
      if (isSettled) return;
      isSettled = true;
      clearTimeout(retry);
      if ('value' in outcome) resolve(outcome.value);
      else reject(outcome.error);
    };
    let retry: NodeJS.Timeout | undefined;
    const answer = (outcome: Outcome<T>) => {
      if (process.state === 'dead' || isSettled) return;
      const arrivesAt = link.areAcksLost() ? undefined : link.answerArrivesAt();
      trace.add(
        process.name,
        part,
        what,
        'value' in outcome ? 'ok' : nameOf(outcome.error),
        arrivesAt === undefined ? 'ack lost' : '',
      );
      if (arrivesAt !== undefined) clock.as(process, () => clock.after(arrivesAt - clock.nowMs, () => settle(outcome)));
    };
    const attempt = () => {
      if (clock.nowMs >= deadline) {
        trace.add(process.name, part, what, 'timeout');
        settle({ error: new LogUnavailable('the log did not answer') });
        return;
      }
      this.send(part, () => {
        operation().then(
          value => answer({ value }),
          error => answer({ error }),
        );
      });
      retry = setTimeout(attempt, Math.min(ANSWER_TIMEOUT_MS, deadline - clock.nowMs));
    };
    clock.as(process, attempt);
    return promise;
  }

  /** Items of a subscription as this process receives them. */
  async *receive<T>(what: string, items: AsyncIterable<T>, signal?: AbortSignal): AsyncGenerator<T, void> {
    const { clock, process, trace } = this.#deps;
    let receivedAt = -1;
    try {
      for await (const item of items) {
        if (process.state === 'dead') await never();
        // Messages that the broker has ready arrive together.
        if (receivedAt !== clock.nowMs) await this.#arrival(signal);
        receivedAt = clock.nowMs;
        if (signal?.aborted) return;
        if (this.link.brokenReads > 0) {
          this.link.brokenReads -= 1;
          trace.add(process.name, what, 'broken read');
          throw new LogUnavailable('the reader was lost');
        }
        yield item;
      }
    } finally {
      // The memory log ends the subscriptions of a killed process. Its code must not notice that.
      if (process.state === 'dead') await never();
    }
  }

  #arrival(signal: AbortSignal | undefined): Promise<void> {
    const { clock, process, link } = this.#deps;
    return new Promise(resolve => {
      const end = () => {
        signal?.removeEventListener('abort', end);
        resolve();
      };
      signal?.addEventListener('abort', end, { once: true });
      const wait = () => {
        const arrivesAt = link.itemArrivesAt(this.#groups);
        if (arrivesAt === undefined) clock.after(link.cutUntil - clock.nowMs, wait);
        else clock.after(arrivesAt - clock.nowMs, end);
      };
      clock.as(process, wait);
    });
  }
}

/** The ways of one process to the stream groups. */
class GroupWires {
  /** Sent to every group, because an extent needs all of them. */
  readonly all: Wire;
  readonly #deps: FaultyLogDeps;
  readonly #wires = new Map<number, Wire>();

  constructor(deps: FaultyLogDeps) {
    this.#deps = deps;
    this.all = new Wire(deps, [...Array(deps.store.layouts.groups).keys()]);
  }

  of(taskId: string): Wire {
    return this.ofShard(this.#deps.store.layouts.shardOf(taskId));
  }

  ofShard(shard: number): Wire {
    const group = this.#deps.store.layouts.groupOf(shard);
    const wire = this.#wires.get(group) ?? new Wire(this.#deps, [group]);
    this.#wires.set(group, wire);
    return wire;
  }

  ofEach(taskIds: readonly string[]): Wire {
    const { layouts } = this.#deps.store;
    return new Wire(this.#deps, [...new Set(taskIds.map(taskId => layouts.groupOf(layouts.shardOf(taskId))))]);
  }
}

/** Each caller gets a new promise, because a shared one would keep every caller in memory. */
const never = () => new Promise<never>(() => {});

class FaultyInputs implements InputLog {
  readonly #wires: GroupWires;
  readonly #inner: InputLog;

  constructor(wires: GroupWires, inner: InputLog) {
    this.#wires = wires;
    this.#inner = inner;
  }

  append(...[taskId, record, options]: Parameters<InputLog['append']>): ReturnType<InputLog['append']> {
    const { isNextVersion, isVersionBefore } = this.#wires.all.link;
    const append = async () => {
      if (isNextVersion) await this.#inner.append(taskId, unknownInput(record), { id: `${options.id}:next` });
      const stored = isVersionBefore ? inputsOfVersionBefore(record) : record;
      return this.#inner.append(taskId, isNextVersion ? asNextVersion(stored) : stored, options);
    };
    return this.#wires.of(taskId).write('inputs', options.id, append, options.timeoutMs);
  }

  readShard(shard: number, from: number, signal: AbortSignal): ReturnType<InputLog['readShard']> {
    return this.#wires.ofShard(shard).receive(`shard ${shard}`, this.#inner.readShard(shard, from, signal), signal);
  }

  unread(...args: Parameters<InputLog['unread']>): ReturnType<InputLog['unread']> {
    return this.#inner.unread(...args);
  }

  extent(): ReturnType<InputLog['extent']> {
    return this.#wires.all.read('inputs', 'extent', () => this.#inner.extent());
  }

  recordAt(taskId: string, seq: number): ReturnType<InputLog['recordAt']> {
    return this.#wires.of(taskId).read('input', `${taskId} ${seq}`, () => this.#inner.recordAt(taskId, seq));
  }

  readStoredShard(...args: Parameters<InputLog['readStoredShard']>): ReturnType<InputLog['readStoredShard']> {
    return this.#wires.ofShard(args[0]).receive('stored inputs', this.#inner.readStoredShard(...args));
  }

  read(taskId: string): ReturnType<InputLog['read']> {
    return this.#wires.of(taskId).receive('read inputs', this.#inner.read(taskId));
  }
}

class FaultyFacts implements FactLog {
  readonly #wires: GroupWires;
  readonly #inner: FactLog;

  constructor(wires: GroupWires, inner: FactLog) {
    this.#wires = wires;
    this.#inner = inner;
  }

  append(...[record, options]: Parameters<FactLog['append']>): ReturnType<FactLog['append']> {
    const { isNextVersion, isVersionBefore } = this.#wires.all.link;
    const earlier = isVersionBefore ? { ...record, facts: record.facts.map(withoutContent) } : record;
    const stored = isNextVersion ? factsOfNextVersion(record) : earlier;
    return this.#wires
      .of(record.aggregate.taskId)
      .write('facts', options.id, () => this.#inner.append(stored, options), options.timeoutMs);
  }

  last(taskId: string): ReturnType<FactLog['last']> {
    return this.#wires.of(taskId).read('last', taskId, () => this.#inner.last(taskId));
  }

  lastOfEach(taskIds: readonly string[]): ReturnType<FactLog['lastOfEach']> {
    return this.#wires.ofEach(taskIds).read('last of each', taskIds.join(), () => this.#inner.lastOfEach(taskIds));
  }

  extent(): ReturnType<FactLog['extent']> {
    return this.#wires.all.read('facts', 'extent', () => this.#inner.extent());
  }

  isLost(mark: Parameters<FactLog['isLost']>[0]): ReturnType<FactLog['isLost']> {
    return this.#wires.of(taskOfFactsId(mark.id)).read('record', `${mark.seq}`, () => this.#inner.isLost(mark));
  }

  readStoredShard(...args: Parameters<FactLog['readStoredShard']>): ReturnType<FactLog['readStoredShard']> {
    return this.#wires.ofShard(args[0]).receive('stored facts', this.#inner.readStoredShard(...args));
  }

  read(taskId: string, from: number): ReturnType<FactLog['read']> {
    return this.#wires.of(taskId).receive('read facts', this.#inner.read(taskId, from));
  }

  async follow(...[taskId, after, signal]: Parameters<FactLog['follow']>): ReturnType<FactLog['follow']> {
    const wire = this.#wires.of(taskId);
    const records = await wire.read('follow', taskId, () => this.#inner.follow(taskId, after, signal));
    return wire.receive('follow', records, signal);
  }
}

class FaultyKeyValue<V> implements KeyValue<V> {
  readonly #wire: Wire;
  readonly #name: string;
  readonly #inner: KeyValue<V>;

  constructor(wire: Wire, name: string, inner: KeyValue<V>) {
    this.#wire = wire;
    this.#name = name;
    this.#inner = inner;
  }

  get(key: string): Promise<Entry<V> | undefined> {
    return this.#wire.read(`${this.#name} get`, key, () => this.#inner.get(key));
  }

  under(prefix: string): Promise<Entry<V>[]> {
    return this.#wire.read(`${this.#name} under`, prefix, () => this.#inner.under(prefix));
  }

  keysUnder(prefix: string): Promise<string[]> {
    return this.#wire.read(`${this.#name} keys`, prefix, () => this.#inner.keysUnder(prefix));
  }

  match(filters: readonly string[]): Promise<Entry<V>[]> {
    return this.#wire.read(`${this.#name} match`, filters.join(), () => this.#inner.match(filters));
  }

  count(filter: string): Promise<number> {
    return this.#wire.read(`${this.#name} count`, filter, () => this.#inner.count(filter));
  }

  purge(key: string, revision: number): Promise<void> {
    return this.#wire.write(this.#name, key, () => this.#inner.purge(key, revision));
  }

  put(key: string, value: V): Promise<number> {
    return this.#wire.write(this.#name, key, () => this.#inner.put(key, this.#written(value)));
  }

  create(key: string, value: V): Promise<number> {
    return this.#wire.write(this.#name, key, () => this.#inner.create(key, this.#written(value)));
  }

  update(key: string, value: V, revision: number): Promise<number> {
    return this.#wire.write(this.#name, key, () => this.#inner.update(key, this.#written(value), revision));
  }

  #written(value: V): V {
    return this.#wire.link.isNextVersion ? asNextVersion(value) : value;
  }

  delete(key: string): Promise<void> {
    return this.#wire.write(this.#name, key, () => this.#inner.delete(key));
  }

  revision(): Promise<number> {
    return this.#wire.read(`${this.#name} revision`, '', () => this.#inner.revision());
  }

  extent(): ReturnType<KeyValue<V>['extent']> {
    return this.#wire.read(`${this.#name} extent`, '', () => this.#inner.extent());
  }

  watch(signal: AbortSignal): AsyncIterable<Change<V>> {
    return this.#wire.receive(`${this.#name} watch`, this.#inner.watch(signal), signal);
  }
}

/**
 * The worker's side of the queue, as in the JetStream log. Each slot pulls one item, sends keep-alives, and waits until its end is
 * confirmed.
 */
class FaultyWork implements WorkQueue {
  readonly #wire: Wire;
  readonly #deps: FaultyLogDeps;
  readonly #broker: WorkBroker;

  constructor(wire: Wire, deps: FaultyLogDeps) {
    this.#wire = wire;
    this.#deps = deps;
    this.#broker = deps.broker;
  }

  get duplicateWindowMs(): number {
    return this.#broker.options.duplicateWindowMs;
  }

  async requireRoom(role: Role): Promise<void> {
    await this.#wire.read('work room', role, () => this.#deps.store.work.requireRoom(role));
  }

  hasItem(role: Role, taskId: string): Promise<boolean> {
    return this.#wire.read('work item', taskId, async () => this.#broker.hasItem(role, taskId));
  }

  ahead(role: Role, { taskId }: Pick<Work, 'taskId'>): Promise<number | undefined> {
    return this.#wire.read('work place', taskId, async () => this.#broker.ahead(role, taskId));
  }

  async request(role: Role, work: Work, options: { id: string; trace?: TraceCarrier }): Promise<{ duplicate: boolean }> {
    requireRole(role);
    requireTaskId(work.taskId);
    const { isNextVersion, isVersionBefore } = this.#wire.link;
    if (isVersionBefore && work.call !== undefined && this.#deps.process.name.startsWith('relay')) return { duplicate: false };
    const item = isNextVersion ? asNextVersion(work) : work;
    const { clock } = this.#deps;
    const lateAt = clock.nowMs + Math.max(OPERATION_TIMEOUT_MS, this.duplicateWindowMs);
    return this.#wire.write('work', options.id, async () => {
      // The work stream of NATS remembers ids for ten minutes, and a silent connection is replaced after seconds, so no item arrives after its id was
      // forgotten. Here stalls are longer than the window.
      if (clock.nowMs >= lateAt) return new Promise<never>(() => {});
      return this.#broker.request(role, item, options.id, options.trace);
    });
  }

  async take(role: Role, options: { slots: number; signal: AbortSignal }, handler: (job: Job) => Promise<void>): Promise<void> {
    requireRole(role);
    const running = new Running(role, this.#wire, this.#deps);
    const jobs = new Set<Promise<void>>();
    const slot = async () => {
      while (!options.signal.aborted) {
        const delivery = await this.#next(role, options.signal);
        if (delivery === undefined) continue;
        const { promise: left, resolve: leaveSlot } = Promise.withResolvers<void>();
        const inSlot = (job: Job) => handler({ ...job, leaveSlot });
        const job = this.#run(delivery, running, options.signal, inSlot).finally(() => jobs.delete(job));
        jobs.add(job);
        await Promise.race([job, left]);
      }
    };
    await Promise.all(Array.from({ length: options.slots }, slot));
    await Promise.all(jobs);
    running.leave();
  }

  /** Undefined when the pull expired or the worker stops. */
  #next(role: Role, signal: AbortSignal): Promise<Delivery | undefined> {
    const { clock, process, link } = this.#deps;
    return new Promise(resolve => {
      let withdraw: (() => void) | undefined;
      const end = (delivery?: Delivery) => {
        clearTimeout(expiry);
        signal.removeEventListener('abort', onAbort);
        this.#wire.send('work', () => withdraw?.());
        resolve(delivery);
      };
      const onAbort = () => end();
      const expiry = setTimeout(end, PULL_EXPIRES_MS);
      signal.addEventListener('abort', onAbort, { once: true });
      this.#wire.send('work', () => {
        withdraw = this.#broker.pull(role, PULL_EXPIRES_MS, delivery => {
          const arrivesAt = process.state === 'dead' ? undefined : link.answerArrivesAt();
          if (arrivesAt !== undefined) clock.as(process, () => clock.after(arrivesAt - clock.nowMs, () => end(delivery)));
        });
      });
    });
  }

  async #run(delivery: Delivery, running: Running, signal: AbortSignal, handler: (job: Job) => Promise<void>): Promise<void> {
    const { seq, deliveries, requeues, storedAt, work, trace } = delivery;
    const { ackWaitMs } = this.#broker.options;
    const keepAlive = () => this.#wire.send('work', () => this.#broker.keepAlive(seq));
    const isTakenOver = () => this.#wire.read('requeue', `${seq}`, async () => this.#broker.hasBegunAfter(seq, deliveries));
    // Keep-alives were lost, but the handler still runs, so it continues.
    if (running.has(seq)) {
      running.add(seq, deliveries);
      keepAlive();
      if (await isTakenOver().catch(() => false)) running.lose(seq, deliveries);
      return;
    }
    running.add(seq, deliveries);
    this.#deps.trace.add(this.#deps.process.name, 'item', `${work.taskId} ${work.call?.id ?? ''}`, `delivery ${deliveries}`);
    const timer = setInterval(() => running.isUnclaimed(seq) && keepAlive(), ackWaitMs / KEEP_ALIVES_PER_ACK_WAIT);
    const confirmDone = (timeoutMs: number) =>
      this.#wire
        .write('done', `${seq}`, async () => this.#broker.done(seq), timeoutMs)
        .then(
          () => true,
          () => false,
        );
    const leave = () => {
      clearInterval(timer);
      running.remove(seq);
    };
    let isConfirmed = true;
    try {
      if (signal.aborted) throw new Requeued('the worker is stopping');
      const purpose = purposeOf(deliveries, requeues, this.#broker.options);
      if (purpose === 'dead') return await this.#returnItem(seq, 0, running, signal);
      const count = { attempt: deliveries, requeues, exhausted: purpose === 'settle' };
      this.#wire.send('requeue', () => this.#broker.begin(seq, deliveries));
      const known = newestForJob(work, deliveries, storedAt);
      await handler({ work, item: seq, ...count, ...known, isTakenOver, ...(trace && { trace }) });
      isConfirmed = await confirmDone(DONE_TIMEOUT_MS);
    } catch (error) {
      if (running.isLost(seq)) return;
      if (error instanceof Superseded) {
        if (await running.isDueElsewhere(seq)) this.#nak(seq, ackWaitMs);
        return;
      }
      if (error instanceof Requeued) {
        const count = this.#wire.write(
          'requeue',
          `${seq}`,
          async () => this.#broker.countRequeue(seq, deliveries),
          REQUEUE_COUNT_MS_MAX,
        );
        await count.catch(() => {});
        await this.#returnItem(seq, 0, running, signal);
      } else {
        const failures = deliveries - requeues;
        const waitMs = signal.aborted ? 0 : backoffMs(failures, REDELIVERY_MS_BASE, REDELIVERY_MS_MAX, REDELIVERY_MS_MIN);
        await this.#returnItem(seq, waitMs, running, signal);
      }
    } finally {
      if (isConfirmed || !running.isClaimed(seq)) leave();
      else void confirmDone(CLAIM_MS).finally(leave);
    }
  }

  /** The return of a claimed item is repeated until it is confirmed. Unless the worker is stopping, this happens in the background. */
  async #returnItem(seq: number, waitMs: number, running: Running, signal: AbortSignal): Promise<void> {
    if (!running.isClaimed(seq)) return this.#nak(seq, waitMs);
    const timeoutMs = signal.aborted ? DONE_TIMEOUT_MS : CLAIM_MS;
    const nak = async () => this.#broker.nak(seq, waitMs);
    const returned = this.#wire.acknowledge('work', `${seq}`, nak, timeoutMs).catch(() => {});
    if (signal.aborted) await returned;
  }

  #nak(seq: number, waitMs: number): void {
    this.#wire.send('work', () => this.#broker.nak(seq, waitMs));
  }
}

const CLAIM_AFTER_MS = 400;
const CLAIM_INTERVAL_MS = 250;
const RENEW_MS = 60_000;
const LOOK_MS = 500;

/** The items of one worker and what its siblings see of it, as in the JetStream log. */
class Running {
  readonly #wire: Wire;
  readonly #deps: FaultyLogDeps;
  readonly #role: Role;
  readonly #items = new Map<number, { delivery: number; takenAtMs: number; state: 'unclaimed' | 'claimed' | 'lost' }>();
  readonly #timers: NodeJS.Timeout[];
  #worker: SimulatedWorker;
  #claiming = false;
  #entry = 0;

  constructor(role: Role, wire: Wire, deps: FaultyLogDeps) {
    this.#role = role;
    this.#wire = wire;
    this.#deps = deps;
    this.#worker = this.#enter();
    this.#timers = [setInterval(() => this.#look(), LOOK_MS), setInterval(() => this.#renew(), RENEW_MS)];
  }

  has(seq: number): boolean {
    return this.#items.has(seq);
  }

  isUnclaimed(seq: number): boolean {
    return this.#items.get(seq)?.state === 'unclaimed';
  }

  isClaimed(seq: number): boolean {
    return this.#items.get(seq)?.state === 'claimed';
  }

  isLost(seq: number): boolean {
    return this.#items.get(seq)?.state === 'lost';
  }

  /** Whether this worker has claimed an item that no other has claimed. */
  async isDueElsewhere(seq: number): Promise<boolean> {
    if (this.#items.get(seq)?.state !== 'claimed') return false;
    const isClaimed = async () => this.#deps.broker.isClaimedElsewhere(this.#worker, seq);
    return !(await this.#wire.read('requeue', `${seq}`, isClaimed).catch(() => true));
  }

  add(seq: number, delivery: number): void {
    const { takenAtMs = performance.now() } = this.#items.get(seq) ?? {};
    this.#items.set(seq, { delivery, takenAtMs, state: 'unclaimed' });
    void this.#claimLater();
  }

  lose(seq: number, delivery: number): void {
    const item = this.#items.get(seq);
    if (item?.delivery === delivery) item.state = 'lost';
  }

  remove(seq: number): void {
    this.#items.delete(seq);
    void this.#claimLater();
  }

  leave(): void {
    for (const timer of this.#timers) clearInterval(timer);
    this.#deps.broker.leave(this.#worker);
  }

  #enter(): SimulatedWorker {
    const { broker, clock, process, link } = this.#deps;
    return broker.enter(this.#role, () => {
      if (process.state === 'dead' || link.isCut) return 'gone';
      return process.state === 'frozen' || link.stalledUntil > clock.nowMs ? undefined : 'present';
    });
  }

  /** A worker that was found dead receives a message, or looks when it is connected again. */
  #look(): void {
    const { clock, link } = this.#deps;
    if (this.#worker.isTaken && !link.isCut && link.stalledUntil <= clock.nowMs) this.#lose();
  }

  #lose(): void {
    for (const item of this.#items.values()) if (item.state === 'claimed') item.state = 'lost';
    this.#worker = this.#enter();
  }

  #renew(): void {
    for (const [seq, { state }] of this.#items)
      if (state === 'claimed') this.#wire.send('work', () => this.#deps.broker.extend(seq));
  }

  async #claimLater(): Promise<void> {
    // A worker of the previous version keeps every item alive.
    if (this.#claiming || this.#deps.link.isVersionBefore) return;
    this.#claiming = true;
    const oldest = [...this.#items.values()].find(({ state }) => state === 'unclaimed');
    const dueAtMs = (oldest?.takenAtMs ?? performance.now()) + CLAIM_AFTER_MS;
    await new Promise(resolve => setTimeout(resolve, Math.max(0, dueAtMs - performance.now())));
    const { broker } = this.#deps;
    const worker = this.#worker;
    const takenUntilMs = performance.now() - CLAIM_AFTER_MS;
    const claimed = [...this.#items].filter(
      ([, { state, takenAtMs }]) => state === 'claimed' || (state === 'unclaimed' && takenAtMs <= takenUntilMs),
    );
    const seqs = claimed.map(([seq]) => seq);
    const entry = ++this.#entry;
    const claim = async () => broker.claim(worker, entry, seqs);
    const isOwn = await this.#wire.write('requeue', 'worker', claim).catch(() => undefined);
    if (isOwn === false && this.#worker === worker) this.#lose();
    for (const [seq, item] of isOwn === true ? claimed : []) {
      if (this.#items.get(seq) !== item || item.state !== 'unclaimed') continue;
      item.state = 'claimed';
      this.#wire.send('work', () => broker.extend(seq));
    }
    await new Promise(resolve => setTimeout(resolve, CLAIM_INTERVAL_MS));
    this.#claiming = false;
    if ([...this.#items.values()].some(({ state }) => state === 'unclaimed')) void this.#claimLater();
  }
}

/** Members that this version does not know. */
function asNextVersion<T>(value: T): T {
  return { ...value, next: { note: 'of the next version' } };
}

function inputsOfVersionBefore(record: InputRecord): InputRecord {
  return 'inputs' in record ? { ...record, inputs: record.inputs.map(withoutContent) } : record;
}

/** A call as the previous version stored it. */
function withoutContent<T extends Fact | AgentInput>(value: T): T {
  if (value.kind !== 'call' && value.kind !== 'call.started') return value;
  const { presentation: _p, message: _m, metadata: _md, resume: _r, trace: _t, ...call } = value;
  return call as T;
}

/**
 * A record of the same writer that contains an input of an unknown kind. A record of an agent gets a producer of its own, because the input takes an
 * ordinal.
 */
function unknownInput({ at, from }: InputRecord): InputRecord {
  const input = { kind: 'of the next version', text: 'x' };
  const record =
    typeof from === 'string'
      ? { v: 1, at, from, input }
      : { v: 1, at, from: { ...from, id: `${from.id}/next` }, n: 1, inputs: [input] };
  return record as unknown as InputRecord;
}

/** A record with unknown members, and a fact of an unknown kind among the known ones. */
function factsOfNextVersion(record: FactRecord): FactRecord {
  const fact = { kind: 'noted', at: record.aggregate.at, note: 'of the next version' } as unknown as Fact;
  const facts = record.facts.length === 0 ? [] : [...record.facts.map(asNextVersion), fact];
  return asNextVersion({ ...record, facts, aggregate: asNextVersion(record.aggregate) });
}

function nameOf(error: unknown): string {
  return error instanceof Error ? error.name : 'error';
}
