import type { Metadata } from '@hopline/a2a';
import { isTaskId } from './subjects.ts';

/**
 * A position in a task's stream: every event up to and including `generation` was received. `seq` is the log sequence of the record with
 * that event: a hint about where to start reading, which is never trusted. PROTOCOL.md section 5.
 */
export type Cursor = { generation: number; seq: number };

const CURSOR = /^(\d{1,15})\.(\d{1,15})$/;

export function formatCursor(cursor: Cursor): string {
  return `${cursor.generation}.${cursor.seq}`;
}

/** Undefined when `text` is not a cursor. */
export function parseCursor(text: string): Cursor | undefined {
  const match = CURSOR.exec(text);
  return match ? { generation: Number(match[1]), seq: Number(match[2]) } : undefined;
}

/** Key of a request's metadata whose value, a `ForkPoint`, lets a new task continue an earlier one. Servers check it before they store it. */
export const FORK_KEY = 'hopline.fork';

/** A point of a task, which includes everything up to and including the event of `cursor`. */
export type ForkPoint = { taskId: string; cursor: string };

/** The point that metadata names; `'malformed'` for a value of another form; undefined if there is none. */
export function forkPointOf(metadata: Metadata | undefined): ForkPoint | 'malformed' | undefined {
  const value = metadata?.[FORK_KEY];
  if (value === undefined) return undefined;
  const { taskId, cursor } = (value ?? {}) as Partial<Record<keyof ForkPoint, unknown>>;
  if (typeof taskId !== 'string' || typeof cursor !== 'string') return 'malformed';
  return isTaskId(taskId) && (parseCursor(cursor)?.generation ?? 0) > 0 ? { taskId, cursor } : 'malformed';
}
