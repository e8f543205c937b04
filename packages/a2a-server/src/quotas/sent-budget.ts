import type { TokenBucket } from './token-bucket.ts';

/** Bytes that the event streams of one caller may send, from its own budget and its tenant's. A stream beyond it is slowed down, never cut. */
export class SentBudget {
  readonly #buckets: readonly TokenBucket[];

  constructor(buckets: readonly TokenBucket[]) {
    this.#buckets = buckets;
  }

  /** Counts bytes that were written. Returns how long the stream should wait before it writes more. */
  spend(bytes: number, nowMs: number): number {
    for (const bucket of this.#buckets) bucket.take(bytes, nowMs);
    return this.waitMs(nowMs);
  }

  /** 0 when the caller is within its budget. */
  waitMs(nowMs: number): number {
    return Math.max(0, ...this.#buckets.map(bucket => bucket.waitMs(0, nowMs)));
  }
}
