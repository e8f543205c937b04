import type { Layouts } from '@hopline/events';
import { LogConflict, LogUnavailable, RecordTooLarge } from '../errors.ts';
import type { ReadStart, StreamExtent } from '../fact-log.ts';
import { requireRecordId, requireTaskId } from '../names.ts';

/** A stored record. The payload is JSON text, so that every reader gets its own copy of what JSON can represent. */
export type StoredText = {
  seq: number;
  taskId: string;
  id: string;
  json: string;
  bytes: number;
  at: number;
  trace?: object;
  continuesText?: boolean;
};

export type WriteOptions = {
  id: string;
  expected?: number;
  trace?: object | undefined;
  timeoutMs?: number | undefined;
  continuesText?: boolean;
};

/** Faults that a test can inject. Each is a count of the next operations that it affects. */
export type Faults = {
  /** The next writes are stored but their acks are lost, so that each is retried with the same id. */
  loseAcks: number;
  /** The next live messages are lost. */
  loseLive: number;
  /** The next appends reject with LogConflict, and nothing is stored. */
  conflicts: number;
  /** The next writes reject with LogUnavailable, and nothing is stored. */
  refusals: number;
  /** The next checks for missed records by a follower are answered by a replica that lacks the newest record. */
  staleTails: number;
};

/** Wait for a lost ack before the write is retried. */
const ACK_WAIT_MS = 5;
const WRITE_TIMEOUT_MS = 20_000;

/** One stream of the in-memory log: global sequence, subjects by task, deduplication by id, expected sequence, and retention on request. */
export class MemoryStream {
  readonly #faults: Faults;
  readonly #recordBytesMax: number;
  readonly #bytesMax: number;
  readonly #layouts: Layouts;
  readonly #ids = new Map<string, number>();
  readonly #byTask = new Map<string, StoredText[]>();
  readonly #byShard = new Map<number, StoredText[]>();
  /** Every record, in the order of the sequences. */
  #all: StoredText[] = [];
  #bytes = 0;
  /** Times at which records were lost. */
  #losses = 0;
  readonly #listeners = new Set<(stored: StoredText, last: number) => void>();
  #seq = 0;

  /** When all records together exceed `bytesMax` bytes, the oldest are removed. */
  constructor(faults: Faults, layouts: Layouts, recordBytesMax: number, bytesMax = Number.POSITIVE_INFINITY) {
    this.#faults = faults;
    this.#layouts = layouts;
    this.#recordBytesMax = recordBytesMax;
    this.#bytesMax = bytesMax;
  }

  async write(
    taskId: string,
    value: unknown,
    options: WriteOptions,
  ): Promise<{ seq: number; duplicate: boolean; bytes: number }> {
    requireTaskId(taskId);
    requireRecordId(options.id);
    const json = JSON.stringify(value);
    const bytes = Buffer.byteLength(json);
    if (bytes > this.#recordBytesMax)
      throw new RecordTooLarge(`the record has ${bytes} bytes, the log accepts ${this.#recordBytesMax}`);
    if (take(this.#faults, 'refusals')) throw new LogUnavailable('the log did not answer');
    const deadline = Date.now() + (options.timeoutMs ?? WRITE_TIMEOUT_MS);
    for (;;) {
      const ack = this.#store({ taskId, json, bytes, ...options });
      if (!take(this.#faults, 'loseAcks')) return { ...ack, bytes };
      await new Promise(resolve => setTimeout(resolve, ACK_WAIT_MS));
      if (Date.now() >= deadline) throw new LogUnavailable('the log did not answer');
    }
  }

  last(taskId: string): StoredText | undefined {
    return this.#byTask.get(taskId)?.at(-1);
  }

  ofTask(taskId: string, from: number): StoredText[] {
    return (this.#byTask.get(taskId) ?? []).filter(stored => stored.seq >= from);
  }

  /** The first record of a shard at `from` or later. */
  nextOfShard(shard: number, from: number): StoredText | undefined {
    const stored = this.#byShard.get(shard) ?? [];
    let low = 0;
    for (let high = stored.length; low < high; ) {
      const middle = (low + high) >>> 1;
      if (stored[middle]!.seq < from) low = middle + 1;
      else high = middle;
    }
    return stored[low];
  }

  /** The records of a shard at the time of the call. */
  ofShard(shard: number, start: ReadStart): StoredText[] {
    const stored = this.#byShard.get(shard) ?? [];
    return stored.filter('seq' in start ? ({ seq }) => seq >= start.seq : ({ at }) => at >= start.sinceMs);
  }

  /** `last`: sequence of the task's previous record. Called in the order of the stream. */
  listen(listener: (stored: StoredText, last: number) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  get extent(): StreamExtent {
    const bytesMax = this.#bytesMax;
    const firstSeq = this.#all[0]?.seq ?? this.#seq + 1;
    const bounds = Number.isFinite(bytesMax) && { bytesMax };
    return { firstSeq, lastSeq: this.#seq, fill: this.#bytes / bytesMax, ...bounds, leadership: `${this.#losses}` };
  }

  /** Simulates a stream that was deleted and created again: it is empty, has forgotten all ids, and begins with `firstSeq`. */
  rebuild(firstSeq: number): void {
    this.expireAll(this.#seq + 1);
    this.#ids.clear();
    this.#seq = firstSeq - 1;
    this.#losses += 1;
  }

  /**
   * Simulates a server that lost power before its last records were on disk: the records after `lastSeq` are gone, with their ids, and the
   * sequences continue after it.
   */
  loseTail(lastSeq: number): void {
    const lost = this.#all.filter(({ seq }) => seq > lastSeq);
    for (const { id, bytes } of lost) {
      this.#ids.delete(id);
      this.#bytes -= bytes;
    }
    const kept = (stored: StoredText[]) => stored.filter(({ seq }) => seq <= lastSeq);
    this.#all = kept(this.#all);
    for (const [taskId, stored] of this.#byTask) this.#byTask.set(taskId, kept(stored));
    for (const [shard, stored] of this.#byShard) this.#byShard.set(shard, kept(stored));
    this.#seq = Math.min(this.#seq, lastSeq);
    this.#losses += 1;
  }

  /** Whether the record at `seq` was lost although retention has not removed it: it is gone, or `isSame` does not recognize it. */
  isLost(seq: number, isSame: (stored: StoredText) => boolean): boolean {
    if (seq > this.#seq) return true;
    const stored = this.#all.find(one => one.seq === seq);
    return stored !== undefined && !isSame(stored);
  }

  /**
   * Simulates retention: removes every record with a sequence below `below`. Also forgets their ids, because retention is longer than the duplicate
   * window.
   */
  expireAll(below: number): void {
    const [first] = this.#all;
    if (first === undefined || first.seq >= below) return;
    const removed = this.#all.filter(stored => stored.seq < below);
    for (const { id } of removed) this.#ids.delete(id);
    for (const taskId of new Set(removed.map(stored => stored.taskId))) this.expire(taskId, below);
  }

  /** Simulates retention: removes the records of one task with a sequence below `below`. */
  expire(taskId: string, below: number): void {
    this.#all = this.#all.filter(stored => stored.taskId !== taskId || stored.seq >= below);
    this.#bytes = this.#all.reduce((sum, { bytes }) => sum + bytes, 0);
    const kept = this.ofTask(taskId, below);
    this.#byTask.set(taskId, kept);
    const shard = this.#layouts.shardOf(taskId);
    const ofShard = this.#byShard.get(shard) ?? [];
    this.#byShard.set(
      shard,
      ofShard.filter(stored => stored.taskId !== taskId || stored.seq >= below),
    );
  }

  /** Stores a payload unchanged, and returns its sequence. */
  storeGarbage(taskId: string, json: string): number {
    return this.#store({ taskId, json, bytes: Buffer.byteLength(json), id: `garbage-${this.#seq}` }).seq;
  }

  #store(write: { taskId: string; json: string; bytes: number } & WriteOptions): { seq: number; duplicate: boolean } {
    const known = this.#ids.get(write.id);
    if (known !== undefined) return { seq: known, duplicate: true };
    const last = this.last(write.taskId)?.seq ?? 0;
    if (write.expected !== undefined && (write.expected !== last || take(this.#faults, 'conflicts'))) {
      throw new LogConflict(`the newest record is ${last}, expected ${write.expected}`);
    }
    this.#seq += 1;
    const { taskId, id, json, bytes, trace, continuesText } = write;
    const more = { ...(trace && { trace }), ...(continuesText === true && { continuesText }) };
    const stored: StoredText = { seq: this.#seq, taskId, id, json, bytes, at: Date.now(), ...more };
    this.#ids.set(id, stored.seq);
    push(this.#byTask, taskId, stored);
    push(this.#byShard, this.#layouts.shardOf(taskId), stored);
    this.#all.push(stored);
    this.#bytes += bytes;
    while (this.#bytes > this.#bytesMax) this.expireAll(this.#all[0]!.seq + 1);
    for (const listener of this.#listeners) listener(stored, last);
    return { seq: stored.seq, duplicate: false };
  }
}

/** Undefined if the payload is not JSON. Readers skip it. */
export function decode<R>(stored: Pick<StoredText, 'json'>): R | undefined {
  try {
    return JSON.parse(stored.json) as R;
  } catch {
    return undefined;
  }
}

export function take(faults: Faults, what: keyof Faults): boolean {
  if (faults[what] <= 0) return false;
  faults[what] -= 1;
  return true;
}

function push<K>(map: Map<K, StoredText[]>, key: K, stored: StoredText): void {
  const list = map.get(key);
  if (list) list.push(stored);
  else map.set(key, [stored]);
}
