import type { Role } from '@hopline/events';
import { type KeyValue, LogConflict } from '@hopline/log';
import type { Connection } from './connection.ts';
import { NAK } from './item-replies.ts';
import { reportFailedCheck } from './periodic-check.ts';
import { retry } from './retry.ts';
import { ackSubjects, isWorkerEntry, type WorkerEntry, workerKey, workersKey } from './worker-entry.ts';
import type { Answer, WorkerPresence } from './worker-presence.ts';

/** Interval at which a worker asks the next one of its role. */
const ASK_MS = 500;
/** Shorter interval while a worker that was asked has not answered. */
const ASK_AGAIN_MS = 250;
/** A worker without a connection for this long is dead. Longer than a reconnect to another server of a cluster takes. */
const GONE_MS = 1_000;
/** Interval at which the list of workers is read again, because the message that a worker publishes when it starts may be lost. */
const LIST_MS = 10 * 60_000;
/** Longest wait of a worker that knows no sibling. */
const IDLE_MS = 60_000;
/** A worker that has taken over another's entry also counts as dead if it has not queued the items within this time. */
const TAKE_MS = 10_000;
const NAK_TIMEOUT_MS = 2_000;
const NAKS_AT_ONCE_MAX = 256;

/** Maximum number of siblings that a worker knows. The items of a dead worker beyond that are delivered again when its claim ends. */
const SIBLINGS_MAX = 4_096;
const WORKER = /^[0-9a-f-]{36}$/;

type Sibling = {
  /** The answer to the last question. */
  answer: Answer | undefined;
  asked: boolean;
  /** `goneMs`: for how long the server has answered that the worker has no connection. `silentMs`: for how long no answer has come. */
  goneMs: number | undefined;
  silentMs: number;
  /** When this worker first saw that the entry was taken over, and the entry's revision at that time. */
  taken?: { revision: number; seenAtMs: number };
};

type DeadWorkersOptions = {
  role: Role;
  bucket: KeyValue<WorkerEntry>;
  ackWaitMs: number;
  presence: WorkerPresence;
};

/**
 * Finds dead workers of the same role and queues their items again. Each worker asks the worker whose id follows its own and, if that one
 * is absent, the one after it. So each worker is asked by one sibling.
 */
export class DeadWorkers {
  readonly #connection: Connection;
  readonly #options: DeadWorkersOptions;
  readonly #ended: AbortSignal;
  readonly #siblings = new Map<string, Sibling>();
  #isSelfPresent = false;
  #listedAtMs = Number.NEGATIVE_INFINITY;
  #askedAtMs = performance.now();
  #judgesAtMs = Number.NEGATIVE_INFINITY;
  #timer: NodeJS.Timeout | undefined;
  #busy = false;

  constructor(connection: Connection, options: DeadWorkersOptions, ended: AbortSignal) {
    this.#connection = connection;
    this.#options = options;
    this.#ended = ended;
  }

  start(): void {
    // After this worker reconnects, the others may still be reconnecting.
    const unlisten = this.#connection.onReconnect(() => {
      this.#judgesAtMs = performance.now() + this.#options.ackWaitMs;
      this.#listedAtMs = Number.NEGATIVE_INFINITY;
    });
    this.#ended.addEventListener(
      'abort',
      () => {
        unlisten();
        clearTimeout(this.#timer);
      },
      { once: true },
    );
    void this.#round();
  }

  /** A worker of the role has started. */
  onSibling(worker: string): void {
    if (worker === this.#options.presence.worker || !WORKER.test(worker)) return;
    this.#add(worker);
    this.#later(0);
  }

  onAnswer(worker: string, answer: Answer): void {
    if (worker === this.#options.presence.worker) this.#isSelfPresent = answer === 'present';
    const sibling = this.#siblings.get(worker);
    if (sibling === undefined) return;
    sibling.answer = answer;
    if (answer === 'present' || sibling.goneMs !== undefined) return;
    sibling.goneMs = 0;
    this.#later(ASK_AGAIN_MS);
  }

  #later(ms: number): void {
    if (this.#ended.aborted || this.#busy) return;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => void this.#round(), ms);
  }

  async #round(): Promise<void> {
    this.#busy = true;
    const nowMs = performance.now();
    // Answers could not arrive while this process was suspended or had no connection, so that time does not count.
    const elapsedMs = Math.min(nowMs - this.#askedAtMs, ASK_MS);
    this.#askedAtMs = nowMs;
    const onError = (error: unknown) => reportFailedCheck(this.#connection, 'dead workers', error);
    if (this.#connection.connected) {
      for (const sibling of this.#siblings.values()) this.#count(sibling, nowMs >= this.#judgesAtMs ? elapsedMs : 0);
      for (const [worker, sibling] of this.#siblings) if (this.#isDead(sibling)) await this.#take(worker, sibling).catch(onError);
      await this.#list().catch(onError);
    }
    this.#busy = false;
    const areAllPresent = this.#ask();
    this.#later(this.#siblings.size === 0 ? IDLE_MS : areAllPresent ? ASK_MS : ASK_AGAIN_MS);
  }

  #count(sibling: Sibling, elapsedMs: number): void {
    if (!sibling.asked) return;
    sibling.goneMs = sibling.answer === 'gone' ? (sibling.goneMs ?? 0) + elapsedMs : undefined;
    if (sibling.answer === 'present') sibling.silentMs = 0;
    // While this worker does not even receive its own answer, it cannot know whether the other one is silent.
    else if (sibling.answer === undefined && this.#isSelfPresent) sibling.silentMs += elapsedMs;
  }

  #isDead({ goneMs, silentMs }: Sibling): boolean {
    return (goneMs !== undefined && goneMs >= GONE_MS) || silentMs >= this.#options.ackWaitMs;
  }

  /**
   * Asks the siblings that follow this worker in the ring of ids, up to the first that is present. Returns whether all of them were
   * present.
   */
  #ask(): boolean {
    const { presence } = this.#options;
    const ids = [...this.#siblings.keys()].sort();
    const next = ids.findIndex(id => id > presence.worker);
    const ring = next < 0 ? ids : [...ids.slice(next), ...ids.slice(0, next)];
    let isFound = false;
    let suspects = 0;
    for (const id of ring) {
      const sibling = this.#siblings.get(id)!;
      sibling.asked = !isFound;
      if (isFound) continue;
      isFound = sibling.answer === 'present';
      suspects += isFound ? 0 : 1;
      sibling.answer = undefined;
      presence.ask(id);
    }
    this.#isSelfPresent = false;
    if (suspects > 0) presence.ask(presence.worker);
    return suspects === 0;
  }

  async #list(): Promise<void> {
    const { role, bucket, presence } = this.#options;
    if (performance.now() - this.#listedAtMs < LIST_MS) return;
    this.#listedAtMs = performance.now();
    // A worker that starts during the read is missing from the answer.
    const known = [...this.#siblings.keys()];
    const entries = await bucket.under(workersKey(role)).catch(error => {
      // The next round reads them.
      this.#listedAtMs = Number.NEGATIVE_INFINITY;
      throw error;
    });
    const found = new Set(
      entries.filter(({ value }) => isWorkerEntry(value)).map(({ key }) => key.slice(key.lastIndexOf('.') + 1)),
    );
    found.delete(presence.worker);
    for (const worker of known) if (!found.has(worker)) this.#siblings.delete(worker);
    for (const worker of found) this.#add(worker);
  }

  #add(worker: string): void {
    const isKnown = this.#siblings.has(worker) || this.#siblings.size >= SIBLINGS_MAX;
    if (!isKnown) this.#siblings.set(worker, { answer: undefined, asked: false, goneMs: undefined, silentMs: 0 });
  }

  /**
   * Queues the items of a dead worker again. The revision of its entry decides which sibling does so. If the worker is alive after all, the
   * revision shows it that it has lost its items.
   */
  async #take(worker: string, sibling: Sibling): Promise<void> {
    const { role, bucket, presence } = this.#options;
    const key = workerKey(role, worker);
    const entry = await bucket.get(key);
    if (entry === undefined || !isWorkerEntry(entry.value)) return void this.#siblings.delete(worker);
    if (entry.value.takenBy !== undefined && !isAbandoned(sibling, entry.revision)) return;
    try {
      await bucket.update(key, { ...entry.value, takenBy: presence.worker }, entry.revision);
    } catch (error) {
      if (!(error instanceof LogConflict)) throw error;
      // Either the worker is alive and has written its entry, or another sibling was faster.
      sibling.goneMs = undefined;
      sibling.silentMs = 0;
      return;
    }
    const subjects = ackSubjects(entry.value, this.#connection.names.workStream, role);
    for (let from = 0; from < subjects.length; from += NAKS_AT_ONCE_MAX)
      await Promise.all(subjects.slice(from, from + NAKS_AT_ONCE_MAX).map(subject => this.#nak(subject)));
    presence.check(worker);
    this.#siblings.delete(worker);
    await bucket.delete(key);
    this.#connection.onEvent({ type: 'worker-dead', role, items: subjects.length });
  }

  async #nak(subject: string): Promise<void> {
    const nak = () => this.#connection.nc.request(subject, NAK, { timeout: NAK_TIMEOUT_MS });
    await retry(this.#connection, 'an item of a dead worker', nak, { timeoutMs: TAKE_MS / 2 });
  }
}

/** Whether the sibling that took this entry has stopped working on it. */
function isAbandoned(sibling: Sibling, revision: number): boolean {
  if (sibling.taken?.revision !== revision) sibling.taken = { revision, seenAtMs: performance.now() };
  return performance.now() - sibling.taken.seenAtMs >= TAKE_MS;
}
