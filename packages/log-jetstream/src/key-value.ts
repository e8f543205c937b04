import {
  type Change,
  type Entry,
  type KeyValue,
  LogConflict,
  LogUnavailable,
  MATCHES_PER_REQUEST_MAX,
  requireKey,
  type StreamExtent,
} from '@hopline/log';
import { nuid } from '@nats-io/nats-core';
import { decodeValue, encodePayload, MESSAGE_ID } from './codec.ts';
import type { Connection } from './connection.ts';
import { type DirectGets, type NewestMessage, newestOf, type StoredMessage } from './direct-gets.ts';
import type { EntryCheck } from './entry-checks.ts';
import { headersOf } from './message-headers.ts';
import { deleteConsumer, isReplaced, openConsumer, readOrdered } from './ordered-reader.ts';
import type { Publisher } from './publisher.ts';
import type { Delivery } from './pull-inbox.ts';
import { PAGE_BYTES_MAX } from './read-slots.ts';
import { readExtent } from './retention.ts';
import { type RetryOptions, retry } from './retry.ts';

const OPERATION = 'KV-Operation';
const DELETED = 'DEL';
const PURGED = 'PURGE';
const NOTHING = new Uint8Array(0);

/**
 * A watch is ready when it has yielded the newest revision that the bucket had afterwards. The server's count of pending messages cannot be
 * used: it is wrong if a key is overwritten while the consumer starts (seen on 2.15.2), and a lagging replica counts only its own messages.
 * If writes never pause, the comparison is made at most this many times. A key that is then still missing was overwritten each time before
 * it was read.
 */
const COMPARISONS_MAX = 8;

/** `isReadDirectly`: the users that read single entries may use direct gets. */
type KeyValueOptions = {
  bucket: string;
  directGets: DirectGets;
  isReadDirectly?: boolean;
  isValid?: EntryCheck | undefined;
};

/**
 * A NATS key-value bucket (ADR-8, so `nats kv` reads it), written by the log's own publisher: a write is retried while there is no leader,
 * a lost ack is not a conflict, and a watch continues as soon as the connection is back. `@nats-io/kv` does none of these.
 */
export class JetStreamKeyValue<V> implements KeyValue<V> {
  readonly #connection: Connection;
  readonly #publisher: Publisher;
  readonly #stream: string;
  readonly #prefix: string;
  readonly #directGets: DirectGets;
  readonly #isReadDirectly: boolean;
  readonly #isValid: EntryCheck;

  constructor(connection: Connection, publisher: Publisher, options: KeyValueOptions) {
    this.#connection = connection;
    this.#publisher = publisher;
    this.#stream = `KV_${options.bucket}`;
    this.#prefix = `$KV.${options.bucket}.`;
    this.#directGets = options.directGets;
    this.#isReadDirectly = options.isReadDirectly ?? false;
    this.#isValid = options.isValid ?? (() => true);
  }

  async get(key: string): Promise<Entry<V> | undefined> {
    const newest = await this.newest(key);
    if (!newest || isRemoval(newest.header?.get(OPERATION))) return undefined;
    const value = this.#decode(newest.data, key);
    return value === undefined ? undefined : { key, value, revision: newest.seq };
  }

  async under(prefix: string): Promise<Entry<V>[]> {
    // `get` leaves out deleted keys.
    const entries = await Promise.all((await this.keysUnder(prefix)).map(key => this.get(key)));
    return entries.filter(entry => entry !== undefined);
  }

  async keysUnder(prefix: string): Promise<string[]> {
    requireKey(prefix);
    const { streams } = this.#connection;
    const filter = `${this.#prefix}${prefix}.*`;
    const info = await retry(this.#connection, this.#stream, () => streams.info(this.#stream, filter));
    const subjects = Object.keys(info?.state.subjects ?? {});
    return subjects.map(subject => subject.slice(this.#prefix.length)).sort();
  }

  async match(filters: readonly string[]): Promise<Entry<V>[]> {
    const entries: Entry<V>[] = [];
    for (let at = 0; at < filters.length; at += MATCHES_PER_REQUEST_MAX) {
      const some = filters.slice(at, at + MATCHES_PER_REQUEST_MAX);
      const subjects = some.map(filter => this.#prefix + filter);
      const newest = await this.#newestOf(subjects);
      if (newest === undefined) {
        for (const filter of some) for await (const entry of this.#scan(filter)) entries.push(entry);
        continue;
      }
      for (const { subject, seq, data, msg } of newest) {
        if (isRemoval(headersOf(msg)?.get(OPERATION))) continue;
        const key = subject.slice(this.#prefix.length);
        const value = this.#decode(data, key);
        if (value !== undefined) entries.push({ key, value, revision: seq });
      }
    }
    return entries;
  }

  /**
   * Splits filters in half if they match too many entries for one request. Undefined if the server does not even answer for one subject.
   */
  async #newestOf(subjects: readonly string[]): Promise<StoredMessage[] | undefined> {
    const all = await this.#directGets.newest(this.#stream, `${this.#prefix}>`, subjects);
    if (all !== undefined || !this.#directGets.hasBatches || subjects.length < 2) return all;
    // The rows of ended tasks (one row for each shard) and a thousand open tasks may together be too many for one request.
    const middle = Math.ceil(subjects.length / 2);
    const [first, second] = await Promise.all([
      this.#newestOf(subjects.slice(0, middle)),
      this.#newestOf(subjects.slice(middle)),
    ]);
    return first && second && [...first, ...second];
  }

  async count(filter: string): Promise<number> {
    const reading = { stream: this.#stream, filter: this.#prefix + filter, from: 'last-per-subject' } as const;
    const { name, pending } = await openConsumer(this.#connection, { ...reading, signal: this.#connection.closed });
    await deleteConsumer(this.#connection, this.#stream, name);
    return pending;
  }

  /** The current entries with keys that match, through a consumer. */
  async *#scan(filter: string): AsyncGenerator<Entry<V>, void> {
    const found = new Map<string, Entry<V>>();
    const over = new AbortController();
    for await (const change of this.#watch(filter, over.signal)) {
      if (change.type === 'ready') break;
      const { key, value, revision } = change;
      if (value === undefined) found.delete(key);
      else found.set(key, { key, value, revision });
    }
    over.abort();
    yield* found.values();
  }

  async put(key: string, value: V): Promise<number> {
    return this.#write(key, encodePayload(value));
  }

  async create(key: string, value: V): Promise<number> {
    try {
      return await this.#write(key, encodePayload(value), 0);
    } catch (error) {
      if (!(error instanceof LogConflict)) throw error;
      const newest = await this.newest(key);
      // A deleted entry, which `get` treats as absent, must not occupy its key until retention removes it.
      if (!newest || (!isRemoval(newest.header?.get(OPERATION)) && this.#decode(newest.data, key) !== undefined)) throw error;
      return this.#write(key, encodePayload(value), newest.seq);
    }
  }

  async update(key: string, value: V, revision: number): Promise<number> {
    return this.#write(key, encodePayload(value), revision);
  }

  async delete(key: string): Promise<void> {
    await this.#write(key, NOTHING, undefined, { [OPERATION]: DELETED });
  }

  async purge(key: string, revision: number): Promise<void> {
    requireKey(key);
    const { jsm } = this.#connection;
    const below = { filter: this.#prefix + key, seq: revision + 1 };
    await retry(this.#connection, this.#stream, () => jsm.streams.purge(this.#stream, below));
  }

  revision(): Promise<number> {
    return this.#revision('>');
  }

  async #revision(filter: string): Promise<number> {
    const get = () => this.#connection.jsm.streams.getMessage(this.#stream, { last_by_subj: this.#prefix + filter });
    // The last sequence of the stream cannot be used, because its message may have been removed. A watch would then never reach it.
    return (await retry(this.#connection, this.#stream, get))?.seq ?? 0;
  }

  extent(): Promise<StreamExtent> {
    return readExtent(this.#connection, this.#stream);
  }

  watch(signal: AbortSignal): AsyncGenerator<Change<V>, void> {
    return this.#watch('>', signal);
  }

  async *#watch(filter: string, signal: AbortSignal): AsyncGenerator<Change<V>, void> {
    let created: string | undefined;
    let newestRead: Delivery | undefined;
    /**
     * Revisions of a recreated bucket begin at 1, and a bucket that has lost its newest entries reuses their revisions. A reader would then
     * miss every entry with a revision up to the newest one that it has read.
     */
    const begin = async (from: number, options: RetryOptions) => {
      const info = () => this.#connection.jsm.streams.info(this.#stream);
      const { created: createdAt, state } = await retry(this.#connection, this.#stream, info, options);
      const now = String(createdAt);
      if (created !== undefined && now !== created) throw new LogUnavailable(`${this.#stream} was lost and created again`);
      created = now;
      if (newestRead === undefined) return from;
      const isLost = state.last_seq < newestRead.seq || (await isReplaced(this.#connection, this.#stream, newestRead, options));
      if (isLost) throw new LogUnavailable(`${this.#stream} has lost its newest entries`);
      return from;
    };
    if (!signal.aborted)
      await begin(0, { signal }).catch(error => {
        if (!signal.aborted) throw error;
      });
    let newest = await this.#newestUnless(filter, signal);
    if (newest === undefined) return;
    let [position, comparisons, isReady] = [0, 0, newest === 0];
    const reading = {
      begin,
      stream: this.#stream,
      filter: this.#prefix + filter,
      from: 'last-per-subject',
      bytesMax: PAGE_BYTES_MAX,
      awaitsEnd: () => !isReady,
      signal,
    } as const;
    if (isReady) yield { type: 'ready' };
    /** Keys yielded before `ready`. The removal of any other key is not a change. */
    const yielded = new Set<string>();
    for await (const { deliveries, idle } of readOrdered(this.#connection, reading)) {
      for (const delivery of deliveries) {
        if (signal.aborted) return;
        position = delivery.seq;
        newestRead = delivery;
        const change = this.#toChange(delivery);
        if (!isReady && change.value === undefined && !yielded.has(change.key)) continue;
        if (!isReady) yielded.add(change.key);
        yield change;
      }
      if (isReady || (position < newest && !idle)) continue;
      newest = await this.#newestUnless(filter, signal);
      if (newest === undefined) return;
      comparisons += idle ? 0 : 1;
      isReady = position >= newest || comparisons >= COMPARISONS_MAX;
      if (!isReady) continue;
      yielded.clear();
      yield { type: 'ready' };
    }
  }

  async #write(key: string, payload: Uint8Array, expected?: number, more?: Record<string, string>): Promise<number> {
    requireKey(key);
    const id = nuid.next();
    try {
      const { seq } = await this.#publisher.publish(this.#prefix + key, payload, { id, expected, ...(more && { more }) });
      return seq;
    } catch (error) {
      if (!(error instanceof LogConflict)) throw error;
      const newest = await this.newest(key);
      if (newest?.header?.get(MESSAGE_ID) === id) return newest.seq;
      throw error;
    }
  }

  /** Read from the leader, because the process that loses a race to create a key must see the winner's entry. */
  protected async newest(key: string): Promise<NewestMessage | null> {
    requireKey(key);
    const subject = this.#prefix + key;
    if (this.#isReadDirectly) return this.#directGets.newestFromLeader(this.#stream, subject);
    const get = () => this.#connection.jsm.streams.getMessage(this.#stream, { last_by_subj: subject });
    return newestOf(await retry(this.#connection, this.#stream, get));
  }

  /** Undefined when `signal` aborts. */
  async #newestUnless(filter: string, signal: AbortSignal): Promise<number | undefined> {
    const newest = signal.aborted ? undefined : await this.#revision(filter);
    return signal.aborted ? undefined : newest;
  }

  #toChange({ msg, seq }: Delivery): Extract<Change<V>, { type: 'entry' }> {
    const key = msg.subject.slice(this.#prefix.length);
    if (isRemoval(headersOf(msg)?.get(OPERATION))) return { type: 'entry', key, value: undefined, revision: seq };
    return { type: 'entry', key, value: this.#decode(msg.data, key), revision: seq };
  }

  /** Undefined for a value that readers cannot use. Such a value counts as absent. */
  #decode(payload: Uint8Array, key: string): V | undefined {
    const value = decodeValue(payload);
    if (value !== undefined && this.#isValid(value, key)) return value as V;
    this.#connection.onEvent({ type: 'undecodable', where: 'key-value' });
    return undefined;
  }
}

function isRemoval(operation: string | undefined): boolean {
  return operation === DELETED || operation === PURGED;
}
