import type { ByteBudget } from './byte-budget.ts';
import type { VisibleEntry } from './visible-entry.ts';

/**
 * The newest visible facts of a task, contiguous by generation, bounded by count and bytes. The newest fact is kept whatever its size,
 * until the common budget of all rings empties this ring. Older facts are read from the log.
 */
export class FactRing {
  readonly #factsMax: number;
  readonly #bytesMax: number;
  readonly #budget: ByteBudget;
  #entries: VisibleEntry[] = [];
  #bytes = 0;

  constructor(factsMax: number, bytesMax: number, budget: ByteBudget) {
    this.#factsMax = factsMax;
    this.#bytesMax = bytesMax;
    this.#budget = budget;
  }

  push(entry: VisibleEntry): void {
    const newest = this.#entries.at(-1);
    if (newest !== undefined && entry.generation !== newest.generation + 1) this.empty();
    this.#entries.push(entry);
    this.#bytes += entry.bytes;
    while (this.#entries.length > 1 && (this.#entries.length > this.#factsMax || this.#bytes > this.#bytesMax)) {
      this.#bytes -= this.#entries.shift()!.bytes;
    }
    this.#budget.count(this, this.#bytes);
  }

  /** The fact that follows the one with this generation. Undefined if it is older than the ring or has not arrived yet. */
  after(generation: number): VisibleEntry | undefined {
    const oldest = this.#entries[0];
    if (oldest === undefined || oldest.follows(generation)) return oldest;
    return this.#entries[generation + 1 - oldest.generation];
  }

  empty(): void {
    this.#entries = [];
    this.#bytes = 0;
    this.#budget.remove(this);
  }
}
