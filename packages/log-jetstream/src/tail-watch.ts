import { backoffMs, type Tail } from '@hopline/log';
import { AckPolicy, type ConsumerConfig, DeliverPolicy, ReplayPolicy } from '@nats-io/jetstream';
import { type Msg, nanos, type Subscription } from '@nats-io/nats-core';
import { hasFilterLists } from './capabilities.ts';
import { idOf } from './codec.ts';
import type { Connection } from './connection.ts';
import { headersOf } from './message-headers.ts';
import { deleteConsumer } from './ordered-reader.ts';
import { reportFailedCheck } from './periodic-check.ts';
import { parseDelivery } from './pull-inbox.ts';
import { readerName } from './reader-name.ts';

/**
 * Number of subjects of one consumer. When the list changes, the server compares all subjects with each other, which takes 1 ms for 256
 * subjects. Ten thousand quiet tasks need forty consumers.
 */
export const WATCHED_SUBJECTS_MAX = 256;
const HEARTBEAT_MS = 1_000;
/** A consumer without a message or heartbeat for this long is lost. */
const SILENCE_MS_MAX = 3_500;
/** The server removes the consumer of a dead process after this time. */
const INACTIVE_MS = 30_000;
/** Number of newest records that are read concurrently for the followers of one consumer. */
const READS_AT_ONCE_MAX = 8;
/** Time limit for creating the consumer. Until then each follower checks its own newest record. */
const CREATE_MS_MAX = 8_000;
const REOPEN_MS_BASE = 1_000;
const REOPEN_MS_MAX = 30_000;
/** A user without the permission to watch tries again after one to two of these intervals, because the permission may have been granted. */
const DENIED_MS = 60_000;

type TailWatchOptions = {
  stream: string;
  /** Interval of the only timer, which drives everything. A pushed record reaches its followers one to two intervals later. */
  sweepMs: number;
  /** Newest record of a subject, read from the leader. */
  newest: (subject: string) => Promise<Tail | undefined>;
};

/** The newest record of a subject as a consumer delivered it. Its headers are not parsed until its followers are called. */
type Pushed = { seq: number; msg: Msg };

type Follower = { subject: string; onTail: (tail: Tail) => void; onLost: () => void };

/**
 * The newest sequences of many quiet subjects, pushed by the server. All followers of the process share consumers without payloads, whose
 * heartbeats show that nothing was lost. So a quiet follower costs no requests, however many there are.
 */
export class TailWatch {
  readonly #connection: Connection;
  readonly #options: TailWatchOptions;
  readonly #groups = new Set<Group>();
  #timer: NodeJS.Timeout | undefined;
  #sweptAt = 0;
  #deniedUntil = 0;

  constructor(connection: Connection, options: TailWatchOptions) {
    this.#connection = connection;
    this.#options = options;
    connection.onDisconnect(() => {
      for (const group of this.#groups) group.lose();
    });
    connection.onReconnect(() => {
      this.#deniedUntil = 0;
    });
    connection.closed.addEventListener('abort', () => clearInterval(this.#timer), { once: true });
  }

  /** Works as described for `FollowSource.pushTail`. */
  watch(subject: string, onTail: Follower['onTail'], onLost: Follower['onLost']): () => void {
    const follower = { subject, onTail, onLost };
    const group = this.#groupFor(subject);
    group.add(follower);
    this.#timer ??= setInterval(() => this.#sweep(), this.#options.sweepMs).unref();
    return () => group.remove(follower);
  }

  #groupFor(subject: string): Group {
    for (const group of this.#groups) if (group.accepts(subject)) return group;
    const group = new Group(this.#connection, this.#options, () => {
      this.#deniedUntil = performance.now() + DENIED_MS * (1 + Math.random());
    });
    this.#groups.add(group);
    return group;
  }

  #sweep(): void {
    const now = performance.now();
    // After this process was suspended, the heartbeats of that time are still waiting to be read.
    const wasPaused = now - this.#sweptAt > 2 * this.#options.sweepMs;
    this.#sweptAt = now;
    for (const group of this.#groups) {
      group.sweep(now, wasPaused);
      if (group.isEmpty) {
        group.close();
        this.#groups.delete(group);
      } else if (now >= this.#deniedUntil && hasFilterLists(this.#connection.nc.info?.version ?? '')) void group.refresh(now);
    }
    if (this.#groups.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }
}

/** One consumer with the subjects of at most WATCHED_SUBJECTS_MAX followers. */
class Group {
  readonly #connection: Connection;
  readonly #options: TailWatchOptions;
  readonly #onDenied: () => void;
  readonly #followers = new Map<string, Set<Follower>>();
  /** Followers whose subject was added to the consumer, and whose newest record must be read once after that. */
  #unconfirmed = new Set<Follower>();
  #consumer: WatchConsumer | undefined;
  /** Newest records pushed since the last sweep, and those pushed before it, for which live messages have had time to arrive. */
  #fresh = new Map<string, Pushed>();
  #due = new Map<string, Pushed>();
  #isRefreshing = false;
  #failures = 0;
  #retryAt = 0;

  constructor(connection: Connection, options: TailWatchOptions, onDenied: () => void) {
    this.#connection = connection;
    this.#options = options;
    this.#onDenied = onDenied;
  }

  get isEmpty(): boolean {
    return this.#followers.size === 0 && !this.#isRefreshing;
  }

  accepts(subject: string): boolean {
    return this.#followers.size < WATCHED_SUBJECTS_MAX || this.#followers.has(subject);
  }

  add(follower: Follower): void {
    const others = this.#followers.get(follower.subject);
    if (others === undefined) this.#followers.set(follower.subject, new Set([follower]));
    else others.add(follower);
    this.#unconfirmed.add(follower);
  }

  /** The consumer keeps the subject until its list changes for another reason. */
  remove(follower: Follower): void {
    this.#unconfirmed.delete(follower);
    const others = this.#followers.get(follower.subject);
    others?.delete(follower);
    if (others?.size === 0) this.#followers.delete(follower.subject);
  }

  /** Makes each follower check its own tail until another consumer covers its subject. */
  lose(): void {
    if (this.#consumer === undefined) return;
    this.close();
    for (const followers of this.#followers.values()) {
      for (const follower of followers) {
        this.#unconfirmed.add(follower);
        follower.onLost();
      }
    }
  }

  sweep(now: number, wasPaused: boolean): void {
    if (this.#consumer !== undefined && !wasPaused && !this.#consumer.isAlive(now)) {
      this.#connection.onEvent({ type: 'reader-restarted', what: 'tails of tasks' });
      this.lose();
    }
    const due = this.#due;
    this.#due = this.#fresh;
    this.#fresh = new Map();
    for (const [subject, { seq, msg }] of due) {
      const tail = { seq, startSeq: 0, ...idOf(headersOf(msg)) };
      for (const follower of this.#followers.get(subject) ?? []) follower.onTail(tail);
    }
  }

  /** Updates the consumer's subjects, and then reads the newest record of each new follower. */
  async refresh(now: number): Promise<void> {
    if (this.#isRefreshing || this.#unconfirmed.size === 0 || now < this.#retryAt || !this.#connection.connected) return;
    this.#isRefreshing = true;
    try {
      this.#consumer ??= this.#newConsumer();
      const consumer = this.#consumer;
      const joining = [...this.#unconfirmed];
      if (joining.some(({ subject }) => !consumer.subjects.has(subject))) await consumer.watch(new Set(this.#followers.keys()));
      await this.#confirm(consumer, joining);
      this.#failures = 0;
    } catch (error) {
      if (this.#connection.toDenied(error) !== undefined) this.#onDenied();
      else reportFailedCheck(this.#connection, 'tails of tasks', error);
      this.#failures += 1;
      this.#retryAt = performance.now() + backoffMs(this.#failures, REOPEN_MS_BASE, REOPEN_MS_MAX);
      this.lose();
    } finally {
      this.#isRefreshing = false;
    }
  }

  #newConsumer(): WatchConsumer {
    const consumer = new WatchConsumer(this.#connection, this.#options.stream, (subject, pushed) => {
      if (this.#consumer === consumer) this.#fresh.set(subject, pushed);
    });
    return consumer;
  }

  close(): void {
    this.#consumer?.close();
    this.#consumer = undefined;
    this.#fresh.clear();
    this.#due.clear();
  }

  async #confirm(consumer: WatchConsumer, joining: Follower[]): Promise<void> {
    const next = async () => {
      for (let follower = joining.pop(); follower !== undefined; follower = joining.pop()) {
        if (!this.#unconfirmed.has(follower)) continue;
        const tail = await this.#options.newest(follower.subject);
        // If the consumer was lost in the meantime, another consumer will confirm the followers.
        if (this.#consumer !== consumer) return;
        if (this.#unconfirmed.delete(follower)) follower.onTail(tail ?? { seq: 0, startSeq: 0 });
      }
    };
    await Promise.all(Array.from({ length: READS_AT_ONCE_MAX }, next));
  }
}

/** A push consumer in memory, without acks or payloads. */
class WatchConsumer {
  /** The subjects that the server watches. */
  subjects: ReadonlySet<string> = new Set();
  readonly #connection: Connection;
  readonly #stream: string;
  readonly #name = readerName();
  readonly #inbox: string;
  readonly #subscription: Subscription;
  #consumerSeq = 0;
  #seq = 0;
  #receivedAt = performance.now();
  #isLost = false;

  constructor(connection: Connection, stream: string, onPushed: (subject: string, pushed: Pushed) => void) {
    this.#connection = connection;
    this.#stream = stream;
    this.#inbox = connection.createInbox();
    const onMsg = (msg: Msg) => {
      this.#receivedAt = performance.now();
      if (msg.subject === this.#inbox) this.#onStatus(msg);
      else {
        const delivery = parseDelivery(msg);
        // A stream that lost its newest records reuses their sequences, so a sequence that does not increase reveals the loss.
        if (delivery?.consumerSeq !== this.#consumerSeq + 1 || delivery.seq <= this.#seq) this.#isLost = true;
        else {
          this.#consumerSeq += 1;
          this.#seq = delivery.seq;
          onPushed(msg.subject, delivery);
        }
      }
    };
    this.#subscription = connection.subscribe(this.#inbox, onMsg, () => {
      this.#isLost = true;
    });
  }

  isAlive(now: number): boolean {
    return !this.#isLost && now - this.#receivedAt < SILENCE_MS_MAX;
  }

  /** Creates the consumer, or replaces its list. An existing consumer continues at its position. */
  async watch(subjects: ReadonlySet<string>): Promise<void> {
    const config: Partial<ConsumerConfig> = {
      name: this.#name,
      filter_subjects: [...subjects],
      deliver_policy: DeliverPolicy.New,
      deliver_subject: this.#inbox,
      ack_policy: AckPolicy.None,
      replay_policy: ReplayPolicy.Instant,
      headers_only: true,
      idle_heartbeat: nanos(HEARTBEAT_MS),
      inactive_threshold: nanos(INACTIVE_MS),
      mem_storage: true,
      num_replicas: 1,
    };
    const request = { stream_name: this.#stream, config };
    await this.#connection.api(`CONSUMER.CREATE.${this.#stream}.${this.#name}`, request, CREATE_MS_MAX);
    this.#receivedAt = performance.now();
    this.subjects = subjects;
    if (this.#subscription.isClosed()) this.#delete();
  }

  close(): void {
    this.#subscription.unsubscribe();
    if (this.subjects.size > 0) this.#delete();
  }

  #delete(): void {
    void deleteConsumer(this.#connection, this.#stream, this.#name);
  }

  /** Heartbeats name the last delivered message. */
  #onStatus(msg: Msg): void {
    const headers = headersOf(msg);
    const last = headers?.get('Nats-Last-Consumer');
    if (headers?.code !== 100 || (last && Number(last) !== this.#consumerSeq)) this.#isLost = true;
  }
}
