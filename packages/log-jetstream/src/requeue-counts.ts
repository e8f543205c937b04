import type { Role } from '@hopline/events';
import { type KeyValue, LogConflict } from '@hopline/log';

/**
 * `count`: how many of the first `deliveries` deliveries of an item were not attempts, because they were requeued or reached no worker. `begun`: the last
 * delivery that a worker began, 1 by default.
 */
export type RequeueEntry = { deliveries: number; count: number; begun?: number };

type RequeuedItem = { role: Role; taskId: string; seq: number };

const NONE: RequeueEntry = { deliveries: 0, count: 0 };
/**
 * Two tries would be enough, because at most two writers use an entry concurrently: the worker of the item, and a worker that has lost it
 * without noticing.
 */
const WRITE_TRIES_MAX = 3;

/**
 * Counts how often an item of work was requeued, was sent to a worker without reaching it (its connection was frozen), or was sent to a
 * worker that already runs it. The server counts only deliveries: `-NAK` has no reason that persists, headers of a stored message cannot
 * change, and an item queued again with a new count would duplicate the first one if its writer died in between. Therefore the count is in
 * a bucket and is written before `-NAK`, so that it is right even if a worker dies between the two.
 */
export class RequeueCounts {
  readonly #bucket: KeyValue<RequeueEntry>;

  constructor(bucket: KeyValue<RequeueEntry>) {
    this.#bucket = bucket;
  }

  /** Records that a delivery begins. Returns how many of the earlier deliveries were not attempts. */
  async begin(item: RequeuedItem, delivery: number): Promise<number> {
    const key = keyOf(item);
    const entry = await this.#bucket.get(key);
    const before = entry !== undefined && isValid(entry.value) ? entry.value : NONE;
    const { begun = 1 } = before;
    const lost = Math.max(0, delivery - 1 - Math.max(begun, before.deliveries));
    const count = before.count + lost;
    const value = { deliveries: Math.max(before.deliveries, delivery - 1), count, begun: Math.max(begun, delivery) };
    const write = entry === undefined ? this.#bucket.create(key, value) : this.#bucket.update(key, value, entry.revision);
    // If the entry cannot be written, the next delivery counts this one as not begun. The number of such errors is bounded, and they are
    // better than an attempt that never runs.
    await write.catch(() => {});
    return count;
  }

  /** Whether a delivery after this one has begun. */
  async hasBegunAfter(item: RequeuedItem, delivery: number): Promise<boolean> {
    const entry = await this.#bucket.get(keyOf(item));
    return entry !== undefined && isValid(entry.value) && (entry.value.begun ?? 1) > delivery;
  }

  /**
   * Counts a delivery that is about to be requeued, unless it was already counted or a later one has followed
   * it.
   */
  async increment(item: RequeuedItem, delivery: number): Promise<void> {
    const key = keyOf(item);
    for (let tries = 1; ; tries += 1) {
      const entry = await this.#bucket.get(key);
      const before = entry !== undefined && isValid(entry.value) ? entry.value : NONE;
      if (before.deliveries >= delivery) return;
      const value = { ...before, deliveries: delivery, count: before.count + 1 };
      try {
        await (entry === undefined ? this.#bucket.create(key, value) : this.#bucket.update(key, value, entry.revision));
        return;
      } catch (error) {
        if (!(error instanceof LogConflict) || tries >= WRITE_TRIES_MAX) throw error;
      }
    }
  }
}

/** Checks an entry, because operators may write to a bucket by hand. */
function isValid({ deliveries, count, begun = 1 }: RequeueEntry): boolean {
  return Number.isInteger(begun) && Number.isInteger(deliveries) && Number.isInteger(count) && count >= 0 && count <= deliveries;
}

/** The key contains the task, because sequences start over when the stream is created again. */
function keyOf({ role, taskId, seq }: RequeuedItem): string {
  return `${role}.${taskId}.${seq}`;
}
