import type { A2AError, Task } from '@hopline/a2a';
import type { ArtifactIndex, VisibleEntry } from '../feed/visible-entry.ts';

/** Generations that a client should have seen and retention has removed. */
export type Gap = { from: number; to: number };

/**
 * One open response of a binding, for the events of one viewer. What is added goes out with the next `flush`, `flushAll` or `end`, in one write.
 * The binding knows the wire; the viewer knows what the client has seen.
 */
export interface EventSink {
  readonly closed: boolean;
  /** Bytes that the client has not taken yet, beyond what the kernel holds: the figure that decides whether it is too slow. */
  readonly backlog: number;
  /** About the bytes sent so far. */
  readonly written: number;
  /** Begins the response at once, before anything is known of the task (S0-2, S3-14). */
  open(): void;
  addEvent(entry: VisibleEntry, artifactIndex: ArtifactIndex): void;
  /** The task as it is; `cursor` says what was seen with it, `generation` is that of the newest event in it. */
  addSnapshot(task: Task, cursor: string, generation: number): void;
  addGap(missing: Gap): void;
  flush(): void;
  /** Flushes as fast as the client takes it. Resolves with false when it has gone, or took nothing for `stallMs`. */
  flushAll(stallMs: number): Promise<boolean>;
  /** Flushes and ends well. */
  end(): void;
  /** Ends with an error of the binding. */
  fail(error: A2AError): void;
  /** Ends with an error that tells the client to come back after `retryMs`. */
  drain(error: A2AError, retryMs: number): void;
  /** Drops the connection with everything that waits for it. */
  cut(): void;
  /** Something that no client shows, so that proxies keep the connection. */
  keepAlive(): void;
  /** Calls back once when the response is over, also when it was over before. */
  onClose(listener: () => void): void;
}
