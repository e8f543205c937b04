/** 2024-10-09T00:00:00Z, from which the protocol counts intervals. */
const EPOCH_MS = 1_728_432_000_000;
const INTERVAL_MS = 20_000;
/** Largest step, in intervals, beyond a cursor that is not in the past: one hour. */
const STEP_MAX = 180;

/**
 * The cursor of a live response (PROTOCOL.md of Durable Streams, 10.1): the number of the current interval, or more than the client has sent. So
 * a cache never answers one long poll with the response to an earlier one.
 */
export function pollCursor(sent: string | undefined, nowMs: number): string {
  const current = Math.floor((nowMs - EPOCH_MS) / INTERVAL_MS);
  const last = sent !== undefined && /^\d{1,15}$/.test(sent) ? Number(sent) : -1;
  return String(last >= current ? last + 1 + Math.floor(Math.random() * STEP_MAX) : current);
}
