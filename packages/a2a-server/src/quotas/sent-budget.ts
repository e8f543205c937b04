import { setTimeout as sleep } from 'node:timers/promises';
import type { TokenBucket } from '@hopline/log';

/** Longest wait before a response that exceeds its caller's budget checks again whether it may continue and whether its client has left. */
const PACE_MS_MAX = 1_000;

/** Bytes that a server may send to one caller, from the caller's own budget and its tenant's. */
export class SentBudget {
  readonly #buckets: readonly TokenBucket[];

  constructor(buckets: readonly TokenBucket[]) {
    this.#buckets = buckets;
  }

  /** Counts bytes that were written. Returns how long to wait before writing more. */
  spend(bytes: number, nowMs: number): number {
    for (const bucket of this.#buckets) bucket.take(bytes, nowMs);
    return this.waitMs(nowMs);
  }

  /** 0 when the caller is within its budget. */
  waitMs(nowMs: number): number {
    return Math.max(0, ...this.#buckets.map(bucket => bucket.waitMs(0, nowMs)));
  }

  /** Waits until the caller is within its budget, or the response is over. */
  async pace(isOver: () => boolean): Promise<void> {
    for (;;) {
      const waitMs = this.waitMs(performance.now());
      if (waitMs === 0 || isOver()) return;
      await sleep(Math.min(waitMs, PACE_MS_MAX), undefined, { ref: false });
    }
  }
}
