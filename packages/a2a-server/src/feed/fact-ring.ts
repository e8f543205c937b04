import type { VisibleEntry } from './visible-entry.ts';

/** The newest visible facts of a task, contiguous by generation, bounded by count and bytes. The newest one is always kept. */
export class FactRing {
  readonly #factsMax: number;
  readonly #bytesMax: number;
  #entries: VisibleEntry[] = [];
  #bytes = 0;

  constructor(factsMax: number, bytesMax: number) {
    this.#factsMax = factsMax;
    this.#bytesMax = bytesMax;
  }

  push(entry: VisibleEntry): void {
    const newest = this.#entries.at(-1);
    if (newest !== undefined && entry.generation !== newest.generation + 1) {
      this.#entries = [];
      this.#bytes = 0;
    }
    this.#entries.push(entry);
    this.#bytes += entry.bytes;
    while (this.#entries.length > 1 && (this.#entries.length > this.#factsMax || this.#bytes > this.#bytesMax)) {
      this.#bytes -= this.#entries.shift()!.bytes;
    }
  }

  /** undefined when it is older than the ring, or not there yet. */
  at(generation: number): VisibleEntry | undefined {
    const oldest = this.#entries[0];
    return oldest === undefined ? undefined : this.#entries[generation - oldest.generation];
  }
}
