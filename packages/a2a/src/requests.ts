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
  /** A push configuration came along. It may hold credentials, so it is kept out of everything that is stored with the message (C-21). */
  push?: NewPushConfig;
};

/** What a webhook is shown of itself: the scheme, and the credentials after it in the `Authorization` header. */
export type PushAuthentication = { scheme: string; credentials?: string };

/** Whom to tell about a task. `token` and `authentication.credentials` are secrets: no dialect writes them into an answer. */
export type PushConfig = {
  id: string;
  taskId: string;
  url: string;
  token?: string;
  authentication?: PushAuthentication;
};

/** A push configuration as a client asks for it: without the task, and without an id where the client leaves that to the door. */
export type NewPushConfig = Omit<PushConfig, 'id' | 'taskId'> & { id?: string };

export type CreatePushRequest = { taskId: string; config: NewPushConfig };

/** `id` is absent in forms that have one configuration a task. */
export type GetPushRequest = { taskId: string; id?: string };

export type ListPushRequest = {
  taskId: string;
  /** Absent: all. */
  pageSize?: number;
  /** What an earlier answer gave as `nextPageToken`. */
  pageToken?: string;
};

export type DeletePushRequest = { taskId: string; id: string };

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
