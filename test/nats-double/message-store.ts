import type { HeaderBlock } from './headers.ts';
import { hasWildcard, matches } from './subjects.ts';

export type StoredMessage = {
  readonly seq: number;
  readonly subject: string;
  readonly header: HeaderBlock;
  readonly payload: Buffer;
  /** Epoch milliseconds at which it was stored. */
  readonly storedAtMs: number;
};

/** Bytes that a message takes in the files of nats-server: length, sequence, time and subject length; length of the headers; checksum. */
const RECORD_BYTES = 22;
const HEADER_LENGTH_BYTES = 4;
const CHECKSUM_BYTES = 8;

export function storedBytes(subject: string, header: HeaderBlock, payload: Buffer): number {
  const headerBytes = header === '' ? 0 : HEADER_LENGTH_BYTES + header.length;
  return RECORD_BYTES + subject.length + headerBytes + payload.length + CHECKSUM_BYTES;
}

/** A change of a store, which its replicas repeat. */
export type StoreChange = (store: MessageStore) => void;

/** The messages of a stream, in memory. */
export class MessageStore {
  onChange: ((change: StoreChange) => void) | undefined;
  /** In order of their sequences. */
  readonly #messages = new Map<number, StoredMessage>();
  /** Sequences of each subject, in order. */
  readonly #bySubject = new Map<string, number[]>();
  firstSeq = 0;
  lastSeq = 0;
  /** When the newest message was stored, even if it was removed. */
  lastStoredAtMs: number | undefined;
  bytes = 0;

  constructor(firstSeq: number) {
    if (firstSeq <= 0) return;
    this.firstSeq = firstSeq;
    this.lastSeq = firstSeq - 1;
  }

  get count(): number {
    return this.#messages.size;
  }

  get subjectCount(): number {
    return this.#bySubject.size;
  }

  add(subject: string, header: HeaderBlock, payload: Buffer, storedAtMs: number): StoredMessage {
    const message = { seq: this.lastSeq + 1, subject, header, payload, storedAtMs };
    this.#append(message);
    this.onChange?.(store => store.#append(message));
    return message;
  }

  #append(message: StoredMessage): void {
    const { seq, subject, header, payload, storedAtMs } = message;
    if (this.#messages.size === 0) this.firstSeq = seq;
    this.lastSeq = seq;
    this.lastStoredAtMs = storedAtMs;
    this.#messages.set(seq, message);
    const seqs = this.#bySubject.get(subject);
    if (seqs === undefined) this.#bySubject.set(subject, [seq]);
    else seqs.push(seq);
    this.bytes += storedBytes(subject, header, payload);
  }

  get(seq: number): StoredMessage | undefined {
    return this.#messages.get(seq);
  }

  first(): StoredMessage | undefined {
    return this.#messages.get(this.firstSeq);
  }

  remove(seq: number): StoredMessage | undefined {
    const message = this.#messages.get(seq);
    if (message === undefined) return undefined;
    this.#messages.delete(seq);
    const seqs = this.#bySubject.get(message.subject)!;
    if (seqs[0] === seq) seqs.shift();
    else seqs.splice(indexFrom(seqs, seq), 1);
    if (seqs.length === 0) this.#bySubject.delete(message.subject);
    this.bytes -= storedBytes(message.subject, message.header, message.payload);
    if (seq === this.firstSeq) this.firstSeq = this.#messages.keys().next().value ?? this.lastSeq + 1;
    this.onChange?.(store => void store.remove(seq));
    return message;
  }

  /** Removes the newest messages, whose sequences are given again. */
  truncate(lastSeq: number): void {
    for (let seq = this.lastSeq; seq > lastSeq; seq -= 1) this.remove(seq);
    this.lastSeq = Math.min(this.lastSeq, lastSeq);
    if (this.#messages.size === 0) this.firstSeq = this.lastSeq + 1;
    this.onChange?.(store => store.truncate(lastSeq));
  }

  copy(): MessageStore {
    const copy = new MessageStore(0);
    copy.become(this);
    return copy;
  }

  /** Has the messages of another store from now on. Replicas do not repeat that. */
  become(other: MessageStore): void {
    this.#messages.clear();
    this.#bySubject.clear();
    this.bytes = 0;
    for (const message of other.#messages.values()) this.#append(message);
    const { firstSeq, lastSeq, lastStoredAtMs } = other;
    Object.assign(this, { firstSeq, lastSeq, lastStoredAtMs });
  }

  /** An empty stream continues after `lastSeq`. */
  skipTo(lastSeq: number): void {
    this.lastSeq = lastSeq;
    this.firstSeq = lastSeq + 1;
    this.onChange?.(store => store.skipTo(lastSeq));
  }

  /** The number of messages of each subject that matches a filter. */
  counts(filter: string): Map<string, number> {
    return new Map([...this.#matching(filter)].map(([subject, seqs]) => [subject, seqs.length]));
  }

  firstSeqOf(subject: string): number | undefined {
    return this.#bySubject.get(subject)?.[0];
  }

  /** The newest message of all subjects that match. */
  last(filter: string): StoredMessage | undefined {
    let newest = 0;
    for (const [, seqs] of this.#matching(filter)) newest = Math.max(newest, seqs.at(-1)!);
    return this.#messages.get(newest);
  }

  /** The newest sequence of each subject up to `upTo`, in order. */
  lastOfEach(filters: readonly string[], upTo: number): number[] {
    const found = new Set<number>();
    for (const filter of filters)
      for (const [, seqs] of this.#matching(filter)) {
        const seq = seqs[indexFrom(seqs, upTo + 1) - 1];
        if (seq !== undefined) found.add(seq);
      }
    return [...found].sort((a, b) => a - b);
  }

  /** The first message from a sequence on whose subject matches one of the filters. */
  next(filters: readonly string[], from: number): StoredMessage | undefined {
    if (filters.length === 1 && !hasWildcard(filters[0]!)) {
      const seqs = this.#bySubject.get(filters[0]!) ?? [];
      return this.#messages.get(seqs[indexFrom(seqs, from)] ?? 0);
    }
    for (let seq = Math.max(from, this.firstSeq); seq <= this.lastSeq; seq += 1) {
      const message = this.#messages.get(seq);
      if (message !== undefined && matchesAny(filters, message.subject)) return message;
    }
    return undefined;
  }

  /** The number of messages from a sequence on; `lastOnly`: only the newest of each subject. */
  pending(filters: readonly string[], from: number, lastOnly = false): number {
    let count = 0;
    for (const [subject, seqs] of this.#bySubject) {
      if (!matchesAny(filters, subject)) continue;
      if (lastOnly) count += seqs.at(-1)! >= from ? 1 : 0;
      else count += seqs.length - indexFrom(seqs, from);
    }
    return count;
  }

  /** The sequence of the first message that is not older than a time; one after the newest if all are. */
  seqAt(timeMs: number): number {
    for (const { seq, storedAtMs } of this.#messages.values()) if (storedAtMs >= timeMs) return seq;
    return this.lastSeq + 1;
  }

  *matchingSeqs(filter: string): Generator<number> {
    for (const [, seqs] of this.#matching(filter)) yield* [...seqs];
  }

  *#matching(filter: string): Generator<[string, number[]]> {
    if (!hasWildcard(filter)) {
      const seqs = this.#bySubject.get(filter);
      if (seqs !== undefined) yield [filter, seqs];
      return;
    }
    for (const entry of this.#bySubject) if (matches(filter, entry[0])) yield entry;
  }
}

/** No filters match everything. */
export function matchesAny(filters: readonly string[], subject: string): boolean {
  return filters.length === 0 || filters.some(filter => matches(filter, subject));
}

/** Index of the first of the ordered sequences that is not below `from`. */
function indexFrom(seqs: readonly number[], from: number): number {
  let [low, high] = [0, seqs.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (seqs[middle]! < from) low = middle + 1;
    else high = middle;
  }
  return low;
}
