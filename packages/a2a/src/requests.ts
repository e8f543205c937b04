import type { Message, Metadata, TaskState } from './types.ts';

/** Requests in their canonical form: what a dialect's `decode…` makes of the params. */

export type SendRequest = {
  message: Message;
  /** The task the message is for by the client's own id, which may name none yet (legacy, C-9). Then `message` has no task id, and maybe an empty `messageId`. */
  ownTaskId?: string;
  /** Request-level metadata, as it came (S1-8). */
  metadata?: Metadata;
  /** false: answer with the first snapshot of the task instead of waiting for its end (S1-2, S1-3). */
  blocking: boolean;
  /** Newest messages of the history to return; absent: all, 0: none. */
  historyLength?: number;
  acceptedOutputModes?: string[];
  /** An inline push configuration came along. It may hold credentials, so it is kept out of everything that is stored with the message (C-21). */
  push?: unknown;
};

export type GetTaskRequest = { taskId: string; historyLength?: number };

export type CancelRequest = { taskId: string; metadata?: Metadata };

export type SubscribeRequest = { taskId: string };

export type ListTasksRequest = {
  contextId?: string;
  state?: TaskState;
  /** 1 to PAGE_SIZE_MAX. */
  pageSize: number;
  /** What an earlier answer gave as `nextPageToken`. */
  pageToken?: string;
  historyLength?: number;
  /** Only tasks whose status is of this time or later; epoch milliseconds. */
  statusSinceMs?: number;
  includeArtifacts: boolean;
};
