import type { TaskState } from '@hopline/a2a';
import type { Owner, PendingRequest, Role } from '@hopline/events';
import type { ListedTask } from './listed-task.ts';

/**
 * Key: the task id. The relay writes it on state changes and once per MiB of records, never per chunk. The server writes it with
 * generation and `startSeq` 0 before it appends the first message.
 */
export type TaskIndexEntry = {
  contextId: string;
  /** The server of this role lists the task. */
  role: Role;
  owner?: Owner;
  state: TaskState;
  /** See FactRecord: the value in the task's newest record; 0 if it has none. */
  startSeq: number;
  /** See FactRecord: the value in the task's newest record; absent if it has none. */
  startStoredAt?: number;
  generation: number;
  /** The value in the task's newest record at the time of the entry: every input of the task up to it is folded. */
  foldedSeq?: number;
  /** Log sequence of that record, and the bytes in the log of the task's records up to it, without copies. */
  seq?: number;
  storedBytes?: number;
  /** Epoch milliseconds of the state's change. */
  at: number;
  /** The request for input that waits for an answer, if any. */
  inputRequest?: PendingRequest;
  /** The request for credentials that is waiting, if any. */
  authRequest?: PendingRequest;
  /** The part of an ended task that lists show; only in the task lists. Absent in entries of earlier versions, and if it could not be read. */
  listed?: ListedTask;
};
