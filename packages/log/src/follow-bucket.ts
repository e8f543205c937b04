import { backoffMs, sleepUnlessAborted } from './backoff.ts';
import type { Change, KeyValue } from './key-value.ts';

/** Wait before a lost watch is reopened, with full jitter. */
const REFOLLOW_MS_BASE = 200;
const REFOLLOW_MS_MAX = 5_000;

export type BucketView<V> = {
  /** Called before all entries of the bucket are passed again. Entries that have not been passed by the time `ready` is called are gone. */
  begin(): void;
  change(change: Extract<Change<V>, { type: 'entry' }>): void;
  /** Called when all entries of the bucket have been passed to `change`. */
  ready(): void;
  lost(error: unknown): void;
};

/**
 * Keeps a view of a bucket up to date until `signal` aborts; a lost watch is opened again. Resolves when the bucket has been read once;
 * rejects if that fails.
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
    await sleepUnlessAborted(backoffMs(Math.max(1, losses), REFOLLOW_MS_BASE, REFOLLOW_MS_MAX), signal);
  }
  ready.resolve();
}
