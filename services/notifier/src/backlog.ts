import { type DialectName, isTerminal } from '@hopline/a2a';
import { eventOf, type Fact, isSameOwner, isVisible, type Owner, type VisibleFact } from '@hopline/events';
import { type FactLog, fromStart, type StoredFacts, startSeqOf } from '@hopline/log';
import { TaskViewBuilder } from '@hopline/task';
import { joinDeliveries, mergeDeliveries, type PendingDelivery } from './pending-delivery.ts';
import { NOTIFICATION_FORMS } from './webhook-body.ts';

/**
 * Bytes of events buffered for one slow webhook, above which reading pauses. It is larger than a merged delivery, so that the next delivery
 * is ready in time.
 */
export const BACKLOG_BYTES_MAX = 256 * 1024;
/**
 * Like BACKLOG_BYTES_MAX, for all webhooks of a process together. Above it, a webhook reads on only when it has no event left. In memory an
 * event takes two to three times its bytes, and the container of the chart has 512 MiB.
 */
const BACKLOGS_BYTES_MAX = 32 * 1024 * 1024;
/** Overhead counted for each event in addition to its content. */
const EVENT_BYTES = 512;

type BacklogStart = {
  taskId: string;
  dialect: DialectName;
  /** Events up to this generation have been delivered. `seq`: sequence of the record with the last one (0: unknown). */
  generation: number;
  seq: number;
  /** Owner of the webhook's configuration; absent for an anonymous one. */
  owner?: Owner | undefined;
  /**
   * Set if an earlier attempt contained all events up to this generation. That attempt is repeated unchanged, so these events are read in
   * any case.
   */
  sending?: number | undefined;
};

/** Bytes of all backlogs of a process. */
export class BacklogBudget {
  readonly #bytesMax: number;
  bytes = 0;

  constructor(bytesMax = BACKLOGS_BYTES_MAX) {
    this.#bytesMax = bytesMax;
  }

  get isSpent(): boolean {
    return this.bytes >= this.#bytesMax;
  }
}

/** The events of a task that wait for one webhook, in order. They are read ahead from the log, within limits. */
export class Backlog {
  readonly #start: BacklogStart;
  readonly #facts: FactLog;
  readonly #signal: AbortSignal;
  readonly #budget: BacklogBudget;
  readonly #artifacts = new Map<string, number>();
  #deliveries: PendingDelivery[] = [];
  #bytes = 0;
  /** The folded task, for dialects whose notifications contain the whole task. */
  readonly #task: TaskViewBuilder | undefined;
  #isEnded = false;
  #isOtherOwner = false;
  #error: unknown;
  #changed = Promise.withResolvers<void>();

  constructor(facts: FactLog, start: BacklogStart, signal: AbortSignal, budget: BacklogBudget) {
    this.#facts = facts;
    this.#start = start;
    this.#signal = signal;
    this.#budget = budget;
    if (NOTIFICATION_FORMS[start.dialect].content === 'task') this.#task = new TaskViewBuilder();
    signal.addEventListener('abort', () => this.#stop(), { once: true });
    this.#read().then(
      () => this.#notify(),
      error => {
        this.#error = error;
        this.#notify();
      },
    );
  }

  /**
   * Resolves with `ready` when a delivery can be taken and all events up to generation `upTo`, if given, are read;
   * `ended` when the task is over and everything was taken; `other-owner` when the task belongs to another owner; `idle` when
   * no event arrived for `idleMs`; `stopped` when the signal aborted. Rejects with LogUnavailable.
   */
  async ready(upTo: number | undefined, idleMs: number): Promise<'ready' | 'ended' | 'other-owner' | 'idle' | 'stopped'> {
    const until = performance.now() + idleMs;
    for (;;) {
      if (this.#error !== undefined) throw this.#error;
      if (this.#signal.aborted) return 'stopped';
      if (this.#isOtherOwner) return 'other-owner';
      const newest = this.#deliveries.at(-1)?.generation ?? 0;
      if (this.#deliveries.length > 0 && (upTo === undefined || newest >= upTo || this.#isFull || this.#isEnded)) return 'ready';
      if (this.#isEnded) return 'ended';
      const leftMs = until - performance.now();
      if (leftMs <= 0) return 'idle';
      await this.#changeWithin(leftMs);
    }
  }

  /**
   * The next delivery: events up to generation `upTo` if given, otherwise as many as one delivery may hold. Undefined
   * when none waits.
   */
  take(upTo?: number): PendingDelivery | undefined {
    this.#completeNewest();
    const [oldest] = this.#deliveries;
    if (oldest === undefined) return undefined;
    let taken: PendingDelivery = oldest;
    let count = 1;
    for (const next of this.#deliveries.slice(1)) {
      const merged = upTo !== undefined && next.generation > upTo ? undefined : mergeDeliveries(taken, next);
      if (merged === undefined) break;
      taken = merged;
      count += 1;
    }
    for (const removed of this.#deliveries.splice(0, count)) this.#count(-removed.bytes);
    this.#notify();
    return taken;
  }

  get #isFull(): boolean {
    if (this.#bytes >= BACKLOG_BYTES_MAX) return true;
    const newest = this.#deliveries.at(-1);
    return newest !== undefined && newest.generation >= (this.#start.sending ?? 0) && this.#budget.isSpent;
  }

  /** Counts nothing once the signal has aborted. */
  #count(bytes: number): void {
    if (this.#signal.aborted) return;
    this.#bytes += bytes;
    this.#budget.bytes += bytes;
  }

  #stop(): void {
    this.#budget.bytes -= this.#bytes;
    this.#notify();
  }

  async #read(): Promise<void> {
    const { taskId, dialect, seq } = this.#start;
    const last = await this.#facts.last(taskId);
    const before = last === undefined ? 0 : startSeqOf(last) - 1;
    const isWhole = NOTIFICATION_FORMS[dialect].needsHistory || !(await this.#isStored(seq, before));
    const after = isWhole ? before : seq - 1;
    for await (const stored of fromStart(await this.#facts.follow(taskId, after, this.#signal))) {
      // A client that chooses task ids may configure a webhook before the task exists (S3-23), and another client may then create that
      // task.
      this.#isOtherOwner = !isSameOwner(this.#start.owner, stored.record.aggregate.owner);
      if (this.#isOtherOwner) return;
      this.#add(stored);
      this.#isEnded = isTerminal(stored.record.aggregate.state);
      this.#notify();
      if (this.#isEnded) return;
      while (this.#isFull && !this.#signal.aborted) await this.#changed.promise;
    }
  }

  /**
   * Whether the log still has the newest delivered event at its sequence. After a loss of records it does not, and events that are folded
   * again may have lower sequences.
   */
  async #isStored(seq: number, before: number): Promise<boolean> {
    if (seq <= before) return false;
    const { generation, taskId } = this.#start;
    for await (const stored of fromStart(this.#facts.read(taskId, seq)))
      return stored.seq === seq && stored.record.facts.some(fact => isVisible(fact) && fact.generation === generation);
    return false;
  }

  #add(stored: StoredFacts): void {
    const { record } = stored;
    for (const fact of record.facts) {
      const joined = this.#joinedBy(fact);
      if (joined === undefined) this.#completeNewest();
      this.#task?.add({ ...record, facts: [fact] });
      if (!isVisible(fact)) continue;
      const artifactIndex = this.#indexOf(fact);
      if (fact.generation <= this.#start.generation) continue;
      const delivery = deliveryOf(fact, stored, artifactIndex);
      if (joined === undefined) this.#deliveries.push(delivery);
      else {
        this.#deliveries[this.#deliveries.length - 1] = joinDeliveries(joined, delivery);
        this.#count(-joined.bytes);
      }
      this.#count(delivery.bytes);
    }
  }

  /**
   * The newest delivery, if the fact belongs to it. A whole task is kept only for each delivery. Keeping one for each fact would be
   * quadratic for a task with many artifacts.
   */
  #joinedBy(fact: Fact): PendingDelivery | undefined {
    const newest = this.#deliveries.at(-1);
    if (this.#task === undefined || newest === undefined || newest.task !== undefined) return undefined;
    const isRun = fact.kind === 'artifact.updated' && 'artifactUpdate' in newest.event;
    return isRun && newest.generation !== this.#start.sending ? newest : undefined;
  }

  #completeNewest(): void {
    const newest = this.#deliveries.at(-1);
    if (this.#task !== undefined && newest !== undefined) newest.task ??= this.#task.view?.task;
  }

  #indexOf(fact: VisibleFact): number | undefined {
    if (fact.kind !== 'artifact.updated') return undefined;
    const { artifactId } = fact.event.artifactUpdate.artifact;
    const known = this.#artifacts.get(artifactId);
    if (known !== undefined) return known;
    this.#artifacts.set(artifactId, this.#artifacts.size);
    return this.#artifacts.size - 1;
  }

  #notify(): void {
    const { resolve } = this.#changed;
    this.#changed = Promise.withResolvers();
    resolve();
  }

  async #changeWithin(ms: number): Promise<void> {
    const { promise } = this.#changed;
    // #notify must also replace the promise, because a loop that awaits a resolved promise never lets a timer run.
    const timer = setTimeout(() => this.#notify(), ms);
    await promise;
    clearTimeout(timer);
  }
}

function deliveryOf(fact: VisibleFact, { seq, trace }: StoredFacts, artifactIndex: number | undefined): PendingDelivery {
  const event = eventOf(fact);
  const state = 'statusUpdate' in event ? event.statusUpdate.status.state : undefined;
  return {
    event,
    generation: fact.generation,
    seq,
    count: 1,
    at: fact.at,
    trace,
    lastTrace: trace,
    artifactIndex,
    bytes: EVENT_BYTES + contentBytes(event),
    terminal: state !== undefined && isTerminal(state),
  };
}

function contentBytes(event: ReturnType<typeof eventOf>): number {
  return 'artifactUpdate' in event ? JSON.stringify(event.artifactUpdate.artifact.parts).length : JSON.stringify(event).length;
}
