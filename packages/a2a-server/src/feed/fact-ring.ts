import type { VisibleEntry } from './visible-entry.ts';

/** Bytes of all rings of a process. Beyond its bound, rings are emptied: first those that have had no new fact for longest. */
export class RingBudget {
  readonly #bytesMax: number;
  /** Rings with facts, and their bytes; the one that has had no new fact for longest is first. */
  readonly #rings = new Map<FactRing, number>();
  #bytes = 0;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  /** Bytes of all rings. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Counts a ring that has a new fact. Its viewers are about to read it, so it is not emptied itself. */
  count(ring: FactRing, bytes: number): void {
    this.remove(ring);
    this.#rings.set(ring, bytes);
    this.#bytes += bytes;
    for (const oldest of this.#rings.keys()) {
      if (this.#bytes <= this.#bytesMax || oldest === ring) return;
      oldest.empty();
    }
  }

  remove(ring: FactRing): void {
    this.#bytes -= this.#rings.get(ring) ?? 0;
    this.#rings.delete(ring);
  }
}

/**
 * The newest visible facts of a task, contiguous by generation, bounded by count and bytes. The newest one is kept whatever its size,
 * until the budget of all rings empties this one. What it no longer has is read from the log.
 */
export class FactRing {
  readonly #factsMax: number;
  readonly #bytesMax: number;
  readonly #budget: RingBudget;
  #entries: VisibleEntry[] = [];
  #bytes = 0;

  constructor(factsMax: number, bytesMax: number, budget: RingBudget) {
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

  /** undefined when it is older than the ring, or not there yet. */
  at(generation: number): VisibleEntry | undefined {
    const oldest = this.#entries[0];
    return oldest === undefined ? undefined : this.#entries[generation - oldest.generation];
  }

  empty(): void {
    this.#entries = [];
    this.#bytes = 0;
    this.#budget.remove(this);
  }
}
