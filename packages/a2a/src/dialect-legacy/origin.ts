import type { JsonObject } from '../json-value.ts';
import { isTerminal, type Metadata, type Task } from '../types.ts';

/** Reserved keys: the server removes them from client metadata, so only a server can have written them. */
const DIALECT = 'hopline.dialect';
const RECEIVED_AT = 'hopline.receivedAt';

/**
 * Request metadata that the server adds to a task created by the legacy form. `tasks/get`, `tasks/cancel` and `tasks/resubscribe` look the
 * same in 0.3, so every replica needs this key to see which form the client uses. `processingTimeMs` counts from `receivedAt`, in epoch
 * milliseconds.
 */
export function legacyOrigin(receivedAt: number): Metadata {
  return { [DIALECT]: 'legacy', [RECEIVED_AT]: receivedAt };
}

export function isLegacyTask(task: Task): boolean {
  return task.metadata?.[DIALECT] === 'legacy';
}

/**
 * Metadata of a task in the legacy form: the caller's, without the reserved keys, and the processing time once the task has
 * ended.
 */
export function legacyMetadata(task: Task): JsonObject | undefined {
  const { [DIALECT]: _dialect, [RECEIVED_AT]: receivedAt, ...metadata } = task.metadata ?? {};
  const { state, timestamp } = task.status;
  const took = isTerminal(state) && typeof receivedAt === 'number' ? Date.parse(timestamp ?? '') - receivedAt : Number.NaN;
  // Never negative: the two times come from two clocks, the server's and the relay's.
  const shown = Number.isNaN(took) ? metadata : { ...metadata, processingTimeMs: Math.max(0, Math.round(took)) };
  return Object.keys(shown).length > 0 ? shown : undefined;
}
