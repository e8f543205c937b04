import type { A2AError, Task } from '@hopline/a2a';
import type { ArtifactIndex, VisibleEntry } from '../feed/visible-entry.ts';

/** Generations that retention removed before the client saw them. */
export type Gap = { from: number; to: number };

/** The newest event of a task: its generation, the log sequence of its record, and whether no event can follow. */
export type NewestEvent = { generation: number; seq: number; ended: boolean };

/**
 * One open response of a binding, for the events of one viewer. Additions are sent with the next `flush`, `flushAll` or `end`, in one
 * write. The binding handles the wire format, and the viewer handles the client's position.
 */
export interface EventSink {
  readonly closed: boolean;
  /** Bytes that the client has not read yet, not counting what the kernel buffers. They decide whether the client is too slow. */
  readonly backlog: number;
  /** Approximate bytes sent so far. */
  readonly written: number;
  /** Starts the response at once, before any event exists (S0-2). */
  open(): void;
  /** Called before the first event, with the newest event of the task at that moment. Events up to it were stored before the stream began. */
  follows?(tail: NewestEvent): void;
  addEvent(entry: VisibleEntry, artifactIndex: ArtifactIndex): void;
  /** Adds the task as it is. `cursor`: the position after it. `generation`: the generation of its newest event. */
  addSnapshot(task: Task, cursor: string, generation: number): void;
  addGap(missing: Gap): void;
  flush(): void;
  /** Flushes at the pace of the client. Resolves with false when the client has disconnected, or read nothing for `stallMs`. */
  flushAll(stallMs: number): Promise<boolean>;
  /** Flushes and ends the response successfully. */
  end(): void;
  /** Ends with an error of the binding. */
  fail(error: A2AError): void;
  /** Ends with an error that asks the client to reconnect after `retryMs`. */
  drain(error: A2AError, retryMs: number): void;
  /** Closes the connection and discards what is buffered for it. */
  cut(): void;
  /** Sends bytes that clients ignore, so that proxies keep the connection open. */
  keepAlive(): void;
  /** Calls `listener` once when the response ends, or at once if it has already ended. */
  onClose(listener: () => void): void;
}
