import { getHeapStatistics } from 'node:v8';

/** Share of Node's heap limit above which a worker that runs SCARCE_SLOTS_MIN turns begins no further one. */
const WORKER_HEAP_SHARE_MAX = 0.8;
/** Number of turns that a worker runs even if its heap is full, so that it never comes to a standstill. */
export const SCARCE_SLOTS_MIN = 64;
/** Default of HOPLINE_SLOTS: 1,000 streams and a share for other tenants, in 260 MiB of a supervisor or 180 MiB of an agent. */
export const SLOTS_DEFAULT = 2_048;
/** For the documentation of HOPLINE_SLOTS. */
export const SLOTS_DOC = `While the heap is ${100 * WORKER_HEAP_SHARE_MAX} % full, a process with ${SCARCE_SLOTS_MIN} or more takes no further one.`;
/** A reading takes some 10 µs. */
const READ_MS = 250;

/** Returns a function that checks whether the heap of this process is nearly full. */
export function heapWatch(now: () => number, read = getHeapStatistics): () => boolean {
  let readAtMs = Number.NEGATIVE_INFINITY;
  let isScarce = false;
  return () => {
    if (now() - readAtMs < READ_MS) return isScarce;
    readAtMs = now();
    const { used_heap_size: used, heap_size_limit: limit } = read();
    isScarce = used > limit * WORKER_HEAP_SHARE_MAX;
    return isScarce;
  };
}
