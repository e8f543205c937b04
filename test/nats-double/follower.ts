import type { MessageStore, StoreChange } from './message-store.ts';

/** A replica that does not lead. It repeats the changes of the leader, each some time later. */
export class Follower {
  readonly #store: MessageStore;
  #changes: { atMs: number; change: StoreChange }[] = [];

  constructor(leader: MessageStore) {
    this.#store = leader.copy();
  }

  repeatLater(atMs: number, change: StoreChange): void {
    this.#changes.push({ atMs, change });
  }

  /** Applies the changes up to a time and returns the store with them. A replica never goes back. */
  asOf(timeMs: number): MessageStore {
    const due = this.#changes.findIndex(({ atMs }) => atMs > timeMs);
    for (const { change } of this.#changes.splice(0, due < 0 ? this.#changes.length : due)) change(this.#store);
    return this.#store;
  }
}
