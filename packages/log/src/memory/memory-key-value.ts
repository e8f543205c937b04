import { LogConflict } from '../errors.ts';
import type { StreamExtent } from '../fact-log.ts';
import type { Change, Entry, KeyValue } from '../key-value.ts';
import { requireKey } from '../names.ts';
import { requireOpen } from './memory-records.ts';

type Cell = { json: string | undefined; revision: number };

/** The state of one bucket, shared by all simulated processes. */
export class MemoryBucket {
  readonly cells = new Map<string, Cell>();
  readonly #listeners = new Set<(key: string, cell: Cell) => void>();
  readonly #bytesMax: number;
  #revision = 0;
  #created = 1;

  /** When all entries together exceed `bytesMax` bytes, the oldest are removed without a change event. */
  constructor(bytesMax = Number.POSITIVE_INFINITY) {
    this.#bytesMax = bytesMax;
  }

  write(key: string, json: string | undefined): number {
    this.#revision += 1;
    const cell = { json, revision: this.#revision };
    this.cells.set(key, cell);
    if (Number.isFinite(this.#bytesMax)) this.#removeOldest();
    for (const listener of this.#listeners) listener(key, cell);
    return cell.revision;
  }

  get revision(): number {
    return this.#revision;
  }

  get extent(): StreamExtent {
    const stored = [...this.cells.values()];
    const firstSeq = Math.min(this.#revision + 1, ...stored.map(({ revision }) => revision));
    const bytes = stored.reduce((sum, { json }) => sum + (json?.length ?? 0), 0);
    return { firstSeq, lastSeq: this.#revision, fill: bytes / this.#bytesMax, created: this.#created };
  }

  /** Watches that are open do not show it. */
  lose(): void {
    this.cells.clear();
    this.#revision = 0;
    this.#created += 1;
  }

  #removeOldest(): void {
    while (this.extent.fill > 1) {
      const { firstSeq } = this.extent;
      for (const [key, { revision }] of this.cells) if (revision === firstSeq) this.cells.delete(key);
    }
  }

  listen(listener: (key: string, cell: Cell) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }
}

export class MemoryKeyValue<V> implements KeyValue<V> {
  readonly #bucket: MemoryBucket;
  readonly #closed: AbortSignal;

  constructor(bucket: MemoryBucket, closed: AbortSignal) {
    this.#bucket = bucket;
    this.#closed = closed;
  }

  async get(key: string): Promise<Entry<V> | undefined> {
    const cell = this.#cell(key);
    return cell?.json === undefined ? undefined : { key, value: JSON.parse(cell.json) as V, revision: cell.revision };
  }

  async under(prefix: string): Promise<Entry<V>[]> {
    const keys = await this.keysUnder(prefix);
    const entries = await Promise.all(keys.map(key => this.get(key)));
    return entries.filter(entry => entry !== undefined);
  }

  async keysUnder(prefix: string): Promise<string[]> {
    this.#cell(prefix);
    return [...this.#bucket.cells.keys()].filter(key => isUnder(key, prefix)).sort();
  }

  async match(filters: readonly string[]): Promise<Entry<V>[]> {
    requireOpen(this.#closed);
    const patterns = filters.map(patternOf);
    const keys = [...this.#bucket.cells.keys()].filter(key => patterns.some(pattern => pattern.test(key)));
    const entries = await Promise.all(keys.map(key => this.get(key)));
    return entries.filter(entry => entry !== undefined);
  }

  async count(filter: string): Promise<number> {
    return (await this.match([filter])).length;
  }

  async put(key: string, value: V): Promise<number> {
    this.#cell(key);
    return this.#bucket.write(key, JSON.stringify(value));
  }

  async create(key: string, value: V): Promise<number> {
    if (this.#cell(key)?.json !== undefined) throw new LogConflict('the key exists');
    return this.#bucket.write(key, JSON.stringify(value));
  }

  async update(key: string, value: V, revision: number): Promise<number> {
    const current = this.#cell(key)?.revision ?? 0;
    if (current !== revision) throw new LogConflict(`the key has revision ${current}, expected ${revision}`);
    return this.#bucket.write(key, JSON.stringify(value));
  }

  async delete(key: string): Promise<void> {
    this.#cell(key);
    this.#bucket.write(key, undefined);
  }

  async purge(key: string, revision: number): Promise<void> {
    const cell = this.#cell(key);
    if (cell !== undefined && cell.revision <= revision) this.#bucket.cells.delete(key);
  }

  async revision(): Promise<number> {
    requireOpen(this.#closed);
    return this.#bucket.revision;
  }

  async extent(): Promise<StreamExtent> {
    requireOpen(this.#closed);
    return this.#bucket.extent;
  }

  async *watch(signal: AbortSignal): AsyncGenerator<Change<V>, void> {
    requireOpen(this.#closed);
    const changes: Change<V>[] = [];
    let wake: (() => void) | undefined;
    const onWake = () => wake?.();
    const cells = [...this.#bucket.cells].sort(([, a], [, b]) => a.revision - b.revision);
    for (const [key, cell] of cells) if (cell.json !== undefined) changes.push(toChange(key, cell));
    changes.push({ type: 'ready' });
    const unlisten = this.#bucket.listen((key, cell) => {
      changes.push(toChange(key, cell));
      onWake();
    });
    const ended = AbortSignal.any([signal, this.#closed]);
    ended.addEventListener('abort', onWake);
    try {
      while (!ended.aborted) {
        const change = changes.shift();
        if (change) yield change;
        else
          await new Promise<void>(resolve => {
            wake = resolve;
          });
      }
    } finally {
      unlisten();
      ended.removeEventListener('abort', onWake);
    }
  }

  #cell(key: string): Cell | undefined {
    requireKey(key);
    requireOpen(this.#closed);
    return this.#bucket.cells.get(key);
  }
}

function isUnder(key: string, prefix: string): boolean {
  return key.startsWith(`${prefix}.`) && !key.includes('.', prefix.length + 1);
}

function toChange<V>(key: string, cell: Cell): Change<V> {
  const value = cell.json === undefined ? undefined : (JSON.parse(cell.json) as V);
  return { type: 'entry', key, value, revision: cell.revision };
}

function patternOf(filter: string): RegExp {
  // Except for the dot, the characters of a key have no meaning in a regular expression.
  return new RegExp(`^${filter.replaceAll('.', '\\.').replaceAll('*', '[^.]+')}$`);
}
