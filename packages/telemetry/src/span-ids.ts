import { hash, randomFillSync } from 'node:crypto';

const SPAN_ID_BYTES = 8;
const TRACE_ID_BYTES = 16;

/** Random bytes are generated for 256 spans at once: each call takes 2 µs, as long as the rest of a span's start. */
const pool = Buffer.alloc(256 * SPAN_ID_BYTES);
let used = pool.length;

function randomHex(bytes: number): string {
  if (used + bytes > pool.length) {
    randomFillSync(pool);
    used = 0;
  }
  used += bytes;
  return pool.toString('hex', used - bytes, used);
}

let next: string | undefined;

/**
 * Ids of spans: random, or chosen by `withSpanId`. A delivery of a work item has an id that its successor can compute, so that the span of
 * a later attempt can link to that of a process that died without storing its id.
 */
export const spanIds = {
  generateTraceId: (): string => randomHex(TRACE_ID_BYTES),
  generateSpanId: (): string => {
    const id = next ?? randomHex(SPAN_ID_BYTES);
    next = undefined;
    return id;
  },
};

/** Runs `start`, which starts one span, so that the span has this id. */
export function withSpanId<T>(id: string | undefined, start: () => T): T {
  next = id;
  try {
    return start();
  } finally {
    next = undefined;
  }
}

/** Id of the span of one delivery of a work item. */
export function deliverySpanId(taskId: string, role: string, item: number, attempt: number): string {
  return hash('sha256', `${taskId}/${role}/${item}/${attempt}`).slice(0, 2 * SPAN_ID_BYTES);
}
