import type { Owner } from '@hopline/events';
import type { StreamExtent } from './fact-log.ts';

/** A small bucket of named JSON values with revisions: shard leases, task index, agent registry, message ids. */
export interface KeyValue<V> {
  get(key: string): Promise<Entry<V> | undefined>;
  /** The current entries with keys `<prefix>.<one token>`, sorted by key. Each costs a read, so use it for small groups. */
  under(prefix: string): Promise<Entry<V>[]>;
  /**
   * The keys `<prefix>.<one token>`, from one request that does not read their entries. A deleted key is included until its marker is
   * purged or has expired.
   */
  keysUnder(prefix: string): Promise<string[]>;
  /**
   * The current entries whose keys match one of the filters, which are keys in which `*` stands for one token. One request to a server of
   * 2.11 or later returns up to MATCHES_PER_REQUEST_MAX entries. More entries, and older servers, need a consumer. `owner`: the owner of
   * the task lists to be read; required for a service that may not read all lists.
   */
  match(filters: readonly string[], owner?: Owner): Promise<Entry<V>[]>;
  /** Number of current entries whose keys match a filter. `owner`: see `match`. */
  count(filter: string, owner?: Owner): Promise<number>;
  /** Writes unconditionally. */
  put(key: string, value: V): Promise<number>;
  /** Writes if the key does not exist (or was deleted); rejects with LogConflict otherwise. */
  create(key: string, value: V): Promise<number>;
  /** Writes if the key still has `revision`; rejects with LogConflict otherwise. */
  update(key: string, value: V, revision: number): Promise<number>;
  delete(key: string): Promise<void>;
  /**
   * Removes the entry unless it was written after `revision`. Unlike `delete`, it leaves no marker in the bucket and no watch shows it, so
   * it is for entries that only one process uses.
   */
  purge(key: string, revision: number): Promise<void>;
  /**
   * Revision of the newest stored write of any key; 0 when there is none. A watch that has yielded it has yielded every write
   * before this call.
   */
  revision(): Promise<number>;
  /** Extent of the bucket's content; sequences are revisions. Reads from the leader. */
  extent(): Promise<StreamExtent>;
  /**
   * All current entries, then every change in order (value undefined: deleted). `ready` comes after the entries that existed at the time of
   * the call.
   */
  watch(signal: AbortSignal): AsyncIterable<Change<V>>;
}

/** Largest number of entries in one answer of a server. */
export const MATCHES_PER_REQUEST_MAX = 1_024;

export type Entry<V> = { key: string; value: V; revision: number };
export type Change<V> = { type: 'entry'; key: string; value: V | undefined; revision: number } | { type: 'ready' };
