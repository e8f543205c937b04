import { RAW_PREFIX, rawShardFilter, shardToken } from '@hopline/events';
import { backoffMs, LogDenied, LogUnavailable, type Unread } from '@hopline/log';
import { hasFilterLists } from './capabilities.ts';
import type { Connection } from './connection.ts';
import { isReplaced, readOrdered } from './ordered-reader.ts';
import type { Delivery } from './pull-inbox.ts';
import { type RetryOptions, retry } from './retry.ts';

const MIB = 1024 * 1024;
/** Milliseconds for which shards without a consumer are collected, so that they share one. */
const GATHER_MS = 10;
/** Time between two searches for consumers that can be joined. */
const JOIN_MS = 500;
/** Pause after the loss of a consumer that has delivered nothing. */
const LOSS_MS_BASE = 50;
const LOSS_MS_MAX = 2_000;
/**
 * Longest distance, in sequences, between shards that begin to share a consumer. Shards that are ahead receive the messages in between
 * again and skip them.
 */
const DISTANCE_MAX = 4_096;
/** The same distance in bytes, assuming that each record is as large as the largest recent one. */
const DISTANCE_BYTES_MAX = 8 * MIB;
/** The expected size of a record shrinks by this factor with each smaller one. */
const DECAY = 0.999;
/**
 * Bytes that nats-server may have on their way for all shards of a log. Each consumer pulls the part of its shards, so the total does not
 * grow when shards have consumers of their own.
 */
const SHARDS_BYTES_MAX = 8 * MIB;
/** Bytes that are kept for a shard whose reader does not take them. */
const WAITING_BYTES_MAX = MIB;

type ShardReadersOptions = { stream: string };

/** Deliveries of one shard. `beforeLive`: the newest sequence that the stream can have had before the reading began. */
type ShardBatch = { deliveries: readonly Delivery[]; beforeLive: number };

/**
 * Reads the shards of one stream of inputs. Shards that have reached the end of the stream share a consumer: for each message nats-server
 * scans all messages between it and the previous one of the same consumer. With one consumer for each of 256 shards a message cost 211 µs
 * of CPU, and with one consumer for all shards 70 µs (ADR 150). A shard that is far behind or slow has a consumer of its own until it has
 * caught up.
 */
export class ShardReaders {
  readonly #connection: Connection;
  readonly #options: ShardReadersOptions;
  /** Shards whose messages a reader waits for. */
  readonly #open = new Set<OpenShard>();
  readonly #readings = new Set<SharedReading>();
  readonly #sizes = new RecordSizes();
  /** Number of consumers lost in a row without a delivery in between. */
  #losses = 0;
  #gathering: NodeJS.Timeout | undefined;
  #joining: NodeJS.Timeout | undefined;
  /** The user may not create a consumer with a list of subjects, because its permissions are those of an earlier version. */
  #isDenied = false;

  constructor(connection: Connection, options: ShardReadersOptions) {
    this.#connection = connection;
    this.#options = options;
  }

  /**
   * The messages of a shard from a sequence on, in order, until `signal` aborts. Rejects with LogUnavailable when the stream has been
   * unreadable for a minute, and when the log is closed.
   */
  async *read(shard: number, from: number, signal: AbortSignal): AsyncGenerator<ShardBatch, void> {
    const { closed } = this.#connection;
    const ended = AbortSignal.any([signal, closed]);
    const open = new OpenShard(shard, from);
    const onEnded = () => open.wake();
    ended.addEventListener('abort', onEnded);
    this.#open.add(open);
    this.#gather();
    try {
      while (!ended.aborted) {
        const deliveries = open.take();
        if (deliveries.length > 0) yield { deliveries, beforeLive: open.beforeLive };
        else if (open.failure !== undefined) throw open.failure.error;
        else {
          if (open.reading === undefined) this.#gather();
          await open.changed();
        }
      }
    } finally {
      ended.removeEventListener('abort', onEnded);
      this.#open.delete(open);
      const { reading } = open;
      if (reading?.remove(open) === true) this.#joinSoon();
      else await reading?.ended;
    }
    if (closed.aborted && !signal.aborted) throw new LogUnavailable('the log is closed');
  }

  /** As in InputLog. */
  unread(shard: number, after: number): Unread | undefined {
    for (const open of this.#open) if (open.shard === shard) return open.unread(after);
    return undefined;
  }

  /** Whether a consumer may have the subjects of several shards. */
  get #canShare(): boolean {
    return !this.#isDenied && hasFilterLists(this.#connection.nc.info?.version ?? '');
  }

  #gather(ms = GATHER_MS): void {
    this.#gathering ??= setTimeout(() => {
      this.#gathering = undefined;
      this.#begin([...this.#open].filter(open => open.isFree));
    }, ms);
  }

  /** Begins to read shards. Shards that are near each other are read together. */
  #begin(shards: readonly OpenShard[]): void {
    const maxSize = this.#canShare ? Number.POSITIVE_INFINITY : 1;
    let group: OpenShard[] = [];
    const groups: OpenShard[][] = [];
    for (const open of shards.toSorted((a, b) => a.next - b.next)) {
      const isFar = group.length === 0 || open.next - group[0]!.next > this.#sizes.distanceMax;
      if (isFar || group.length >= maxSize || group.some(({ shard }) => shard === open.shard)) {
        group = [];
        groups.push(group);
      }
      group.push(open);
    }
    for (const members of groups) this.#readTogether(members);
    this.#joinSoon();
  }

  #readTogether(members: readonly OpenShard[]): void {
    const reading = new SharedReading(this.#connection, this.#options, {
      members,
      filters: this.#filtersOf(members),
      sizes: this.#sizes,
    });
    this.#readings.add(reading);
    const over = () => {
      this.#readings.delete(reading);
      return reading.lose();
    };
    reading.ended = reading.run().then(
      () => {
        if (over().length === 0) return;
        this.#losses = reading.hasDelivered ? 1 : this.#losses + 1;
        this.#gather(backoffMs(this.#losses, LOSS_MS_BASE, LOSS_MS_MAX, GATHER_MS));
      },
      error => {
        const left = over();
        // Each shard then has a consumer with one subject, like in the previous version.
        if (error instanceof LogDenied && left.length > 1) {
          this.#isDenied = true;
          this.#gather();
        } else for (const open of left) open.fail(error);
      },
    );
  }

  /** One subject for all shards of the stream, so that the server need not compare subjects. */
  #filtersOf(members: readonly OpenShard[]): string[] {
    const { layouts, names } = this.#connection;
    const { stream } = this.#options;
    let ofStream = 0;
    for (let shard = 0; shard < layouts.shards; shard += 1) if (names.inputsStreamOf(shard) === stream) ofStream += 1;
    if (members.length > 1 && members.length === ofStream) return [names.subject(`${RAW_PREFIX}.>`)];
    return members.map(({ shard }) => names.subject(rawShardFilter(shard)));
  }

  #joinSoon(): void {
    this.#joining ??= setTimeout(() => {
      this.#joining = undefined;
      this.#join();
    }, JOIN_MS);
  }

  /**
   * Joins the consumers that have reached the end of the stream, and replaces consumers that still receive messages of shards that have
   * left.
   */
  #join(): void {
    const newest = Math.max(...[...this.#readings].map(({ position }) => position));
    const near = [...this.#readings].filter(reading => reading.isAtEnd && newest - reading.position <= this.#sizes.distanceMax);
    const isDue = near.some(({ receivesInVain }) => receivesInVain) || (near.length > 1 && this.#canShare);
    if (isDue) this.#begin(near.flatMap(reading => reading.leave()));
    else if ([...this.#readings].some(({ receivesInVain }) => receivesInVain) || (this.#readings.size > 1 && this.#canShare))
      this.#joinSoon();
  }
}

/** The sizes of the records of a stream. */
class RecordSizes {
  #expectedBytes = 1;

  get distanceMax(): number {
    return Math.min(DISTANCE_MAX, Math.floor(DISTANCE_BYTES_MAX / this.#expectedBytes));
  }

  received(bytes: number): void {
    this.#expectedBytes = Math.max(1, bytes, this.#expectedBytes * DECAY);
  }
}

/** A shard that is being read. */
class OpenShard {
  readonly shard: number;
  readonly token: string;
  /** Newest sequence that it has received. */
  received: number;
  /** When that message was stored; undefined before the first message. */
  receivedStoredAt: number | undefined;
  /** First sequence that it wants. The stream has no message of this shard between the two. */
  next: number;
  beforeLive = Number.MAX_SAFE_INTEGER;
  reading: SharedReading | undefined;
  /** The shard's part in the reading that it has left, until another reading begins. */
  unreadLeft: Unread | undefined;
  failure: { error: unknown } | undefined;
  waitingBytes = 0;
  #waiting: Delivery[] = [];
  /** The newest batch. Its reader may not have taken all of it yet. */
  #taken: readonly Delivery[] = [];
  #wake: (() => void) | undefined;
  /** Called when its messages have been taken. */
  #onTaken: (() => void) | undefined;

  constructor(shard: number, from: number) {
    this.shard = shard;
    this.token = shardToken(shard);
    this.next = Math.max(1, from);
    this.received = this.next - 1;
  }

  /** The shard is waiting for a consumer, and has room for more messages. */
  get isFree(): boolean {
    return this.reading === undefined && this.failure === undefined && this.#waiting.length === 0;
  }

  push(delivery: Delivery): void {
    this.received = delivery.seq;
    this.receivedStoredAt = delivery.storedAt;
    this.next = delivery.seq + 1;
    this.#waiting.push(delivery);
    this.waitingBytes += delivery.msg.data.length;
    this.wake();
  }

  take(): readonly Delivery[] {
    const taken = this.#waiting;
    this.#taken = taken;
    this.#waiting = [];
    this.waitingBytes = 0;
    this.#onTaken?.();
    return taken;
  }

  unread(after: number): Unread | undefined {
    const rest = this.reading === undefined ? this.unreadLeft : this.reading.unreadOfEach;
    const here = [...this.#taken, ...this.#waiting].filter(({ seq }) => seq > after);
    const storedAt = here[0]?.storedAt ?? rest?.storedAt;
    return storedAt === undefined ? undefined : { records: here.length + (rest?.records ?? 0), storedAt };
  }

  /** Resolves when its messages have been taken, or `signal` aborts. */
  taken(signal: AbortSignal): Promise<void> {
    return new Promise(resolve => {
      const settle = () => {
        this.#onTaken = undefined;
        signal.removeEventListener('abort', settle);
        resolve();
      };
      this.#onTaken = settle;
      signal.addEventListener('abort', settle);
    });
  }

  fail(error: unknown): void {
    this.failure = { error };
    this.wake();
  }

  wake(): void {
    this.#wake?.();
    this.#wake = undefined;
  }

  changed(): Promise<void> {
    return new Promise(resolve => {
      this.#wake = resolve;
    });
  }
}

/** One consumer and its shards. */
class SharedReading {
  readonly #connection: Connection;
  readonly #options: ShardReadersOptions;
  readonly #filters: string[];
  readonly #sizes: RecordSizes;
  readonly #shards = new Map<string, OpenShard>();
  readonly #tokenAt: number;
  readonly #stop = new AbortController();
  /** Every message of the consumer's shards before this sequence has been delivered. */
  #position: number;
  /** The consumer had no more messages when it was last checked. Its server may lag behind the leader. */
  isAtEnd = false;
  /** Messages that the consumer had left after the newest delivery, which was stored at `#storedAt`. */
  #pending = 0;
  #storedAt = 0;
  /** A shard has left, and the consumer still receives its messages. */
  receivesInVain = false;
  hasDelivered = false;
  /** Resolves when it has no consumer any more. */
  ended: Promise<void> | undefined;

  constructor(
    connection: Connection,
    options: ShardReadersOptions,
    { members, filters, sizes }: { members: readonly OpenShard[]; filters: string[]; sizes: RecordSizes },
  ) {
    this.#connection = connection;
    this.#options = options;
    this.#filters = filters;
    this.#sizes = sizes;
    this.#tokenAt = connection.names.subject(RAW_PREFIX).length + 1;
    this.#position = Math.min(...members.map(({ next }) => next));
    for (const open of members) {
      open.reading = this;
      this.#shards.set(open.token, open);
    }
  }

  get position(): number {
    return this.#position;
  }

  /** Each shard's part of the messages that the consumer has not delivered. */
  get unreadOfEach(): Unread | undefined {
    if (this.isAtEnd || this.#pending === 0) return undefined;
    return { records: Math.ceil(this.#pending / this.#shards.size), storedAt: this.#storedAt };
  }

  /** Ends when all shards have left or the consumer is lost. Rejects like `readOrdered`. */
  async run(): Promise<void> {
    const { stream } = this.#options;
    const [first, ...others] = this.#filters;
    const { signal } = this.#stop;
    const reading = {
      stream,
      filter: others.length === 0 ? first! : this.#filters,
      from: this.#position,
      begin: (_from: number, options: RetryOptions) => this.#beginAt(options),
      yieldsUpTo: true,
      replacesLost: false,
      bytesMax: Math.floor((SHARDS_BYTES_MAX / this.#connection.layouts.shards) * this.#shards.size),
      signal,
    };
    for await (const { deliveries, upTo } of readOrdered(this.#connection, reading)) {
      for (const delivery of deliveries) if (!signal.aborted) this.#deliver(delivery);
      if (signal.aborted) return;
      if (upTo !== undefined) {
        this.#position = Math.max(this.#position, upTo + 1);
        this.isAtEnd = true;
      }
      await this.#waitForSlow();
    }
  }

  /** A shard ends. Returns whether others remain, in which case the consumer receives messages that no reader needs. */
  remove(open: OpenShard): boolean {
    this.#release(open);
    this.receivesInVain = this.#shards.size > 0;
    if (!this.receivesInVain) this.#stop.abort();
    return this.receivesInVain;
  }

  /** Ends the reading. Returns its shards, which continue from its end. */
  leave(): OpenShard[] {
    this.#stop.abort();
    const left = [...this.#shards.values()];
    for (const open of left) this.#release(open);
    return left;
  }

  /**
   * The consumer is lost. Each shard continues after the messages that it has received, not from the consumer's position: if a crash of
   * NATS has removed the end of the stream, new messages may have sequences that this consumer has already passed.
   */
  lose(): OpenShard[] {
    const left = this.leave();
    for (const open of left) open.next = open.received + 1;
    return left;
  }

  #release(open: OpenShard): void {
    open.unreadLeft = this.unreadOfEach;
    this.#shards.delete(open.token);
    open.next = Math.max(open.next, this.#position);
    open.reading = undefined;
  }

  /** The sequence at which a new consumer begins. */
  async #beginAt(options: RetryOptions): Promise<number> {
    const { stream } = this.#options;
    const info = () => this.#connection.leaders.info(stream);
    const { last_seq: lastSeq } = (await retry(this.#connection, stream, info, options)).state;
    for (const open of this.#shards.values()) open.beforeLive = Math.min(open.beforeLive, lastSeq);
    this.#returnToEnd((await this.#hasLostTail(lastSeq, options)) ? 0 : lastSeq);
    return this.#position;
  }

  /** Whether the stream has reused sequences up to which its shards have received messages. */
  async #hasLostTail(lastSeq: number, options: RetryOptions): Promise<boolean> {
    let newest = { seq: 0, storedAt: 0 };
    for (const { received, receivedStoredAt } of this.#shards.values())
      if (receivedStoredAt !== undefined && received > newest.seq) newest = { seq: received, storedAt: receivedStoredAt };
    if (newest.seq === 0 || newest.seq > lastSeq) return false;
    return isReplaced(this.#connection, this.#options.stream, newest, options);
  }

  /**
   * If the stream ends before a record that a shard has received, the shard is read from sequence 1. Otherwise nothing would arrive until
   * the stream reaches that sequence again. 0, for a stream that has lost its tail, has this effect for all shards. Records that were
   * already folded are recognized.
   */
  #returnToEnd(lastSeq: number): void {
    let isBehind = false;
    for (const open of this.#shards.values()) {
      if (open.received > lastSeq) {
        isBehind = true;
        open.received = 0;
        open.receivedStoredAt = undefined;
      }
      if (open.next > lastSeq + 1) open.next = open.received + 1;
    }
    this.#position = Math.min(...[...this.#shards.values()].map(({ next }) => next));
    if (isBehind) this.#connection.onEvent({ type: 'inputs-behind', stream: this.#options.stream });
  }

  #deliver(delivery: Delivery): void {
    const { msg, seq, pending, storedAt } = delivery;
    this.#position = seq + 1;
    this.hasDelivered = true;
    this.isAtEnd = pending === 0;
    this.#pending = pending;
    this.#storedAt = storedAt;
    this.#sizes.received(msg.data.length);
    const open = this.#shards.get(msg.subject.slice(this.#tokenAt, msg.subject.indexOf('.', this.#tokenAt)));
    if (open === undefined || seq < open.next) return;
    open.push(delivery);
  }

  /** A slow shard leaves the others and gets another consumer when it has room again. If it is the only shard, the consumer waits. */
  async #waitForSlow(): Promise<void> {
    const isSlow = (open: OpenShard) => open.waitingBytes >= WAITING_BYTES_MAX;
    if (![...this.#shards.values()].some(isSlow)) return;
    // A reader that is not slow takes them meanwhile.
    await new Promise(resolve => setImmediate(resolve));
    for (const open of this.#shards.values()) {
      if (!isSlow(open)) continue;
      if (this.#shards.size === 1) return open.taken(this.#stop.signal);
      this.#release(open);
      this.receivesInVain = true;
    }
  }
}
