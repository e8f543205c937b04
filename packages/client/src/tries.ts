import { fullJitterMs } from '@hopline/a2a/client';
import { FailedTry } from './failed-try.ts';
import type { CallOptions } from './notice.ts';
import { sleep } from './sleep.ts';

/** Bounds of the retries of one call. */
export type RetryLimits = {
  /** Consecutive tries without progress before the last error is thrown. */
  triesMax: number;
  /** Like `triesMax`, for the time in which no server has ever responded, because a wrong address must fail soon. */
  unreachedTriesMax: number;
  /** Time from the first consecutive failure to the start of the last try. The time in which the machine sleeps does not count. */
  totalMsMax: number;
  /** Upper bound of the delay after the first failure, doubled after each further one. */
  baseMs: number;
  /** Upper bound of every delay, to which the delay that a server requests is added. */
  waitMsMax: number;
};

/** Twenty tries take about two minutes: enough for a restart or a rollout behind a load balancer. */
export const RETRY_LIMITS: RetryLimits = {
  triesMax: 20,
  unreachedTriesMax: 5,
  totalMsMax: 120_000,
  baseMs: 250,
  waitMsMax: 15_000,
};

/** A stream that stays open this long counts as progress even without an event, because a task may wait for days. */
export const STEADY_MS = 10_000;

/**
 * Counts the consecutive tries of one call without progress and computes delays. Times are arguments, milliseconds of any clock.
 */
export class Tries {
  readonly #limits: RetryLimits;
  readonly #random: () => number;
  #failed = 0;
  #failingSinceMs = 0;
  #openedMs = Number.POSITIVE_INFINITY;
  #progressed = false;
  #reached = false;

  constructor(limits: RetryLimits, random: () => number = Math.random) {
    this.#limits = limits;
    this.#random = random;
  }

  /** Failed tries since the last progress. */
  get failed(): number {
    return this.#failed;
  }

  opened(nowMs: number): void {
    this.#openedMs = nowMs;
  }

  progress(): void {
    this.#progressed = true;
  }

  /** Excludes a time in which the process stood still from the time of its tries. */
  stoodStill(ms: number): void {
    this.#failingSinceMs += ms;
  }

  /** Milliseconds before the next try. Throws the error if no further try is allowed. */
  waitMs({ error, delayMs = 0, reached }: FailedTry, nowMs: number): number {
    this.#reached ||= reached;
    if (this.#progressed || nowMs - this.#openedMs >= STEADY_MS) this.#failed = 0;
    this.#progressed = false;
    this.#openedMs = Number.POSITIVE_INFINITY;
    if (this.#failed === 0) this.#failingSinceMs = nowMs;
    this.#failed += 1;
    const { triesMax, unreachedTriesMax, totalMsMax, baseMs, waitMsMax } = this.#limits;
    const waitMs = delayMs + fullJitterMs(this.#failed, baseMs, waitMsMax, this.#random);
    const last =
      this.#failed >= (this.#reached ? triesMax : unreachedTriesMax) || nowMs + waitMs - this.#failingSinceMs > totalMsMax;
    if (!error.retryable || last) throw error;
    return waitMs;
  }
}

/** Waits until the next try may start. Rethrows an error that must not be retried, and throws the reason of an aborted signal. */
export async function pause(tries: Tries, thrown: unknown, { signal, onNotice }: CallOptions): Promise<void> {
  signal?.throwIfAborted();
  if (!(thrown instanceof FailedTry)) throw thrown;
  const waitMs = tries.waitMs(thrown, performance.now());
  onNotice?.({ kind: 'retry', error: thrown.error, tries: tries.failed, waitMs });
  // The network was the cause, unless the server has asked for the delay.
  const onOnline = thrown.delayMs === undefined ? () => tries.progress() : undefined;
  const beganMs = performance.now();
  await sleep(waitMs, signal, onOnline);
  // A machine that sleeps, and a hidden page whose timers the browser slows down, had no time for tries.
  tries.stoodStill(Math.max(0, performance.now() - beganMs - waitMs));
}
