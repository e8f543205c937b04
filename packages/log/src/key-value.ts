/** A small bucket of named JSON values with revisions: shard leases, task index, agent registry, message ids. */
export interface KeyValue<V> {
  get(key: string): Promise<Entry<V> | undefined>;
  /** The entries whose keys are `<prefix>.` and one more part, as they are now, by key. Reads each of them: for prefixes of few. */
  under(prefix: string): Promise<Entry<V>[]>;
  /** Writes unconditionally. */
  put(key: string, value: V): Promise<number>;
  /** Writes if the key does not exist (or was deleted); rejects with LogConflict otherwise. */
  create(key: string, value: V): Promise<number>;
  /** Writes if the key still has `revision`; rejects with LogConflict otherwise. */
  update(key: string, value: V, revision: number): Promise<number>;
  delete(key: string): Promise<void>;
  /** Of the newest write that is kept, whatever its key; 0 when there is none. A watch that has given it out has given out everything before this call. */
  revision(): Promise<number>;
  /** All entries now, then every change (value undefined: deleted), in order. `ready` marks the end of what was there at the call. */
  watch(signal: AbortSignal): AsyncIterable<Change<V>>;
}

export type Entry<V> = { key: string; value: V; revision: number };
export type Change<V> = { type: 'entry'; key: string; value: V | undefined; revision: number } | { type: 'ready' };
