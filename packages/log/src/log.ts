import type { DialectName, TaskState } from '@hopline/a2a';
import type { Owner, PendingRequest, Role } from '@hopline/events';
import type { FactLog } from './fact-log.ts';
import type { InputLog } from './input-log.ts';
import type { KeyValue } from './key-value.ts';
import type { WakeUps } from './wake-ups.ts';
import type { WorkQueue } from './work-queue.ts';

/** The seam between Hopline and its broker. `log-jetstream` is the real one, `@hopline/log/memory` its twin in tests; one contract suite runs on both. */
export interface Log {
  /** Fixed when the log was created. */
  readonly shards: number;
  /** Largest record the log takes, bytes. */
  readonly recordBytesMax: number;
  readonly inputs: InputLog;
  readonly facts: FactLog;
  readonly work: WorkQueue;
  readonly wakeUps: WakeUps;
  readonly leases: KeyValue<LeaseValue>;
  readonly tasks: KeyValue<TaskIndexEntry>;
  readonly agents: KeyValue<AgentEntry>;
  readonly messageIds: KeyValue<MessageIdEntry>;
  readonly contexts: KeyValue<ContextEntry>;
  /** Holds credentials of webhooks: kept apart from everything that is shown (C-21). */
  readonly pushConfigs: KeyValue<PushConfigEntry>;
  readonly pushProgress: KeyValue<PushProgressEntry>;
  /** Resolves when the log can be reached and its streams have a leader; rejects with LogUnavailable. For readiness. */
  check(): Promise<void>;
  close(): Promise<void>;
}

/** Keys: `relay.<instance>` (heartbeat) and `shard.<n>` (ownership), `notifier.…` and `notifier-shard.…`. A hint only: the fence is what a write expects. */
export type LeaseValue = {
  owner: string;
  /** Changes with every heartbeat of a process. */
  heartbeat?: number;
  /** Of a shard: every raw record up to this sequence is folded in. */
  checkpoint?: number;
};

/** Key: the task id. Written by the relay on state changes, never per chunk; before the first by the door that says the message, with generation and `first` 0. */
export type TaskIndexEntry = {
  contextId: string;
  /** Whose door lists it. */
  role: Role;
  owner?: Owner;
  state: TaskState;
  /** As in the task's newest record (`FactRecord`), as is `since`. */
  startSeq: number;
  startStoredAt?: number;
  generation: number;
  /** Epoch milliseconds of the state's change. */
  at: number;
  /** The question that waits for an answer. */
  inputRequest?: PendingRequest;
  /** The need of credentials that waits. */
  authRequest?: PendingRequest;
};

/** Key: the agent's name. Renewed by heartbeats; an entry whose `beat` stands still is a dead agent. */
export type AgentEntry = {
  name: string;
  description: string;
  url: string;
  skills: AgentSkill[];
  heartbeat: number;
};

export type AgentSkill = { id: string; name: string; description: string; tags: string[]; examples?: string[] };

/** Key: hash of owner, context and message id (S1-10), or of a task id that a client chose. The first one to be created decides the task. */
export type MessageIdEntry = { taskId: string; fingerprint: string };

/** Key: hash of owner and context. The tasks of a conversation, oldest first; a task is entered before its first message is said. */
export type ContextEntry = { tasks: string[] };
/** The newest of them are kept: a conversation's older tasks are no context any more. */
export const CONTEXT_TASKS_MAX = 20;

/** Key: `<taskId>.<base64url of the configuration's id>`. What a client asked to be told, and where. */
export type PushConfigEntry = {
  taskId: string;
  id: string;
  url: string;
  /** Sent back to the webhook in `X-A2A-Notification-Token`. Secret. */
  token?: string;
  /** `credentials` are secret. */
  authentication?: { scheme: string; credentials?: string };
  /** The form of the bodies: that of the client who asked. */
  dialect: DialectName;
  /** Only the task of the same owner is told about: an entry may have been there before the task. */
  owner?: Owner;
  /** Events after this generation are told; 0: all of them. */
  after: number;
  /**
   * Set while no task had the id: a client of the legacy form owns it, and may name the webhook first (S3-23). If no task of the same `owner` has begun by then, the entry
   * counts as absent; epoch milliseconds.
   */
  waitsUntil?: number;
};

/** Key: that of the configuration. Written by the notifier alone, each time on the revision it knows: who lost the shard without noticing is refused, and stops. */
export type PushProgressEntry = {
  /** Revision of the configuration that was followed: one that is written again is another one, and begins at its own `after`. */
  config: number;
  /** Every event up to this generation was delivered. */
  generation: number;
  /** Log sequence of the record that held it, 0 before the first: where to read on. */
  seq: number;
  /** The next delivery, begun or about to be, holds all events up to this generation as one: whoever repeats it says the same again. Absent: none was begun. */
  sending?: number;
  /** Deliveries of the next one that failed, and epoch milliseconds of the first of them. */
  failures: number;
  failingSince?: number;
  /** Not before this, epoch milliseconds. */
  retryAt?: number;
  /** Nothing more will be delivered: the task's end was, or the webhook was given up. */
  over?: 'delivered' | 'abandoned';
};
