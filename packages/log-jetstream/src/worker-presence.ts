import { randomUUID } from 'node:crypto';
import { type Role, workerAnswerSubject, workerSubject, workersSubject } from '@hopline/events';
import { type KeyValue, LogConflict } from '@hopline/log';
import type { Msg } from '@nats-io/nats-core';
import type { Connection } from './connection.ts';
import { LastingSubscription } from './lasting-subscription.ts';
import { headersOf } from './message-headers.ts';
import type { Delivery } from './pull-inbox.ts';
import type { RunningItems } from './running-items.ts';
import {
  CLAIMED_ITEMS_MAX,
  isWorkerEntry,
  namesLater,
  type WorkerEntry,
  workerEntry,
  workerKey,
  workersKey,
} from './worker-entry.ts';

/**
 * An item is claimed when it has run for this long, so that short work costs no entry and no return. With CLAIM_INTERVAL_MS less than a third of
 * UNCLAIMED_WAIT_MS, after which an item that is not claimed takes its first keep-alive.
 */
const CLAIM_AFTER_MS = 400;
/** Minimum time between two entries of a worker. */
const CLAIM_INTERVAL_MS = 250;
/** An entry may name an item for this long after the item has ended. */
const RELEASE_AFTER_MS = 1_000;
/** Wait after an entry that could not be written. */
const RETRY_MS = 1_000;
/** Buckets remove old entries. An entry is written again at this age. */
const REWRITE_MS = 60 * 60_000;

/** The content of a message at the subject of a worker. */
const ASKED = '';
const CHECK = 'check';
const PRESENT = '+';

export type Answer = 'present' | 'gone';

type WorkerPresenceOptions = {
  role: Role;
  bucket: KeyValue<WorkerEntry>;
  running: RunningItems;
  /** Another worker of the role has started. */
  onSibling: (worker: string) => void;
  /** The answer of a sibling, or of the server in its place. */
  onAnswer: (worker: string, answer: Answer) => void;
};

/**
 * One worker as its siblings see it: it answers them, and its entry names the items that it runs. A worker whose entry was taken by
 * a sibling was counted as dead. It has lost the items in it, and continues as a new worker.
 */
export class WorkerPresence {
  readonly #connection: Connection;
  readonly #options: WorkerPresenceOptions;
  readonly #ended: AbortSignal;
  #worker = randomUUID();
  /** Ends the subscriptions under the id of this worker. */
  #life = new AbortController();
  #revision: number | undefined;
  /** The deliveries in the stored entry. */
  #stored: readonly Delivery[] = [];
  #writtenAtMs = Number.NEGATIVE_INFINITY;
  #timer: NodeJS.Timeout | undefined;
  #dueAtMs = Number.POSITIVE_INFINITY;
  #writing: Promise<void> | undefined;
  #isReachable = false;

  constructor(connection: Connection, options: WorkerPresenceOptions, ended: AbortSignal) {
    this.#connection = connection;
    this.#options = options;
    this.#ended = ended;
  }

  get worker(): string {
    return this.#worker;
  }

  /** Begins to answer. The entry is written when a message from this worker to itself has arrived, which proves its permissions. */
  start(): void {
    const { role, onSibling } = this.#options;
    new LastingSubscription(this.#connection, this.#subject(workersSubject(role)), {
      onMsg: msg => onSibling(msg.string()),
      signal: this.#ended,
    });
    const unlisten = this.#connection.onReconnect(() => {
      this.ask(this.#worker);
      void this.#check();
    });
    this.#ended.addEventListener(
      'abort',
      () => {
        unlisten();
        clearTimeout(this.#timer);
        this.#life.abort();
      },
      { once: true },
    );
    this.#begin();
  }

  /** Asks another worker, or this one, whether it is present. */
  ask(worker: string): void {
    const { role } = this.#options;
    const answerTo = this.#subject(workerAnswerSubject(role, this.#worker, worker));
    this.#connection.send(this.#subject(workerSubject(role, worker)), ASKED, answerTo);
  }

  /** Makes another worker check whether it still has its entry. */
  check(worker: string): void {
    this.#connection.send(this.#subject(workerSubject(this.#options.role, worker)), CHECK);
  }

  /** The items that run have changed. */
  changed(): void {
    this.#writeWithin(Math.max(0, this.#untilClaimMs() ?? RELEASE_AFTER_MS));
  }

  /** Whether a sibling has claimed a later delivery of an item. Its claim then holds, whatever this worker has claimed. */
  async isClaimedElsewhere(delivery: Delivery): Promise<boolean> {
    const entries = await this.#options.bucket.under(workersKey(this.#options.role));
    return entries.some(({ value }) => isWorkerEntry(value) && namesLater(value, delivery));
  }

  /** Removes the entry. Nothing runs any more. */
  async leave(): Promise<void> {
    clearTimeout(this.#timer);
    this.#dueAtMs = Number.NEGATIVE_INFINITY;
    await this.#writing;
    if (this.#revision !== undefined && this.#connection.connected)
      await this.#options.bucket.delete(workerKey(this.#options.role, this.#worker)).catch(() => {});
  }

  #begin(): void {
    const { role } = this.#options;
    const signal = this.#life.signal;
    const subject = this.#subject(workerSubject(role, this.#worker));
    const onDenied = () => {
      this.#isReachable = false;
    };
    new LastingSubscription(this.#connection, subject, { onMsg: msg => this.#onMsg(msg), onDenied, signal });
    const onPermitted = () => this.ask(this.#worker);
    const answers = { onMsg: (msg: Msg) => this.#onAnswer(msg), onDenied, onPermitted, signal };
    new LastingSubscription(this.#connection, this.#subject(workerAnswerSubject(role, this.#worker, '*')), answers);
    this.ask(this.#worker);
  }

  #onMsg(msg: Msg): void {
    const content = msg.string();
    if (content === CHECK) void this.#check();
    const answers = this.#subject(workersSubject(this.#options.role));
    if (content === ASKED && msg.reply?.startsWith(`${answers}.`)) this.#connection.send(msg.reply, PRESENT);
  }

  #onAnswer(msg: Msg): void {
    const worker = msg.subject.slice(msg.subject.lastIndexOf('.') + 1);
    const isGone = headersOf(msg)?.code === 503;
    if (worker === this.#worker && !isGone && !this.#isReachable) {
      this.#isReachable = true;
      this.#writeWithin(0);
    }
    this.#options.onAnswer(worker, isGone ? 'gone' : 'present');
  }

  /** Milliseconds until the oldest item is due that is not claimed: negative if it was due before, undefined without one. */
  #untilClaimMs(): number | undefined {
    const sinceMs = this.#options.running.unclaimedSinceMs();
    return sinceMs === undefined ? undefined : sinceMs + CLAIM_AFTER_MS - performance.now();
  }

  #writeWithin(ms: number): void {
    if (this.#ended.aborted || !this.#isReachable || this.#writing !== undefined) return;
    const nowMs = performance.now();
    const dueAtMs = Math.max(nowMs + ms, this.#writtenAtMs + CLAIM_INTERVAL_MS);
    if (dueAtMs >= this.#dueAtMs) return;
    clearTimeout(this.#timer);
    this.#dueAtMs = dueAtMs;
    this.#timer = setTimeout(() => this.#write(), dueAtMs - nowMs);
  }

  #write(): void {
    this.#dueAtMs = Number.POSITIVE_INFINITY;
    const { running } = this.#options;
    const deliveries = running.claimable(CLAIM_AFTER_MS, CLAIMED_ITEMS_MAX);
    const isOld = performance.now() - this.#writtenAtMs >= REWRITE_MS;
    if (!isOld && this.#revision !== undefined && sameDeliveries(deliveries, this.#stored)) {
      running.claimed(deliveries);
      const dueMs = this.#untilClaimMs() ?? REWRITE_MS;
      this.#writeWithin(dueMs > 0 ? dueMs : RETRY_MS);
      return;
    }
    this.#writing = this.#store(deliveries).then(waitMs => {
      this.#writing = undefined;
      this.#writtenAtMs = performance.now();
      if (waitMs !== undefined) this.#writeWithin(waitMs);
      else this.changed();
    });
  }

  /** Resolves with the wait before the next try if it failed. Never rejects. */
  async #store(deliveries: readonly Delivery[]): Promise<number | undefined> {
    const { role, bucket, running } = this.#options;
    const key = workerKey(role, this.#worker);
    const entry = workerEntry(deliveries);
    const isFirst = this.#revision === undefined;
    try {
      this.#revision = await (this.#revision === undefined
        ? bucket.create(key, entry)
        : bucket.update(key, entry, this.#revision));
    } catch (error) {
      if (!(error instanceof LogConflict)) return RETRY_MS;
      const stored = await this.#readOwn().catch(() => 'unknown' as const);
      if (stored === 'unknown') return RETRY_MS;
      if (stored === undefined) this.#lose();
      else this.#revision = stored;
      return 0;
    }
    this.#stored = deliveries;
    running.claimed(deliveries);
    if (isFirst) this.#connection.send(this.#subject(workersSubject(role)), this.#worker);
    return undefined;
  }

  /** The revision of this worker's entry; undefined if a sibling has taken it. */
  async #readOwn(): Promise<number | undefined> {
    const { role, bucket } = this.#options;
    const entry = await bucket.get(workerKey(role, this.#worker));
    return entry === undefined || entry.value.takenBy !== undefined ? undefined : entry.revision;
  }

  /** Finds out whether a sibling has taken the entry. */
  async #check(): Promise<void> {
    const { running } = this.#options;
    await this.#writing;
    const [worker, revision] = [this.#worker, this.#revision];
    if (revision === undefined || this.#ended.aborted) return;
    try {
      const stored = await this.#readOwn();
      // An entry that is being written fails by itself if a sibling has taken it.
      if (this.#worker !== worker || this.#revision !== revision || this.#writing !== undefined) return;
      if (stored === undefined) this.#lose();
      // A server that was killed may have forgotten how long the items are claimed.
      else await running.renew();
    } catch {
      // The next write of the entry, or the next reconnect, detects it.
    }
  }

  #lose(): void {
    this.#options.running.loseClaimed();
    this.#life.abort();
    this.#life = new AbortController();
    this.#worker = randomUUID();
    this.#revision = undefined;
    this.#stored = [];
    this.#isReachable = false;
    if (!this.#ended.aborted) this.#begin();
  }

  #subject(subject: string): string {
    return this.#connection.names.subject(subject);
  }
}

function sameDeliveries(some: readonly Delivery[], others: readonly Delivery[]): boolean {
  return some.length === others.length && some.every((delivery, index) => delivery === others[index]);
}
