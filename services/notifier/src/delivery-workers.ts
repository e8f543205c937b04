import { sleepUnlessAborted } from '@hopline/log';

/** Longest wait of one timer. A longer wait uses several. */
const TIMER_MS_MAX = 60 * 60_000;

export type WorkerSignals = {
  /** Stops new deliveries; the one in flight may finish. */
  draining: AbortSignal;
  /** Cancels the delivery in flight as well. */
  cancelled: AbortSignal;
  /** True while another worker waits for a slot. */
  mustYield: () => boolean;
  /** True if the wait after the previous run is over. */
  hasWaited: boolean;
  /** Reports when the oldest event that waits for the webhook was stored, in epoch milliseconds; undefined if none waits. */
  waits: (eventAt: number | undefined) => void;
};

/**
 * Why a worker ended. `retryMs`: the delay after which it runs again. `failingSince`: start of its current failures in epoch milliseconds.
 * After a conflict it rejects with LogConflict, and while the log is unavailable with LogUnavailable.
 */
export type DeliveryEnd = 'finished' | 'stopped' | 'yielded' | { retryMs: number; failingSince?: number | undefined };

export type DeliveryWorkersOptions = {
  /** Number of workers that run at the same time. Others wait for a slot in the order of their arrival. */
  workersMax: number;
  run: (key: string, signals: WorkerSignals) => Promise<DeliveryEnd>;
  /** Returns the pause in milliseconds before a worker that rejected is restarted. */
  onError: (shard: number, error: unknown) => number;
  /** A worker starts to run (+1) or stops (-1). */
  onRunning?: (change: 1 | -1) => void;
  /** Epoch milliseconds; default Date.now. */
  now?: () => number;
};

type Worker = {
  readonly key: string;
  readonly shard: number;
  /** Revision of its configuration. */
  readonly revision: number;
  readonly draining: AbortController;
  readonly cancelled: AbortController;
  /** Resolves when it no longer runs. */
  done: Promise<void>;
  timer: NodeJS.Timeout | undefined;
  hasWaited: boolean;
  /** Epoch milliseconds; undefined while its deliveries succeed. */
  failingSince: number | undefined;
  /** Time of the oldest waiting event, as far as the worker knows. */
  eventAt: number | undefined;
  /** When the worker began to wait for a slot. An event may have been waiting since then. */
  queuedAt: number | undefined;
};

/**
 * One worker per webhook of this process's shards. A worker runs, waits for a slot, or waits for its retry. Memory grows only with the
 * number of webhooks.
 */
export class DeliveryWorkers {
  readonly #options: DeliveryWorkersOptions;
  readonly #workers = new Map<string, Worker>();
  /** Workers that wait for a slot, oldest first. */
  readonly #waiting = new Set<Worker>();
  /** Removed workers that may still be running, by key. Each promise resolves when its worker has ended. */
  readonly #ending = new Map<string, Promise<void>>();
  #running = 0;

  constructor(options: DeliveryWorkersOptions) {
    this.#options = options;
  }

  get size(): number {
    return this.#workers.size;
  }

  keys(): Iterable<string> {
    return this.#workers.keys();
  }

  /** Start of the failures of the webhook that has been failing the longest, in epoch milliseconds; undefined while none fails. */
  get failingSince(): number | undefined {
    let oldest: number | undefined;
    for (const { failingSince } of this.#workers.values())
      if (failingSince !== undefined && failingSince < (oldest ?? Number.POSITIVE_INFINITY)) oldest = failingSince;
    return oldest;
  }

  /**
   * Time since which the oldest event waits, as far as the workers know, in epoch milliseconds; undefined if none waits. Events of failing
   * webhooks do not count, because they would hide those that only wait for a slot.
   */
  get waitingSince(): number | undefined {
    let oldest: number | undefined;
    for (const { eventAt, queuedAt, failingSince } of this.#workers.values()) {
      if (failingSince !== undefined) continue;
      for (const at of [eventAt, queuedAt]) if (at !== undefined && at < (oldest ?? Number.POSITIVE_INFINITY)) oldest = at;
    }
    return oldest;
  }

  /** Starts the worker of a configuration. A worker of an older revision is cancelled. */
  start(key: string, shard: number, revision: number): void {
    const current = this.#workers.get(key);
    if (current !== undefined && current.revision >= revision) return;
    this.cancel(key);
    const worker: Worker = {
      key,
      shard,
      revision,
      draining: new AbortController(),
      cancelled: new AbortController(),
      // The previous worker must not write its last progress after this one has read it.
      done: this.#ending.get(key) ?? Promise.resolve(),
      timer: undefined,
      hasWaited: false,
      failingSince: undefined,
      eventAt: undefined,
      queuedAt: undefined,
    };
    this.#workers.set(key, worker);
    void worker.done.then(() => this.#enqueue(worker));
  }

  /** Removes the worker of a deleted configuration and cancels its delivery. */
  cancel(key: string): void {
    const worker = this.#workers.get(key);
    if (worker !== undefined) this.#remove(worker);
  }

  /** Drains the workers of a shard. A delivery in flight is cancelled after `graceMs`. */
  async release(shard: number, graceMs: number): Promise<void> {
    await this.#drain(
      [...this.#workers.values()].filter(worker => worker.shard === shard),
      graceMs,
    );
  }

  async stop(graceMs: number): Promise<void> {
    await this.#drain([...this.#workers.values()], graceMs);
  }

  async #drain(workers: Worker[], graceMs: number): Promise<void> {
    for (const worker of workers) {
      worker.draining.abort();
      // A removed worker must not start when another one ends, because the lease would be released without waiting for it.
      this.#waiting.delete(worker);
    }
    const all = Promise.all(workers.map(worker => worker.done));
    const grace = new AbortController();
    await Promise.race([all, sleepUnlessAborted(graceMs, grace.signal)]);
    grace.abort();
    for (const worker of workers) this.#remove(worker);
    await all;
  }

  #remove(worker: Worker): void {
    worker.draining.abort();
    worker.cancelled.abort();
    clearTimeout(worker.timer);
    this.#waiting.delete(worker);
    if (this.#workers.get(worker.key) === worker) this.#workers.delete(worker.key);
    const { key, done } = worker;
    this.#ending.set(key, done);
    void done.then(() => {
      if (this.#ending.get(key) === done) this.#ending.delete(key);
    });
  }

  #enqueue(worker: Worker): void {
    if (worker.draining.signal.aborted) return;
    this.#waiting.add(worker);
    worker.queuedAt = (this.#options.now ?? Date.now)();
    this.#fillSlots();
  }

  #fillSlots(): void {
    for (const worker of this.#waiting) {
      if (this.#running >= this.#options.workersMax) return;
      this.#waiting.delete(worker);
      worker.done = this.#run(worker);
    }
  }

  async #run(worker: Worker): Promise<void> {
    const { run, onError, onRunning } = this.#options;
    this.#running += 1;
    onRunning?.(1);
    worker.queuedAt = undefined;
    const mustYield = () => this.#waiting.size > 0;
    const waits = (eventAt: number | undefined) => {
      worker.eventAt = eventAt;
    };
    const { hasWaited } = worker;
    const signals = { draining: worker.draining.signal, cancelled: worker.cancelled.signal, mustYield, hasWaited, waits };
    worker.hasWaited = false;
    const waitMs = await run(worker.key, signals).then(
      end => {
        worker.hasWaited = typeof end === 'object';
        worker.failingSince = typeof end === 'object' ? end.failingSince : undefined;
        return waitMsOf(end);
      },
      error => (worker.draining.signal.aborted ? undefined : onError(worker.shard, error)),
    );
    this.#running -= 1;
    onRunning?.(-1);
    if (waitMs === undefined) this.#remove(worker);
    else this.#resumeAfter(worker, waitMs);
    this.#fillSlots();
  }

  #resumeAfter(worker: Worker, waitMs: number): void {
    if (worker.draining.signal.aborted) return;
    if (waitMs <= 0) {
      this.#enqueue(worker);
      return;
    }
    const partMs = Math.min(waitMs, TIMER_MS_MAX);
    worker.timer = setTimeout(() => this.#resumeAfter(worker, waitMs - partMs), partMs);
  }
}

/** How long a worker waits before it runs again, in milliseconds; undefined if it does not run again. */
function waitMsOf(end: DeliveryEnd): number | undefined {
  if (end === 'yielded') return 0;
  return typeof end === 'object' ? end.retryMs : undefined;
}
