import type { Message, Metadata, TaskState } from './types.ts';

/** Requests in canonical form: the results of a dialect's `decode…` functions. */

export type SendRequest = {
  message: Message;
  /**
   * The task by the client's own id, which may not exist yet (legacy, C-9). If it is present, `message` has no task id and may have an
   * empty `messageId`.
   */
  chosenTaskId?: string;
  /** Request-level metadata, unchanged. */
  metadata?: Metadata;
  /** false: answer with the first snapshot of the task instead of waiting for its end. */
  blocking: boolean;
  /** Newest messages of the history to return. Absent: all. 0: none. */
  historyLength?: number;
  acceptedOutputModes?: string[];
  /** Draft 1.1: the message to an existing task is refused unless the task is at this generation. */
  ifGenerationMatch?: number;
  /** Draft 1.1: newest entries of the timeline to return. Absent: all. 0: none. */
  timelineLength?: number;
  /** An inline push configuration. It may hold credentials, so it is not stored with the message (C-21). */
  push?: NewPushConfig;
};

/** The `Authorization` header of a webhook call: the scheme and the credentials after it. */
export type PushAuthentication = { scheme: string; credentials?: string };

/** A webhook of a task. `token` and `authentication.credentials` are secrets: no dialect writes them into a response. */
export type PushConfig = {
  id: string;
  taskId: string;
  url: string;
  token?: string;
  authentication?: PushAuthentication;
};

/** A push configuration from a client. It does not name the task, and has no id if the client leaves that to the server. */
export type NewPushConfig = Omit<PushConfig, 'id' | 'taskId'> & { id?: string };

export type CreatePushRequest = { taskId: string; config: NewPushConfig };

/** `id` is absent in dialects with one configuration per task. */
export type GetPushRequest = { taskId: string; id?: string };

export type ListPushRequest = {
  taskId: string;
  /** Absent: all. */
  pageSize?: number;
  /** The `nextPageToken` of an earlier response. */
  pageToken?: string;
};

export type DeletePushRequest = { taskId: string; id: string };

export type GetTaskRequest = {
  taskId: string;
  historyLength?: number;
  /** Draft 1.1: newest entries of the timeline to return. Absent: all. 0: none. */
  timelineLength?: number;
  /** Draft 1.1: answer once the task is beyond this generation. */
  currentGeneration?: number;
};

export type CancelRequest = { taskId: string; metadata?: Metadata };

export type SubscribeRequest = { taskId: string };

export type ListTasksRequest = {
  contextId?: string;
  state?: TaskState;
  /** 1 to PAGE_SIZE_MAX. */
  pageSize: number;
  /** The `nextPageToken` of an earlier response. */
  pageToken?: string;
  historyLength?: number;
  /** Epoch milliseconds: only tasks whose status is of this time or later. */
  statusSinceMs?: number;
  includeArtifacts: boolean;
  /**
   * Only tasks that have this text in a question, in the beginning of the answer or in the reason of a failure, ignoring case. A2A has no
   * such member.
   */
  text?: string;
  /** Only tasks in which this agent worked, or whose messages name it. A2A has no such member. */
  agent?: string;
  /** Only tasks that took at least this long. A2A has no such member. */
  minDurationMs?: number;
};
