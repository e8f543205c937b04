import type { A2AError } from '@hopline/a2a';
import type { ArtifactUpdated, Fact } from '@hopline/events';

export type TaskChange = Exclude<Fact, ArtifactUpdated>;

/** Called synchronously while the feed folds a record, in this order, so that the state of the feed matches the call. */
export type FeedListener = {
  /** Called for each fact that changes more than an artifact. Facts that change only artifacts are frequent, and the ring has them. */
  onChange?(fact: TaskChange): void;
  /** Called after the facts of a record. */
  onRecord?(): void;
  /** The log has lost facts that the feed had folded, so its state no longer continues what viewers received. */
  onReset?(): void;
  /** The feed has failed; no further calls follow. */
  onFault?(fault: A2AError): void;
};

/** The part of a feed that a wait uses. */
export interface ListenableFeed {
  readonly fault: A2AError | undefined;
  /** Generation of the newest event; 0 before the first. */
  readonly generation: number;
  /** No event can follow. */
  readonly ended: boolean;
  listen(listener: FeedListener): void;
  unlisten(listener: FeedListener): void;
}
