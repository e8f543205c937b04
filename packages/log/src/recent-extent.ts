import type { FactLog, LogExtent } from './fact-log.ts';

/** How long the extent of the log counts as current. Retention moves it slowly. */
const EXTENT_MS = 5_000;

/** The extent of the log, for readers that need it often and for which it may be up to EXTENT_MS old. */
export class RecentExtent {
  readonly #facts: Pick<FactLog, 'extent'>;
  readonly #now: () => number;
  #read: { value: LogExtent; atMs: number } | undefined;

  /** `now`: monotonic milliseconds. */
  constructor(facts: Pick<FactLog, 'extent'>, now = () => performance.now()) {
    this.#facts = facts;
    this.#now = now;
  }

  /** The extent as last read; undefined before the first `get`. */
  get last(): LogExtent | undefined {
    return this.#read?.value;
  }

  async get(): Promise<LogExtent> {
    const nowMs = this.#now();
    if (this.#read === undefined || nowMs - this.#read.atMs >= EXTENT_MS)
      this.#read = { value: await this.#facts.extent(), atMs: nowMs };
    return this.#read.value;
  }
}
