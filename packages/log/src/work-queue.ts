import type { Owner, Role, TraceCarrier, Work } from '@hopline/events';
import type { StoredFacts } from './fact-log.ts';

/** Work for supervisors and agents: each item goes to one worker at a time and stays until it is done. PROTOCOL.md section 6. */
export interface WorkQueue {
  /** How long the queue knows the id of an item, in milliseconds. */
  readonly duplicateWindowMs: number;

  /**
   * Queues an item; the same id is queued once within `duplicateWindowMs`. Retries like InputLog.append; rejects with LogFull if there is
   * no room in all that time. `duplicate`: the queue already knew the id.
   */
  request(role: Role, work: Work, options: { id: string; trace?: TraceCarrier }): Promise<{ duplicate: boolean }>;

  /**
   * Rejects with LogFull when a server should refuse new messages for the role: too many of its items wait, or the queue is so full that
   * the remaining room is kept for the calls of running tasks. Rejects with TenantFull if too many of its items belong to the owner's
   * tenant. Resolves if the state is unknown. The answer may be ROOM_READ_MS old.
   */
  requireRoom(role: Role, owner?: Owner): Promise<void>;

  /** Whether an item of the task waits or runs for the role, read from the leader. Dead letters count until they expire. */
  hasItem(role: Role, taskId: string): Promise<boolean>;

  /**
   * About how many items wait before the newest item of a task in its queue of the role. Undefined if a worker has taken that item, or if
   * the number is unknown. However many callers ask, it costs the log only a few requests per second for each queue, and one for each
   * waiting item.
   */
  ahead(role: Role, work: Pick<Work, 'taskId' | 'owner'>): Promise<number | undefined>;

  /**
   * Takes items of a role, at most `slots` at a time, until `signal` aborts and the running handlers have settled. How a handler
   * ends decides the item:
   * - it resolves: the item is done;
   * - it rejects: the item is delivered again, as a new attempt, after a bounded wait with jitter;
   * - it rejects with Requeued: the item is delivered again at once, and this delivery does not count as an attempt, up to
   *   `requeuesMax` times;
   * - it rejects with Superseded: the item is neither acknowledged nor requeued.
   *
   * The items of one tenant take at most a share of the slots, and tenants whose items wait take turns. Items without an owner may take
   * all slots. A tenant here is one of TENANT_QUEUES queues, so that few tenants share one.
   *
   * The item stays with the worker while its handler runs. If it is delivered to the same process again, the running handler continues and
   * no second one starts. The items of a process that has lost its connection go to another worker of the role within two seconds, and
   * those of a process that does not answer after ackWaitMs.
   */
  take(role: Role, options: TakeOptions, handler: (job: Job) => Promise<void>): Promise<void>;
}

export type TakeOptions = {
  slots: number;
  signal: AbortSignal;
  /** While it is closed, the worker takes no further items, but runs those that it has or that are on their way to it. */
  gate?: WorkGate | undefined;
};

/** Whether a worker can run items, and when this changes. */
export type WorkGate = {
  readonly isOpen: boolean;
  /** Calls `listener` after each change, until the returned function is called. */
  listen(listener: () => void): () => void;
};

export type Job = {
  work: Work;
  /** Stream sequence of the item. Two stored items of the same call differ in it. */
  item: number;
  /** Delivery count, 1-based. The output of a higher attempt replaces that of a lower one, however the lower one ended. */
  attempt: number;
  /** Earlier deliveries that do not count as attempts, because they were requeued or reached no worker; 0 to `requeuesMax`. */
  requeues: number;
  /**
   * True on deliveries after the last attempt: the handler only settles the item by recording why it failed. When it resolves,
   * the item is done. When it rejects or its process dies, the item is delivered again, SETTLE_DELIVERIES_MAX times in all, then
   * stays in the queue as a dead letter.
   */
  exhausted: boolean;
  /**
   * Whether a later delivery of the item has begun in another worker. The records may not show that, because the worker may have written
   * only inputs without facts. Absent if an item is never delivered to two workers at once.
   */
  isTakenOver?: () => Promise<boolean>;
  /**
   * Frees the worker's slot but keeps the item, because the work is done and only the confirmation of its end is missing. Absent: the slot
   * is freed when the handler ends.
   */
  leaveSlot?: () => void;
  /**
   * The newest record of the task that the requester of a fresh item knew, from which the worker follows the task. Absent: the worker must
   * read the log.
   */
  newest?: StoredFacts;
  trace?: TraceCarrier;
};

/** Records larger than this, as JSON, are not repeated in a work item. */
export const WORK_NEWEST_BYTES_MAX = 16 * 1024;
/** If an item waited longer than this, its record is ignored, because the task may have ended in the meantime. */
export const WORK_NEWEST_MS_MAX = 2_000;

/** The member `newest` of a work item, for spreading. */
export function newestForWork({ seq, record }: StoredFacts): Pick<Work, 'newest'> {
  return Buffer.byteLength(JSON.stringify(record)) <= WORK_NEWEST_BYTES_MAX ? { newest: { seq, record } } : {};
}

/**
 * The record with which the worker of an item may begin, for spreading. Only the first delivery has it, and only if item and record were
 * stored a moment ago. A later delivery reads the log, because another worker may have written. So does a delivery whose request was
 * delayed or followed a late acknowledgement, because another relay may have requested the work in the meantime.
 */
export function newestForJob({ newest }: Work, deliveries: number, storedAtMs: number): Pick<Job, 'newest'> {
  if (newest === undefined || deliveries > 1) return {};
  const since = Math.min(storedAtMs, newest.record.aggregate.at);
  // Uses the absolute difference. Otherwise, if this clock were far behind that of NATS or the relay, every item would look fresh.
  return Math.abs(Date.now() - since) <= WORK_NEWEST_MS_MAX ? { newest } : {};
}

/** Items of one role that may wait or run before servers refuse new messages for it. */
export const ROLE_ITEMS_MAX_DEFAULT = 20_000;
/** Items of one tenant of one role that may wait or run before servers refuse its new messages for that role. */
export const TENANT_ITEMS_MAX_DEFAULT = 10_000;
/** Share of a worker's slots that the items of one tenant may take. */
export const TENANT_SLOTS_SHARE_DEFAULT = 0.75;
/** Maximum age of an answer of `requireRoom`. */
export const ROOM_READ_MS = 1_000;
/** Attempts at an item before it is settled as failed. */
export const ATTEMPTS_MAX_DEFAULT = 3;
/**
 * Number of requeued deliveries of one item that do not count as attempts; each further one does. That is enough for three rolling updates
 * of ten replicas in which every replica has the item when it stops, and it still bounds work that itself causes the stops (because a probe
 * fails).
 */
export const REQUEUES_MAX_DEFAULT = 30;
/**
 * Deliveries to settle an item after its last attempt. There are several, because a log that is unavailable for a moment must not leave a
 * task open.
 */
export const SETTLE_DELIVERIES_MAX = 3;
/** Wait before a rejected item is delivered again: minimum, base (doubled per failure, with full jitter) and maximum. */
export const REDELIVERY_MS_MIN = 100;
export const REDELIVERY_MS_BASE = 500;
export const REDELIVERY_MS_MAX = 15_000;

export type DeliveryBounds = { attemptsMax: number; requeuesMax: number };

/** Upper bound of the deliveries of one item. */
export function deliveriesMax({ attemptsMax, requeuesMax }: DeliveryBounds): number {
  return attemptsMax + requeuesMax + SETTLE_DELIVERIES_MAX;
}

/**
 * Purpose of a delivery: an attempt (`run`), the settlement of an item after its last attempt (`settle`), or none (`dead`).
 * `delivery` is 1-based; `requeues` of the deliveries before it were requeued.
 */
export function purposeOf(
  delivery: number,
  requeues: number,
  { attemptsMax, requeuesMax }: DeliveryBounds,
): 'run' | 'settle' | 'dead' {
  const attempts = delivery - Math.min(requeues, requeuesMax);
  if (attempts <= attemptsMax) return 'run';
  return attempts <= attemptsMax + SETTLE_DELIVERIES_MAX ? 'settle' : 'dead';
}
