import type { LIMITS } from '@hopline/a2a-server';
import type { Layout } from '@hopline/events';
import type { FollowOptions } from '@hopline/log';

/** Replicas of each service by name; `agent.<name>` is an agent. */
type Topology = Readonly<Record<string, number>>;

export type ClusterSettings = {
  topology: Topology;
  shards: number;
  /** Layouts of a log with several stream groups. Absent: one layout with one group. */
  layouts?: readonly Layout[];
  /** Replicas of each stream, for log-jetstream. Default 1. */
  replicas?: number;
  recordBytesMax: number;
  /** After this time a repeated message id is stored again. */
  duplicateWindowMs: number;
  ackWaitMs: number;
  leaseMs: number;
  heartbeatMs: number;
  inputTimeoutMs: number;
  authTimeoutMs: number;
  copyForwardAfterMs: number | undefined;
  /** Small, so that even a copy of a short task has several parts. */
  copyPartUnitsMax: number | undefined;
  /** Supervisors and agents hold text; `some`: only those in odd slots do. Absent: only relays hold text. */
  holdingProducers?: 'all' | 'some';
  /** Clients have callers, whose tasks are hidden from one another. */
  isAuthenticated?: true;
  /** Limits of ingress processes that override those of production. */
  limits?: Partial<typeof LIMITS>;
  /** Limits of followers over the wire. Absent: those of production. */
  follow?: Pick<FollowOptions, 'bufferRecordsMax' | 'bufferBytesMax' | 'tailCheckMs'>;
  /** When a server cuts off a process that reads too slowly. Absent: never. */
  slowConsumers?: { unreadBytesMax: number; writeDeadlineMs: number };
  /** Processes run the previous version until their slot is upgraded. */
  startsWithVersionBefore?: true;
};

/** Attempts at an item of work, and requeues that do not count as attempts. */
export const WORK_BOUNDS = { attemptsMax: 3, requeuesMax: 30 };
