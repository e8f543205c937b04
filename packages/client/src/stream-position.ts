import { isTerminal, type StreamResponse } from '@hopline/a2a/client';
import type { Frame, Missing } from './frames.ts';

/** The cursor before the first event: a subscription with it yields a task from the beginning, even one that has ended. */
export const BEGINNING = '0.0';

/**
 * One event of a task's stream. A later subscription with `cursor` continues after it; undefined for a server without cursors.
 */
export type StreamEvent = { cursor: string | undefined; event: StreamResponse };

/**
 * Events are missing: they have expired, or the server cannot continue at this position. The next item is the current task, which
 * contains their effect.
 */
export type StreamGap = { gap: Missing | 'unknown' };

/** An item that a stream yields. */
export type StreamItem = StreamEvent | StreamGap;

/** The position of a reader in a task's stream over all connections: turns frames into items, each event once. */
export class StreamPosition {
  taskId: string | undefined;
  cursor: string | undefined;
  ended = false;
  /** True once an event has arrived. */
  seen = false;
  readonly #endsAtInputRequired: boolean;
  #gap: Missing | 'unknown' | undefined;
  /** After a gap, until a frame with a cursor: a server that has lost events continues before them. */
  #isMoved = false;

  constructor(taskId: string | undefined, cursor: string | undefined, endsAtInputRequired: boolean) {
    this.taskId = taskId;
    this.cursor = cursor;
    this.#endsAtInputRequired = endsAtInputRequired;
  }

  /** Starts a connection. Without a cursor the server first sends the current task. */
  connect(): void {
    this.#gap = this.seen && this.cursor === undefined ? 'unknown' : undefined;
    this.#isMoved = false;
  }

  accept(frame: Frame): StreamItem[] {
    if ('gap' in frame) {
      this.#gap = frame.gap;
      this.#isMoved = true;
      return [];
    }
    const { cursor, event } = frame;
    if (cursor !== undefined) {
      if (!this.#isMoved && isSeen(cursor, this.cursor)) return [];
      this.#isMoved = false;
      this.cursor = cursor;
    }
    if (event === undefined) return [];
    this.seen = true;
    this.taskId ??= taskIdOf(event);
    this.ended = this.#endsAt(event);
    const item = { cursor, event };
    if (this.#gap === undefined) return [item];
    // A gap is yielded together with the next event, so that it is not repeated when its connection breaks at once.
    const gap = { gap: this.#gap };
    this.#gap = undefined;
    return [gap, item];
  }

  #endsAt(event: StreamResponse): boolean {
    if ('message' in event) return true;
    const state =
      'task' in event ? event.task.status.state : 'statusUpdate' in event ? event.statusUpdate.status.state : undefined;
    if (state === undefined) return false;
    return isTerminal(state) || (this.#endsAtInputRequired && state === 'TASK_STATE_INPUT_REQUIRED');
  }
}

/**
 * A Hopline cursor starts with the generation of its event, which only grows. An id of another server is a duplicate only if it
 * is equal.
 */
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
