/** Number of items that may be buffered ahead of the reader, over all sources. One more batch may exceed it. */
const READ_AHEAD_ITEMS_MAX = 512;

/** A batch of items, and the index of its source. */
type SourceBatch<T> = { source: number; items: readonly T[] };

/**
 * Yields the batches of all sources, keeping the order of each source. At most `atOnce` sources are open at a time, and a slow reader slows
 * them down. Closes the open sources when the reader leaves or `signal` aborts.
 */
export async function* mergeSources<T>(
  sources: readonly (() => AsyncIterable<readonly T[]>)[],
  atOnce: number,
  signal?: AbortSignal,
): AsyncGenerator<SourceBatch<T>, void> {
  let ready: SourceBatch<T>[] = [];
  let readyItems = 0;
  let isLeft = false;
  let next = 0;
  let room = Promise.withResolvers<void>();
  let news = Promise.withResolvers<void>();
  const onAbort = () => news.resolve();
  const pump = async () => {
    while (next < sources.length && !isLeft) {
      const source = next++;
      for await (const items of sources[source]!()) {
        if (isLeft) return;
        ready.push({ source, items });
        readyItems += items.length;
        if (ready.length === 1) news.resolve();
        while (readyItems >= READ_AHEAD_ITEMS_MAX && !isLeft) await room.promise;
      }
    }
  };
  let isDone = false;
  const pumps = Promise.all(Array.from({ length: Math.min(Math.max(1, atOnce), sources.length) }, pump)).finally(() => {
    isDone = true;
    news.resolve();
  });
  pumps.catch(() => {});
  signal?.addEventListener('abort', onAbort);
  try {
    while (!signal?.aborted) {
      if (ready.length === 0) {
        if (isDone) break;
        await news.promise;
        news = Promise.withResolvers();
        continue;
      }
      const batches = ready;
      ready = [];
      readyItems = 0;
      const full = room;
      room = Promise.withResolvers();
      full.resolve();
      yield* batches;
    }
    // If a source fails, the merge fails as well, but only after the items that were already read.
    if (isDone) await pumps;
  } finally {
    isLeft = true;
    room.resolve();
    signal?.removeEventListener('abort', onAbort);
  }
}
