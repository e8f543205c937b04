import { isTerminal, type StreamResponse } from '@hopline/a2a';
import type { Frame, Missing } from './frames.ts';

/** The cursor before the first event: with it, a subscription shows a task from its beginning, also one that has ended. */
export const BEGINNING = '0.0';

/** One event of a task's stream. `cursor` continues after it, also much later; undefined where the server has none. */
export type StreamEvent = { cursor: string | undefined; event: StreamResponse };

/**
 * Events are gone that this stream has not shown: retention has removed them, or the server cannot continue where it was. The next item is the task as it is now; what was folded so far
 * is in it.
 */
export type StreamGap = { gap: Missing | 'unknown' };

export type StreamItem = StreamEvent | StreamGap;

/** Where a reader is in a task's stream, over all connections. Takes frames, and gives items: each event once. */
export class StreamPosition {
  taskId: string | undefined;
  cursor: string | undefined;
  ended = false;
  /** Something of the task has come. */
  seen = false;
  readonly #endsAtQuestion: boolean;
  #gap: Missing | 'unknown' | undefined;

  constructor(taskId: string | undefined, cursor: string | undefined, endsAtQuestion: boolean) {
    this.taskId = taskId;
    this.cursor = cursor;
    this.#endsAtQuestion = endsAtQuestion;
  }

  /** A connection begins. Without a cursor to continue from, the server begins with the task as it is. */
  connect(): void {
    this.#gap = this.seen && this.cursor === undefined ? 'unknown' : undefined;
  }

  take(frame: Frame): StreamItem[] {
    if ('gap' in frame) {
      this.#gap = frame.gap;
      return [];
    }
    const { cursor, event } = frame;
    if (cursor !== undefined && isSeen(cursor, this.cursor)) return [];
    this.cursor = cursor ?? this.cursor;
    if (event === undefined) return [];
    this.seen = true;
    this.taskId ??= taskIdOf(event);
    this.ended = this.#endsAt(event);
    const item = { cursor, event };
    if (this.#gap === undefined) return [item];
    // Shown with what follows it, so that a gap whose connection breaks at once is not shown twice.
    const gap = { gap: this.#gap };
    this.#gap = undefined;
    return [gap, item];
  }

  #endsAt(event: StreamResponse): boolean {
    if ('message' in event) return true;
    const state =
      'task' in event ? event.task.status.state : 'statusUpdate' in event ? event.statusUpdate.status.state : undefined;
    if (state === undefined) return false;
    return isTerminal(state) || (this.#endsAtQuestion && state === 'TASK_STATE_INPUT_REQUIRED');
  }
}

/** Hopline's cursors begin with the generation of the event, which only grows. Of other ids only the same one again is known to be old. */
function isSeen(cursor: string, last: string | undefined): boolean {
  if (last === undefined) return false;
  const generation = generationOf(cursor);
  const seen = generationOf(last);
  return generation === undefined || seen === undefined ? cursor === last : generation <= seen;
}

function generationOf(cursor: string): number | undefined {
  const generation = /^(\d{1,15})\.\d{1,15}$/.exec(cursor)?.[1];
  return generation === undefined ? undefined : Number(generation);
}

function taskIdOf(event: StreamResponse): string | undefined {
  if ('task' in event) return event.task.id || undefined;
  if ('message' in event) return event.message.taskId;
  return ('statusUpdate' in event ? event.statusUpdate : event.artifactUpdate).taskId || undefined;
}
