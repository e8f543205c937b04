import type { Role } from '@hopline/events';
import { type KeyValue, LogConflict } from '@hopline/log';

/** Of the first `deliveries` deliveries of an item, `count` were handed back in order. */
export type HandBackEntry = { deliveries: number; count: number };

export type HandBackItem = { role: Role; taskId: string; seq: number };

const NONE: HandBackEntry = { deliveries: 0, count: 0 };
/** Writers of one entry at the same time: the worker that has the item, and one that has lost it without noticing. */
const WRITE_TRIES_MAX = 3;

/**
 * How often an item of work was handed back in order. The server counts deliveries and nothing else: `-NAK` takes no reason that would outlive it, no header of a stored message can be changed,
 * and an item queued a second time under a new count would stand beside the first if its writer died in between. So the count stands beside the queue, and is written before the item is given back:
 * whoever dies between the two has been counted as what it was, a worker that let go in order.
 */
export class HandBacks {
  readonly #bucket: KeyValue<HandBackEntry>;

  constructor(bucket: KeyValue<HandBackEntry>) {
    this.#bucket = bucket;
  }

  async count(item: HandBackItem): Promise<number> {
    const known = await this.#bucket.get(keyOf(item));
    return known !== undefined && isEntry(known.value) ? known.value.count : 0;
  }

  /** Counts a delivery that is about to be handed back; one that was counted, or that a later one has followed, is not counted again. */
  async note(item: HandBackItem, delivery: number): Promise<void> {
    const key = keyOf(item);
    for (let tries = 1; ; tries += 1) {
      const known = await this.#bucket.get(key);
      const before = known !== undefined && isEntry(known.value) ? known.value : NONE;
      if (before.deliveries >= delivery) return;
      const value = { deliveries: delivery, count: before.count + 1 };
      try {
        await (known === undefined ? this.#bucket.create(key, value) : this.#bucket.update(key, value, known.revision));
        return;
      } catch (error) {
        if (!(error instanceof LogConflict) || tries >= WRITE_TRIES_MAX) throw error;
      }
    }
  }
}

/** A bucket can be written by hand. */
function isEntry({ deliveries, count }: HandBackEntry): boolean {
  return Number.isInteger(deliveries) && Number.isInteger(count) && count >= 0 && count <= deliveries;
}

/** With the task, because sequences begin again when somebody makes the stream anew. */
function keyOf({ role, taskId, seq }: HandBackItem): string {
  return `${role}.${taskId}.${seq}`;
}
