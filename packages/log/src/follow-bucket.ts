import { setTimeout as sleep } from 'node:timers/promises';
import { backoffMs } from './backoff.ts';
import type { Change, KeyValue } from './key-value.ts';

/** A bucket that was lost is followed again after this, milliseconds, with full jitter. */
const REFOLLOW_MS_BASE = 200;
const REFOLLOW_MS_MAX = 5_000;

export type BucketView<V> = {
  /** What is in the bucket comes anew: forget what was known once `ready` comes. */
  begin(): void;
  change(change: Extract<Change<V>, { type: 'entry' }>): void;
  /** Everything that is in the bucket has come. */
  ready(): void;
  lost(error: unknown): void;
};

/**
 * Keeps a view of a bucket until `signal` aborts, also after the watch was lost. Resolves when what stands in the bucket has been read once;
 * rejects when not even that can be done.
 */
export async function followBucket<V>(bucket: KeyValue<V>, signal: AbortSignal, view: BucketView<V>): Promise<void> {
  const ready = Promise.withResolvers<void>();
  void keepFollowing(bucket, signal, view, ready);
  await ready.promise;
}

async function keepFollowing<V>(
  bucket: KeyValue<V>,
  signal: AbortSignal,
  view: BucketView<V>,
  ready: PromiseWithResolvers<void>,
): Promise<void> {
  for (let losses = 1; !signal.aborted; losses += 1) {
    try {
      view.begin();
      for await (const change of bucket.watch(signal)) {
        if (change.type === 'entry') view.change(change);
        else {
          losses = 0;
          view.ready();
          ready.resolve();
        }
      }
    } catch (error) {
      ready.reject(error);
      view.lost(error);
    }
    await sleep(backoffMs(Math.max(1, losses), REFOLLOW_MS_BASE, REFOLLOW_MS_MAX), undefined, { signal }).catch(() => {});
  }
  ready.resolve();
}
