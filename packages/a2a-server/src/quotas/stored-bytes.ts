import type { Owner } from '@hopline/events';
import {
  BoundedMap,
  bytesFrom,
  groupOfTenantBytes,
  isTenantBytes,
  type Log,
  RecentExtent,
  tenantBytesFilter,
} from '@hopline/log';

/** Age at which the bytes of a tenant are read again. */
const BYTES_MS = 1_000;
/** Number of tenants in memory. The one whose bytes were read longest ago is dropped first. */
const TENANTS_MAX = 10_000;

type Counted = { bytes: number; readAtMs: number; reading?: Promise<void> };

type StoredBytesOptions = {
  log: Pick<Log, 'taskLists' | 'facts' | 'layouts'>;
  /** Share of the log's bytes that one tenant may store, 0 to 1. */
  shareMax: number;
  onLost(error: unknown): void;
  /** Monotonic milliseconds. */
  now?: () => number;
};

/** Determines which tenants have used up their share of the log, by reading what the relays have counted for a caller's tenant. */
export class StoredBytes {
  readonly #options: StoredBytesOptions;
  readonly #tenants = new BoundedMap<string, Counted>(TENANTS_MAX);
  readonly #now: () => number;
  readonly #extent: RecentExtent;

  constructor(options: StoredBytesOptions) {
    this.#options = options;
    this.#now = options.now ?? (() => performance.now());
    this.#extent = new RecentExtent(options.log.facts, this.#now);
  }

  /** Reads the bytes of the caller's tenant again when that is due. If the read fails, the previous bytes count. */
  async refresh(caller: Owner): Promise<void> {
    const filter = tenantBytesFilter(caller);
    if (filter === undefined) return;
    const counted = this.#tenants.get(filter) ?? { bytes: 0, readAtMs: Number.NEGATIVE_INFINITY };
    if (counted.reading === undefined && this.#now() - counted.readAtMs < BYTES_MS) return;
    if (!this.#tenants.has(filter)) this.#tenants.set(filter, counted);
    counted.reading ??= this.#read(filter, caller, counted)
      .catch(error => this.#options.onLost(error))
      .finally(() => {
        delete counted.reading;
      });
    await counted.reading;
  }

  /** Whether the tenant of the caller has used up its share of the log, as last read. */
  isFull(caller: Owner): boolean {
    const { bytesMax } = this.#extent.last ?? {};
    const filter = tenantBytesFilter(caller);
    if (bytesMax === undefined || filter === undefined) return false;
    return (this.#tenants.get(filter)?.bytes ?? 0) >= this.#options.shareMax * bytesMax;
  }

  async #read(filter: string, caller: Owner, counted: Counted): Promise<void> {
    const { taskLists, layouts } = this.#options.log;
    counted.readAtMs = this.#now();
    const [extent, entries] = await Promise.all([this.#extent.get(), taskLists.match([filter], caller)]);
    let stored = 0;
    for (const { key, value } of entries) {
      const [shard] = layouts.shardsOf(groupOfTenantBytes(key));
      if (isTenantBytes(value)) stored += bytesFrom(value.stored, extent.ofShard(shard!).firstSeq);
    }
    counted.bytes = stored;
  }
}
