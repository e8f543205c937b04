import { isVisible } from '@hopline/events';
import { HistoryLost } from './errors.ts';
import type { FollowStart, StoredFacts } from './fact-log.ts';

/**
 * Splices stored and live records of one task: subscribe, read the history, then yield live records, each once and in order. The algorithm
 * does not depend on the broker. A live message names its predecessor on the task's subject, which reveals a missed message. Nothing
 * reveals that the last message was missed, so the tail is checked after a quiet time and after a reconnect. If the source can push tails,
 * a quiet follower has its tail pushed instead of checking it.
 *
 * A log that was restored to an earlier state reuses its sequences. A record whose predecessor is older than a yielded one proves a loss.
 * An older tail, or another record at the sequence of the newest yielded one, only hints at a loss, because the tail may come from a
 * lagging replica. The follower then asks the leader. If records were lost, it throws HistoryLost.
 */
export interface FollowSource {
  /** Resolves when the subscription is live. Calls `onReconnect` when messages may have been missed. */
  subscribe(onLive: (live: LiveRecord) => void, onReconnect: () => void): Promise<() => void>;
  /**
   * Stored records from log sequence `from` up to the newest one at the time of the call. Returns the sequence up to which all records were
   * read.
   */
  read(from: number): AsyncGenerator<StoredFacts, number>;
  /** The newest record, or undefined when there is none. May lag behind the leader. */
  tail(): Promise<Tail | undefined>;
  /**
   * Whether the task's record at `seq` was lost: retention has not removed it, but it is gone, or the record there has an id other than
   * `id`. Without `id`, any record of the task counts as the same. Reads from the leader.
   */
  isLost(seq: number, id: string | undefined): Promise<boolean>;
  /**
   * Calls `onTail` with the newest record, read from the leader, once the push is established, and then for each later record, shortly
   * after its live message. `onLost`: records may be missed until `onTail` is called again. Returns a function that ends the push.
   * Absent if the source cannot push; its followers then check the tail.
   */
  pushTail?(onTail: (tail: Tail) => void, onLost: () => void): () => void;
}

/**
 * The newest record of a task. `seq` is 0 if the task has no records; `startSeq` is 0 if it is unknown. `id`: that of its append, if it has one.
 */
export type Tail = { seq: number; startSeq: number; id?: string };

export type LiveRecord = {
  seq: number;
  /** Log sequence of the previous record on the task's subject, if that is still stored; otherwise 0. */
  last: number;
  /**
   * The records after this sequence and up to `last` only continue text, and were not sent because the follower skips such records. Absent:
   * the source sends every record.
   */
  textAfter?: number | undefined;
  /** Size of the payload. */
  bytes: number;
  /** The record only adds text to open artifacts. */
  continuesText: boolean;
  /** Undefined when the payload is not a record. */
  decode(): StoredFacts | undefined;
  /**
   * Id of the append. It is read only for the newest record of a task that has become quiet, so that it costs nothing while tokens stream.
   */
  id(): string | undefined;
};

export type FollowOptions = {
  /** Quiet time before the tail is checked. */
  tailCheckMs?: number;
  bufferRecordsMax?: number;
  bufferBytesMax?: number;
  /** Called for each gap that is detected, and for each buffer overflow. */
  onReread?: (why: RereadReason) => void;
  /**
   * Called with each error of a check of the tail, except HistoryLost, which ends the follower. The next check does the work of the failed
   * one.
   */
  onCheckFailed?: (error: unknown) => void;
};

export type RereadReason = 'gap' | 'tail' | 'overflow';

export const TAIL_CHECK_MS = 2_000;
/**
 * Number of consecutive tail checks without a live record after which a follower has its tail pushed. For shorter pauses, polling is
 * cheaper.
 */
export const PUSH_AFTER_CHECKS = 3;
/**
 * Quiet time after which a follower that began with `{ newest }` reads the log. Most tasks receive a record sooner and never need this
 * read, which would compete with the delivery of the task's first work.
 */
export const NEWEST_CHECK_MS = 250;
/** Number of live records buffered for a slow reader. On overflow they are dropped, and read from the log instead. */
export const FOLLOW_BUFFER_RECORDS_MAX = 256;
export const FOLLOW_BUFFER_BYTES_MAX = 1024 * 1024;
/** More events than a task can have. A larger gap between generations means that records were lost, not that retention removed them. */
const TASK_EVENTS_MAX = 1_000_000_000;
/** Random fraction of the quiet time, so that thousands of followers do not check at the same moment. */
const TAIL_CHECK_JITTER = 0.25;

/** Same contract as `FactLog.follow`. */
export async function follow(
  source: FollowSource,
  after: FollowStart,
  signal: AbortSignal,
  options: FollowOptions = {},
): Promise<AsyncIterable<StoredFacts>> {
  const follower = new Follower(source, after, signal, options);
  await follower.open();
  return follower.records();
}

class Follower {
  readonly #source: FollowSource;
  readonly #signal: AbortSignal;
  readonly #tailCheckMs: number;
  readonly #recordsMax: number;
  readonly #bytesMax: number;
  readonly #onReread: (why: RereadReason) => void;
  readonly #onCheckFailed: (error: unknown) => void;
  /** All records up to this log sequence were yielded or skipped for good. */
  #seen: number;
  /** Sequence of the newest record of the task that the log is known to have had; 0 if there is none. */
  #known: number;
  /** Id of the record at `#known`, or the live record that has it; undefined if neither is known. */
  #knownId: string | LiveRecord | undefined;
  readonly #skipsText: boolean;
  /** Generation after the newest yielded record; undefined after a skipped record. */
  #generation: number | undefined;
  /** Live records up to this sequence may still arrive although they were already read from the log. */
  #readTo = 0;
  /** The log may hold records after `#seen` that are not in the buffer. */
  #isBehind: boolean;
  /** No live record has yet shown that nothing was stored between `newest` and the subscription. */
  #isUnconfirmed: boolean;
  /**
   * Start of the task; 0 if unknown, or once a record was seen. With it, a read takes 12 ms instead of 150 ms in a log of a million
   * messages.
   */
  #startSeq = 0;
  #buffer: LiveRecord[] = [];
  #bufferBytes = 0;
  #checkTail = false;
  /** Sequence of a record that the log holds, as reported by a check or a push of the tail. */
  #newest = 0;
  /** A record was passed over since the wait for the next one began, so the task was not quiet. */
  #hasSkipped = false;
  /** Checks of the tail after a quiet time since the last live record. A record found by a check does not reset the count. */
  #quietChecks = 0;
  /** The source reports each record of the task, so silence means that none was stored. */
  #isPushed = false;
  /** Sequence of the tail that was pushed last. */
  #pushed = 0;
  #stopPush: (() => void) | undefined;
  #wake: (() => void) | undefined;
  #unsubscribe: (() => void) | undefined;
  /** Checked for each record, because `aborted` of a combined signal walks over all of its sources. */
  #isClosed = false;

  constructor(source: FollowSource, after: FollowStart, signal: AbortSignal, options: FollowOptions) {
    this.#source = source;
    this.#signal = signal;
    this.#tailCheckMs = options.tailCheckMs ?? TAIL_CHECK_MS;
    this.#recordsMax = options.bufferRecordsMax ?? FOLLOW_BUFFER_RECORDS_MAX;
    this.#bytesMax = options.bufferBytesMax ?? FOLLOW_BUFFER_BYTES_MAX;
    this.#onReread = options.onReread ?? (() => {});
    this.#onCheckFailed = options.onCheckFailed ?? (() => {});
    this.#isUnconfirmed = typeof after === 'object';
    this.#skipsText = typeof after === 'object' && after.skipsText === true;
    this.#isBehind = typeof after === 'number';
    if (after === 'new') this.#seen = 0;
    else this.#seen = typeof after === 'object' ? after.newest : after;
    this.#known = typeof after === 'object' ? after.newest : 0;
    this.#knownId = typeof after === 'object' ? after.id : undefined;
  }

  async open(): Promise<void> {
    if (this.#signal.aborted) return this.#close();
    this.#signal.addEventListener('abort', this.#close, { once: true });
    const unsubscribe = await this.#source
      .subscribe(
        live => this.#receive(live),
        () => this.#reconnected(),
      )
      .catch(error => {
        this.#signal.removeEventListener('abort', this.#close);
        throw error;
      });
    this.#unsubscribe = unsubscribe;
    if (this.#signal.aborted) this.#close();
  }

  async *records(): AsyncGenerator<StoredFacts, void> {
    try {
      while (!this.#isClosed) {
        const live = this.#isBehind ? undefined : this.#shift();
        if (this.#isBehind) {
          yield* this.#catchUp();
        } else if (live) {
          const record = this.#accept(live);
          if (record) yield this.#noted(record);
        } else if (this.#checkTail) {
          await this.#lookUpTail();
        } else if (this.#newest > this.#seen) {
          this.#reread('tail');
        } else {
          await this.#wait();
        }
      }
    } finally {
      this.#close();
    }
  }

  #accept(live: LiveRecord): StoredFacts | undefined {
    if (live.seq <= this.#seen) {
      // A record up to #readTo had been read from the log before its live message arrived. The log reuses its sequences if a later record is below
      // #known, or if the record at #known differs from the one that was seen there. A check of the tail confirms it.
      if (live.seq > this.#readTo && live.seq < this.#known) this.#checkTail = true;
      else if (live.seq === this.#known && this.#isOther(live.id())) this.#checkTail = true;
      return undefined;
    }
    if (live.last > 0 && live.last < this.#known) throw lost();
    if (live.last > this.#seen && !this.#hasSeenUpToText(live)) {
      // Only the task's first record names 0.
      this.#startSeq ||= live.decode()?.record.startSeq ?? 0;
      this.#reread('gap');
      return undefined;
    }
    this.#passed(live);
    if (this.#skipsText && live.continuesText) {
      this.#generation = undefined;
      return undefined;
    }
    return live.decode();
  }

  /** Passes over a text-only record that directly follows the newest one, without waking the reader. */
  #skips(live: LiveRecord): boolean {
    const { continuesText, seq, last } = live;
    const isNext = last > 0 && seq > last && seq > this.#seen && (last === this.#seen || this.#hasSeenUpToText(live));
    if (!this.#skipsText || !continuesText || !isNext || this.#buffer.length > 0 || this.#isBehind) return false;
    this.#passed(live);
    this.#generation = undefined;
    this.#hasSkipped = true;
    return true;
  }

  /** Whether the records that are missing before a live record only continue text. */
  #hasSeenUpToText({ last, textAfter }: LiveRecord): boolean {
    return this.#skipsText && textAfter !== undefined && textAfter <= this.#seen && this.#seen <= last;
  }

  /** The live record follows everything that was seen. */
  #passed(live: LiveRecord): void {
    this.#seen = live.seq;
    this.#known = live.seq;
    this.#knownId = live;
    this.#isUnconfirmed = false;
    this.#quietChecks = 0;
  }

  async *#catchUp(): AsyncGenerator<StoredFacts, void> {
    this.#isBehind = false;
    this.#isUnconfirmed = false;
    const newest = this.#newest;
    const reader = this.#source.read(this.#seen > 0 ? this.#seen + 1 : Math.max(1, this.#startSeq));
    try {
      for (;;) {
        const { done, value } = await reader.next();
        if (this.#isClosed) return;
        if (done) {
          // Payloads that are not records count as seen. Otherwise every tail check would read them again.
          this.#seen = Math.max(this.#seen, value);
          if (value > this.#known) {
            this.#known = value;
            this.#knownId = undefined;
          }
          // A record that was not found may have been removed by retention.
          if (this.#newest === newest) this.#newest = 0;
          return;
        }
        this.#seen = value.seq;
        this.#known = value.seq;
        this.#knownId = value.id;
        this.#readTo = value.seq;
        yield this.#noted(value);
      }
    } finally {
      await reader.return(0);
    }
  }

  /**
   * After a loss, the first new record continues from the generation that the log still has. A follower that has yielded lost records
   * expects another generation.
   */
  #noted(stored: StoredFacts): StoredFacts {
    const { facts, aggregate } = stored.record;
    const before = this.#generation;
    const first = facts.find(isVisible);
    if (first !== undefined && before !== undefined && first.lostAfter !== before) {
      // The record may reuse the sequence of a record that was already yielded.
      if (first.lostAfter !== undefined || first.generation - before > TASK_EVENTS_MAX) throw lost();
    }
    this.#generation = aggregate.generation;
    return stored;
  }

  /** If the log does not answer, the tail is checked again after the next quiet time. */
  async #lookUpTail(): Promise<void> {
    this.#checkTail = false;
    try {
      const tail = await this.#source.tail();
      const isOlder = (tail?.seq ?? 0) < this.#known;
      if ((isOlder || this.#replacesKnown(tail)) && (await this.#source.isLost(this.#known, this.#readId()))) throw lost();
      if (tail) this.#noteTail(tail);
    } catch (error) {
      if (error instanceof HistoryLost) throw error;
      this.#onCheckFailed(error);
    }
  }

  /**
   * Whether another record has replaced the one at `#known` that this follower has seen. If the id of the seen record is unknown, the id of
   * the tail is noted.
   */
  #replacesKnown(tail: Tail | undefined): boolean {
    if (tail?.seq !== this.#known) return false;
    if (this.#readId() === undefined) this.#knownId = tail.id;
    return this.#isOther(tail.id);
  }

  #isOther(id: string | undefined): boolean {
    const known = this.#readId();
    return id !== undefined && known !== undefined && id !== known;
  }

  /** Id of the record at `#known`, if known. Releases the live message that has it. */
  #readId(): string | undefined {
    if (typeof this.#knownId === 'object') this.#knownId = this.#knownId.id();
    return this.#knownId;
  }

  #noteTail(tail: Tail): void {
    if (tail.seq <= this.#seen) return;
    this.#newest = Math.max(this.#newest, tail.seq);
    this.#startSeq ||= tail.startSeq;
  }

  #pushTail(): void {
    this.#stopPush ??= this.#source.pushTail?.(
      tail => {
        // Only the first tail was read from the leader; later ones arrive after the live messages, in the order of the log.
        const isOlder = tail.seq < (this.#isPushed ? this.#pushed : this.#known);
        if (this.#replacesKnown(tail) || isOlder) this.#checkTail = true;
        this.#isPushed = true;
        this.#pushed = tail.seq;
        this.#noteTail(tail);
        this.#wake?.();
      },
      () => {
        this.#isPushed = false;
        this.#wake?.();
      },
    );
  }

  async #wait(): Promise<void> {
    const isUnconfirmed = this.#isUnconfirmed;
    const checkMs = isUnconfirmed ? NEWEST_CHECK_MS : this.#tailCheckMs;
    this.#hasSkipped = false;
    await new Promise<void>(resolve => {
      const onQuiet = () => {
        if (this.#hasSkipped) {
          resolve();
          return;
        }
        // Asks the leader, because a replica may lack a record that was stored before the subscription.
        if (isUnconfirmed) this.#isBehind = true;
        else if (this.#quietChecks++ >= PUSH_AFTER_CHECKS) this.#pushTail();
        this.#checkTail = !isUnconfirmed;
        resolve();
      };
      const timer = this.#isPushed ? undefined : setTimeout(onQuiet, checkMs * (1 - TAIL_CHECK_JITTER * Math.random()));
      this.#wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
    this.#wake = undefined;
  }

  #receive(live: LiveRecord): void {
    if (this.#skips(live)) return;
    if (this.#buffer.length >= this.#recordsMax || this.#bufferBytes + live.bytes > this.#bytesMax) {
      this.#buffer = [];
      this.#bufferBytes = 0;
      this.#reread('overflow');
    } else {
      this.#buffer.push(live);
      this.#bufferBytes += live.bytes;
    }
    this.#wake?.();
  }

  #shift(): LiveRecord | undefined {
    const live = this.#buffer.shift();
    if (live) this.#bufferBytes -= live.bytes;
    return live;
  }

  /** Messages sent just before the connection was lost may never arrive. */
  #reconnected(): void {
    this.#checkTail = true;
    this.#wake?.();
  }

  #reread(why: RereadReason): void {
    this.#isBehind = true;
    this.#onReread(why);
  }

  readonly #close = (): void => {
    this.#isClosed = true;
    this.#signal.removeEventListener('abort', this.#close);
    this.#unsubscribe?.();
    this.#unsubscribe = undefined;
    this.#stopPush?.();
    this.#stopPush = undefined;
    this.#buffer = [];
    this.#bufferBytes = 0;
    this.#wake?.();
  };
}

function lost(): HistoryLost {
  return new HistoryLost('the log no longer holds records of the task that were read from it');
}
