import { SCARCE_SLOTS_MIN } from './heap-watch.ts';

type Waiting<Q> = { queue: Q; grant: () => void };

export type Slot = {
  /** Resolves when the item may begin. */
  ready: Promise<void>;
  readonly isReady: boolean;
  release(): void;
};

/**
 * The slots of one worker, shared by its queues. A free slot goes to the queue that runs the fewest items or, among equals, to the one that
 * was served longest ago. Items wait here only if several queues delivered at the same time.
 */
export class FairSlots<Q> {
  readonly #slots: number;
  readonly #slotsMaxOf: (queue: Q) => number;
  readonly #taken = new Map<Q, number>();
  readonly #running = new Map<Q, number>();
  /** When a queue was last served, counted in grants. */
  readonly #servedAt = new Map<Q, number>();
  readonly #waiting: Waiting<Q>[] = [];
  readonly #listeners = new Set<() => void>();
  #runningCount = 0;
  #grants = 0;

  readonly #isScarce: () => boolean;
  readonly #isOpen: () => boolean;

  /**
   * `slotsMaxOf`: maximum slots of one queue. `isScarce`: the process has no memory for more than SCARCE_SLOTS_MIN items. `isOpen`: whether the worker
   * can run items; call `changed` when its answer changes.
   */
  constructor(
    slots: number,
    slotsMaxOf: (queue: Q) => number,
    { isScarce = () => false, isOpen = () => true }: { isScarce?: () => boolean; isOpen?: () => boolean } = {},
  ) {
    this.#slots = slots;
    this.#slotsMaxOf = slotsMaxOf;
    this.#isScarce = isScarce;
    this.#isOpen = isOpen;
  }

  /** How many more items of a queue may begin now; negative while items of several queues wait for slots. */
  room(queue: Q): number {
    const taken = this.#runningCount + this.#waiting.length;
    const free = taken >= SCARCE_SLOTS_MIN && this.#isScarce() ? 0 : this.#slots - taken;
    const room = Math.min(free, this.#slotsMaxOf(queue) - this.taken(queue));
    return this.#isOpen() ? room : Math.min(0, room);
  }

  /** Items of a queue that run or wait for a slot. */
  taken(queue: Q): number {
    return this.#taken.get(queue) ?? 0;
  }

  reserve(queue: Q): Slot {
    this.#taken.set(queue, this.taken(queue) + 1);
    const { promise, resolve } = Promise.withResolvers<void>();
    const waiting = { queue, grant: resolve };
    this.#waiting.push(waiting);
    this.#grant();
    this.changed();
    const isWaiting = () => this.#waiting.includes(waiting);
    let released = false;
    const release = () => {
      if (released) return;
      released = true;
      this.#taken.set(queue, this.taken(queue) - 1);
      const at = this.#waiting.indexOf(waiting);
      if (at >= 0) {
        this.#waiting.splice(at, 1);
      } else {
        this.#running.set(queue, this.#runs(queue) - 1);
        this.#runningCount -= 1;
      }
      this.#grant();
      this.changed();
    };
    return {
      ready: promise,
      get isReady() {
        return !isWaiting();
      },
      release,
    };
  }

  /** Whether a free slot goes to `queue` rather than to `other`. */
  precedes(queue: Q, other: Q): boolean {
    const more = this.#runs(queue) - this.#runs(other);
    return more < 0 || (more === 0 && (this.#servedAt.get(queue) ?? 0) < (this.#servedAt.get(other) ?? 0));
  }

  /** Calls `listener` after every change, until the returned function is called. */
  listen(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Calls the listeners. */
  changed(): void {
    for (const listener of this.#listeners) listener();
  }

  #grant(): void {
    while (this.#runningCount < this.#slots && this.#waiting.length > 0) {
      const next = this.#waiting.reduce((first, one) => (this.precedes(one.queue, first.queue) ? one : first));
      this.#waiting.splice(this.#waiting.indexOf(next), 1);
      this.#running.set(next.queue, this.#runs(next.queue) + 1);
      this.#runningCount += 1;
      this.#grants += 1;
      this.#servedAt.set(next.queue, this.#grants);
      next.grant();
    }
  }

  #runs(queue: Q): number {
    return this.#running.get(queue) ?? 0;
  }
}
