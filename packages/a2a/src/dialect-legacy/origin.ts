import type { JsonObject } from '../json-value.ts';
import { isTerminal, type Metadata, type Task } from '../types.ts';

/** Reserved names: a door leaves them out of what comes from outside, so only a door can have written them (S1-15). */
const DIALECT = 'hopline.dialect';
const RECEIVED_AT = 'hopline.receivedAt';

/**
 * What a door notes in the request metadata of a task that the legacy form creates. `tasks/get`, `tasks/cancel` and `tasks/resubscribe` look the same in 0.3
 * and before: the note tells which of the two the client reads, on any replica. The time is what `processingTimeMs` counts from. `receivedAt`: epoch milliseconds.
 */
export function legacyOrigin(receivedAt: number): Metadata {
  return { [DIALECT]: 'legacy', [RECEIVED_AT]: receivedAt };
}

export function isLegacyTask(task: Task): boolean {
  return task.metadata?.[DIALECT] === 'legacy';
}

/** Metadata of a task as the legacy form shows it: the caller's, without our notes, and how long the task took once it has ended (S4-9). */
export function legacyMetadata(task: Task): JsonObject | undefined {
  const { [DIALECT]: _dialect, [RECEIVED_AT]: receivedAt, ...own } = task.metadata ?? {};
  const { state, timestamp } = task.status;
  const took = isTerminal(state) && typeof receivedAt === 'number' ? Date.parse(timestamp ?? '') - receivedAt : Number.NaN;
  // Two clocks: the door's and the relay's.
  const shown = Number.isNaN(took) ? own : { ...own, processingTimeMs: Math.max(0, Math.round(took)) };
  return Object.keys(shown).length > 0 ? shown : undefined;
}
