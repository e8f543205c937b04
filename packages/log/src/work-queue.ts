import type { Role, TraceCarrier, Work } from '@hopline/events';

/** Work for supervisors and agents: each item goes to one worker at a time and stays until it is done. PROTOCOL.md section 6. */
export interface WorkQueue {
  /** Queues an item; the same id is queued once within the duplicate window. Retries as InputLog.say does. */
  request(role: Role, work: Work, options: { id: string; trace?: TraceCarrier }): Promise<void>;

  /**
   * Takes items of a role, at most `slots` at a time, until `signal` aborts and the running handlers have settled. A handler that resolves has done its item;
   * one that rejects gives it back, to be delivered again (a new attempt) after a bounded, jittered wait; one that rejects with HandedBack gives it back at once,
   * and that delivery uses up none of the attempts, HAND_BACKS_MAX_DEFAULT times; one that rejects with Superseded settles nothing.
   * While a handler runs the item is kept alive, and should it be delivered to the same process again (its keep-alives were lost), the handler goes on and nobody
   * starts a second one. The item of a dead process is delivered again after ackWaitMs.
   */
  take(role: Role, options: { slots: number; signal: AbortSignal }, handler: (job: Job) => Promise<void>): Promise<void>;
}

export type Job = {
  work: Work;
  /** Delivery count, 1-based: whatever ended the deliveries before, a higher one replaces what a lower one said. */
  attempt: number;
  /** How many of the deliveries before were handed back in order and therefore count as no attempt; 0 to HAND_BACKS_MAX_DEFAULT. */
  requeues: number;
  /**
   * True on deliveries after the last allowed attempt: the handler only settles the item (says why it failed). Once it resolves the item is gone;
   * while it rejects, or its process dies, it comes again, at most SETTLE_DELIVERIES_MAX times, then stays in the queue as a dead letter.
   */
  exhausted: boolean;
  trace?: TraceCarrier;
};

/** Attempts a worker gets at an item before it is settled as failed. */
export const ATTEMPTS_MAX_DEFAULT = 3;
/**
 * Deliveries of one item that are handed back in order without using up an attempt; each one after them counts. Room for three rolling updates of ten replicas in which the item
 * meets every replica that is about to go, and an end for work that somehow gets its process stopped in order each time (a probe that fails because of it).
 */
export const REQUEUES_MAX_DEFAULT = 30;
/** Deliveries of an item whose attempts are used up: a log that is away for a moment must not leave a task without its end. */
export const SETTLE_DELIVERIES_MAX = 3;
/** Wait before a rejected item is delivered again: at least, doubled (with full jitter) per delivery, at most. */
export const REDELIVERY_MS_MIN = 100;
export const REDELIVERY_MS_BASE = 500;
export const REDELIVERY_MS_MAX = 15_000;

export type DeliveryBounds = { attemptsMax: number; requeuesMax: number };

/** How often an item is delivered at all. */
export function deliveriesMax({ attemptsMax, requeuesMax }: DeliveryBounds): number {
  return attemptsMax + requeuesMax + SETTLE_DELIVERIES_MAX;
}

/**
 * What a delivery is for: an attempt (`run`), the end of an item whose attempts are used up (`settle`), or nothing any more (`dead`).
 * `delivery` is 1-based; `requeues` of the deliveries before it were handed back in order.
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
