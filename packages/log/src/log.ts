import type { TaskState } from '@hopline/a2a';
import type { Role } from '@hopline/events';
import type { FactLog } from './fact-log.ts';
import type { InputLog } from './input-log.ts';
import type { KeyValue } from './key-value.ts';
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
  readonly leases: KeyValue<LeaseValue>;
  readonly tasks: KeyValue<TaskIndexEntry>;
  readonly agents: KeyValue<AgentEntry>;
  readonly messageIds: KeyValue<MessageIdEntry>;
  /** Resolves when the log can be reached and its streams have a leader; rejects with LogUnavailable. For readiness. */
  check(): Promise<void>;
  close(): Promise<void>;
}

/** Keys: `relay.<instance>` (heartbeat) and `shard.<nn>` (ownership). A hint only: the fence is the append's expected sequence. */
export type LeaseValue = {
  owner: string;
  /** Changes with every heartbeat of a relay. */
  beat?: number;
  /** Of a shard: every raw record up to this sequence is folded in. */
  checkpoint?: number;
};

/** Key: the task id. Written on state changes, never per chunk. */
export type TaskIndexEntry = {
  contextId: string;
  /** Whose door lists it. */
  role: Role;
  state: TaskState;
  /** Log sequence of the task's first record. */
  first: number;
  generation: number;
  /** Epoch milliseconds of the state's change. */
  at: number;
};

/** Key: the agent's name. Renewed by heartbeats; an entry whose `beat` stands still is a dead agent. */
export type AgentEntry = {
  name: string;
  description: string;
  url: string;
  skills: AgentSkill[];
  beat: number;
};

export type AgentSkill = { id: string; name: string; description: string; tags: string[]; examples?: string[] };

/** Key: hash of context and message id (S1-10). The first one to be created decides the task. */
export type MessageIdEntry = { taskId: string; fingerprint: string };
