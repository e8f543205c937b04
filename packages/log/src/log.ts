import type { AgentSkill, CardReport, DialectName } from '@hopline/a2a';
import type { Layouts, Owner } from '@hopline/events';
import type { FactLog, RecordMark } from './fact-log.ts';
import type { InputLog } from './input-log.ts';
import type { KeyValue } from './key-value.ts';
import type { Presence } from './presence.ts';
import type { TaskIndexEntry } from './task-index-entry.ts';
import type { TaskListValue } from './task-lists.ts';
import type { WakeUps } from './wake-ups.ts';
import type { WorkQueue } from './work-queue.ts';

/**
 * The interface between Hopline and its broker. `log-jetstream` implements it over NATS, and `@hopline/log/memory` implements it in memory
 * for tests. One contract suite runs on both.
 */
export interface Log {
  /** Shards and stream groups over time. When a layout is added, another value replaces this one, long before that layout begins. */
  readonly layouts: Layouts;
  /** Number of shards of all layouts together, which may grow. */
  readonly shards: number;
  /** Largest record that the log accepts. */
  readonly recordBytesMax: number;
  readonly inputs: InputLog;
  readonly facts: FactLog;
  readonly work: WorkQueue;
  readonly wakeUps: WakeUps;
  readonly presence: Presence;
  readonly leases: KeyValue<LeaseValue>;
  /** By task id. */
  readonly tasks: KeyValue<TaskIndexEntry>;
  /** Keyed by owner and shard. */
  readonly taskLists: KeyValue<TaskListValue>;
  readonly agents: KeyValue<AgentRegistration>;
  readonly messageIds: KeyValue<MessageIdEntry>;
  readonly contexts: KeyValue<ContextEntry>;
  /** The credentials of webhooks, which must never appear in output. They are stored separately from everything else. */
  readonly pushConfigs: KeyValue<PushConfigEntry>;
  readonly pushProgress: KeyValue<PushProgressEntry>;
  /**
   * Resolves if the log is reachable and its streams have a leader (for a sub-agent, if a relay reads for it); otherwise rejects with
   * LogUnavailable. For readiness probes.
   */
  check(): Promise<void>;
  /**
   * Rejects with LogUnavailable if a stream did not store the last append of this process, for example because the server's disk was full.
   * Sends no request. For readiness probes.
   */
  checkAppends(): Promise<void>;
  /**
   * Removes the work, the inputs and the facts of a task, and resolves with the numbers of records. Only the administrator of the log may
   * call it, not a service. The task must have ended; records that a worker appends later stay. Idempotent.
   */
  purgeTask(taskId: string): Promise<ErasedRecords>;
  close(): Promise<void>;
}

export type ErasedRecords = { work: number; inputs: number; facts: number };

/**
 * Keys: `relay.<instance>` (heartbeat) and `shard.<n>` (ownership), `notifier.…` and `notifier-shard.…`. Leases are only a hint: the
 * expected sequence of a write is the fence.
 */
export type LeaseValue = Partial<ShardProgress> & {
  owner: string;
  /** Changes with every heartbeat of a process. */
  heartbeat?: number;
  /** Set in the last heartbeat of a process that is stopping. The others divide its shards while it releases them. */
  leaving?: true;
};

/** The progress of a shard. The checkpoint is valid only while the log has `newest`. */
export type ShardProgress = {
  /** Every raw record up to this sequence is folded in. */
  checkpoint: number;
  /** The newest record of facts that the owner stored. */
  newest?: RecordMark;
  /**
   * Present after the log has lost records of the shard, until the checkpoint has passed this sequence. Raw records up to it are folded
   * again if their facts are gone.
   */
  refoldTo?: number;
  /** `leadership` of the stream of facts when the owner took the shard. Absent if the server does not report it. */
  leadership?: string;
  /** An append had not been answered when the owner stopped, so the log may have stored and then lost a record that no mark names. */
  isInDoubt?: true;
  /**
   * The log may have lost records of the shard that no mark names. A task whose newest record has folded inputs only up to this raw sequence
   * continues at a generation that no client can have received.
   */
  leapTo?: number;
  /** Every task of the shard is in the task lists. A relay of an earlier version does not set this member. */
  listed?: true;
  /**
   * When the bucket of these lists was created, in epoch milliseconds. If the bucket was lost and created again, the tasks are not listed
   * in it.
   */
  listedIn?: number;
  /**
   * Other records that the log may have lost, at most UNPROVEN_MAX. Present for a shard that starts again in the same process, and in the
   * lease of a shard that its owner has released.
   */
  unproven?: readonly RecordMark[];
};

/**
 * Key: `<agent>.<instance>`, one for each running process of the agent. An instance whose `heartbeat` no longer changes is not
 * live.
 */
export type AgentRegistration = {
  name: string;
  description: string;
  url: string;
  skills: AgentSkill[];
  /** True if the agents file makes it the default agent (`defaultAgentOf`). */
  default?: true;
  /** Why the agent does not answer this instance, as a word of a closed list such as `ECONNREFUSED`. Absent while it answers. */
  fault?: string;
  /** Cause of the newest failed turn as a word of a closed list such as `http_500`, if the last turns of this instance have all failed. */
  failing?: string;
  /** Shown to people. Absent: the agent has no server of its own, or a sub-agent of an earlier version has written the entry. */
  card?: CardReport;
  /** Epoch milliseconds of the newest heartbeat, by the clock of the instance. */
  heartbeat: number;
};

/** Key: hash of owner, context and message id, or of a task id that a client chose. The first writer determines the task id. */
export type MessageIdEntry = { taskId: string; fingerprint: string };

/** Key: hash of owner and context. The tasks of a context, oldest first; a task joins before its first message is appended. */
export type ContextEntry = { tasks: string[] };
/**
 * The newest tasks of a context; older ones are dropped. The limit is twice the number of one-turn tasks that fill a context history,
 * because some of the tasks may have a message that was never stored. Each takes 39 bytes of the entry, and of the first record of each
 * later task.
 */
export const CONTEXT_TASKS_MAX = 100;

/** Key: `<taskId>.<base64url of the configuration id>`. A webhook that a client registered for the events of a task. */
export type PushConfigEntry = {
  taskId: string;
  id: string;
  url: string;
  /** Sent back to the webhook in `X-A2A-Notification-Token`. Secret. */
  token?: string;
  /** `credentials` are secret. */
  authentication?: { scheme: string; credentials?: string };
  /**
   * The secrets, encrypted with HOPLINE_SECRETS_KEY. In the bucket this member replaces them. Elsewhere it is present only if no key could
   * decrypt it.
   */
  sealed?: string;
  /** Dialect of the bodies: the one of the client that created the configuration. */
  dialect: DialectName;
  /** Only events of a task with the same owner are delivered, because the entry may be older than the task. */
  owner?: Owner;
  /** Events after this generation are delivered; 0: all. */
  after: number;
  /**
   * Set if the task did not exist yet: clients of the legacy dialect choose the task id and may register the webhook first. If no task of
   * the same `owner` has started by this time, in epoch milliseconds, the configuration has expired.
   */
  waitsUntil?: number;
  /** Bytes that count for the owner, in the key of the count entry (webhookCountKey). Absent in webhooks of earlier versions, which have no count entry. */
  bytes?: number;
};

/**
 * Key: that of the configuration. Only the notifier writes it. Each write names the previous revision, so a notifier that has lost its
 * shard without noticing fails and stops.
 */
export type PushProgressEntry = {
  /** Revision of the configuration. A configuration that is written again gets a new revision, and delivery begins at its `after`. */
  config: number;
  /** Every event up to this generation was delivered. */
  generation: number;
  /** Log sequence of the record with that event, from which reading continues; 0 before the first event. */
  seq: number;
  /**
   * Last generation of the delivery that has begun or is about to begin, so that a repetition sends the same events. Absent if no delivery
   * has begun.
   */
  sending?: number;
  /** Number of failed tries of the next delivery, and the time of the first failure in epoch milliseconds. */
  failures: number;
  failingSince?: number;
  /** Time of the next try in epoch milliseconds, and the wait before it. A notifier whose clock differs waits no longer than this. */
  retryAt?: number;
  retryMs?: number;
  /** Set if nothing more is delivered, because the end of the task was delivered or the webhook was abandoned. */
  over?: 'delivered' | 'abandoned';
};
