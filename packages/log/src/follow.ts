import type { FactRecord } from '@hopline/events';
import type { StoredFacts } from './fact-log.ts';

/**
 * Splices stored and live records of one task: live first, then history, then live, each record once and in order. The same for every broker.
 * A live message names its predecessor on the task's subject, which reveals a missed one; nothing reveals a missed last one, so the tail is looked up
 * when it has been quiet and after a reconnect.
 */
export interface FollowSource {
  /** Resolves when live messages arrive. `onReconnect` is called when some may have been missed. */
  subscribe(onLive: (live: LiveRecord) => void, onReconnect: () => void): Promise<() => void>;
  /** Stored records from log sequence `from` up to the newest at the time of the call; returns the sequence up to which all was read. */
  read(from: number): AsyncGenerator<StoredFacts, number>;
  /** The newest record, or undefined when there is none. May be a little behind. */
  tail(): Promise<{ seq: number; first: number } | undefined>;
}

export type LiveRecord = {
  seq: number;
  /** Log sequence of the record before it on the task's subject, if that is still stored; else 0. */
  last: number;
  /** Size of the payload. */
  bytes: number;
  /** Undefined when the payload is not a record. */
  decode(): StoredFacts | undefined;
};

export type FollowOptions = {
  /** Quiet time after which the tail is looked up, milliseconds. */
  tailCheckMs?: number;
  bufferRecordsMax?: number;
  bufferBytesMax?: number;
  /** Called for each gap that was noticed and each buffer that ran over. */
  onReread?: (why: RereadReason) => void;
};

export type RereadReason = 'gap' | 'tail' | 'overflow';

export const TAIL_CHECK_MS = 2_000;
/** Live records that wait for a slow reader, of one follower. What is beyond is read from the log again: nothing grows. */
export const FOLLOW_BUFFER_RECORDS_MAX = 256;
export const FOLLOW_BUFFER_BYTES_MAX = 1024 * 1024;
/** Share of the quiet time that is drawn at random, so that thousands of followers do not ask in the same instant. */
const TAIL_CHECK_JITTER = 0.25;

/** `after: 'new'`: the task cannot have records yet, nothing is read first. Ends when `signal` aborts. */
export async function follow(
  source: FollowSource,
  after: number | 'new',
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
  /** Everything up to this log sequence was yielded, or skipped for good. */
  #seen: number;
  /** Records after `#seen` may be in the log that are not in the buffer. */
  #behind: boolean;
  /** Where the task begins, where that is known and nothing was seen yet: a start sequence makes the read 12 ms instead of 150 ms in a million messages. */
  #first = 0;
  #buffer: LiveRecord[] = [];
  #bufferBytes = 0;
  #checkTail = false;
  #wake: (() => void) | undefined;
  #unsubscribe: (() => void) | undefined;

  constructor(source: FollowSource, after: number | 'new', signal: AbortSignal, options: FollowOptions) {
    this.#source = source;
    this.#signal = signal;
    this.#tailCheckMs = options.tailCheckMs ?? TAIL_CHECK_MS;
    this.#recordsMax = options.bufferRecordsMax ?? FOLLOW_BUFFER_RECORDS_MAX;
    this.#bytesMax = options.bufferBytesMax ?? FOLLOW_BUFFER_BYTES_MAX;
    this.#onReread = options.onReread ?? (() => {});
    this.#seen = after === 'new' ? 0 : after;
    this.#behind = after !== 'new';
  }

  async open(): Promise<void> {
    if (this.#signal.aborted) return;
    this.#signal.addEventListener('abort', this.#close, { once: true });
    const unsubscribe = await this.#source
      .subscribe(
        live => this.#take(live),
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
      while (!this.#signal.aborted) {
        const live = this.#behind ? undefined : this.#shift();
        if (this.#behind) {
          yield* this.#catchUp();
        } else if (live) {
          const record = this.#accept(live);
          if (record) yield record;
        } else if (this.#checkTail) {
          await this.#lookAtTail();
        } else {
          await this.#wait();
        }
      }
    } finally {
      this.#close();
    }
  }

  #accept(live: LiveRecord): StoredFacts | undefined {
    if (live.seq <= this.#seen) return undefined;
    if (live.last > this.#seen) {
      this.#first ||= firstOf(live.decode()?.record);
      this.#reread('gap');
      return undefined;
    }
    this.#seen = live.seq;
    return live.decode();
  }

  async *#catchUp(): AsyncGenerator<StoredFacts, void> {
    this.#behind = false;
    const reader = this.#source.read(this.#seen > 0 ? this.#seen + 1 : Math.max(1, this.#first));
    try {
      for (;;) {
        const { done, value } = await reader.next();
        if (this.#signal.aborted) return;
        if (done) {
          // Records that could not be decoded are behind us too; else they would be looked for again at every tail check.
          this.#seen = Math.max(this.#seen, value);
          return;
        }
        this.#seen = value.seq;
        yield value;
      }
    } finally {
      await reader.return(0);
    }
  }

  /** The log may not answer just now; the next quiet time asks again. */
  async #lookAtTail(): Promise<void> {
    this.#checkTail = false;
    const tail = await this.#source.tail().catch(() => undefined);
    if (tail && tail.seq > this.#seen && this.#buffer.length === 0) {
      this.#first ||= tail.first;
      this.#reread('tail');
    }
  }

  async #wait(): Promise<void> {
    const quietMs = this.#tailCheckMs * (1 - TAIL_CHECK_JITTER * Math.random());
    await new Promise<void>(resolve => {
      const timer = setTimeout(() => {
        this.#checkTail = true;
        resolve();
      }, quietMs);
      this.#wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
    this.#wake = undefined;
  }

  #take(live: LiveRecord): void {
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

  /** A message of the last moments before the cut may never come. */
  #reconnected(): void {
    this.#checkTail = true;
    this.#wake?.();
  }

  #reread(why: RereadReason): void {
    this.#behind = true;
    this.#onReread(why);
  }

  readonly #close = (): void => {
    this.#signal.removeEventListener('abort', this.#close);
    this.#unsubscribe?.();
    this.#unsubscribe = undefined;
    this.#buffer = [];
    this.#bufferBytes = 0;
    this.#wake?.();
  };
}

/** 0 stands in the first record itself, which begins there. */
function firstOf(record: FactRecord | undefined): number {
  return record?.startSeq ?? 0;
}
