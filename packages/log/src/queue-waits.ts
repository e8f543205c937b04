import type { Role, Work } from '@hopline/events';
import type { WorkQueue } from './work-queue.ts';

/** A turn that has waited this long for a slot gets a notice. Most turns begin within a few milliseconds. */
export const QUEUE_NOTICE_AFTER_MS = 1_000;
/** Shortest time between two notices of one wait. */
export const QUEUE_NOTICE_MS_MIN = 3_000;
/** A further notice follows when at least this share of the requests ahead is done, so that even a long wait causes few notices. */
const NEWS_SHARE = 0.1;
const CHECK_MS = 1_000;
const CHECKS_AT_ONCE_MAX = 32;

/** A work item whose worker has not yet shown that it is alive. */
type QueueWait = Pick<Work, 'taskId' | 'owner'> & {
  role: Role;
  /** True if a notice of an earlier process stands. */
  wasShown?: boolean;
  /** Shows about how many requests are ahead. */
  show: (ahead: number) => void;
  /** A notice stands, and the wait is over. */
  clear: () => void;
};

type QueueWaitsOptions = {
  work: Pick<WorkQueue, 'ahead'>;
  /** +1 when a client begins to see a wait, -1 when that wait is over. */
  onWaiting: (change: 1 | -1, role: Role) => void;
  /** Monotonic milliseconds. */
  now: () => number;
};

type OpenWait = QueueWait & { sinceMs: number; isCounted: boolean; shown: number | undefined; shownAtMs: number };

/**
 * The items for which this process waits until a worker takes them. It asks for the places of those that wait longer than
 * QUEUE_NOTICE_AFTER_MS; until then a wait costs only a map entry.
 */
export class QueueWaits {
  readonly #options: QueueWaitsOptions;
  /** Oldest first. */
  readonly #waits = new Map<string, OpenWait>();
  #timer: NodeJS.Timeout | undefined;
  #isStopped = false;

  constructor(options: QueueWaitsOptions) {
    this.#options = options;
  }

  /** `key`: unique in the process. */
  add(key: string, wait: QueueWait): void {
    if (this.#isStopped || this.#waits.has(key)) return;
    const shown = wait.wasShown === true ? Number.POSITIVE_INFINITY : undefined;
    const times = { sinceMs: this.#options.now(), shownAtMs: Number.NEGATIVE_INFINITY };
    this.#waits.set(key, { ...wait, ...times, isCounted: false, shown });
    this.#schedule();
  }

  /** The turn has begun. */
  end(key: string): void {
    const wait = this.#waits.get(key);
    this.drop(key);
    if (wait?.shown !== undefined) wait.clear();
  }

  /** This process no longer waits for the turn. */
  drop(key: string): void {
    const wait = this.#waits.get(key);
    this.#waits.delete(key);
    if (wait?.isCounted === true) this.#options.onWaiting(-1, wait.role);
  }

  stop(): void {
    this.#isStopped = true;
    clearTimeout(this.#timer);
    for (const key of [...this.#waits.keys()]) this.drop(key);
  }

  #schedule(): void {
    if (this.#timer !== undefined || this.#isStopped || this.#waits.size === 0) return;
    // A process that has nothing else to do may end.
    this.#timer = setTimeout(() => void this.#check(), CHECK_MS).unref();
  }

  async #check(): Promise<void> {
    const nowMs = this.#options.now();
    let batch: Promise<void>[] = [];
    for (const [key, wait] of this.#waits) {
      if (nowMs - wait.sinceMs < QUEUE_NOTICE_AFTER_MS || this.#isStopped) break;
      batch.push(this.#look(key, wait));
      if (batch.length < CHECKS_AT_ONCE_MAX) continue;
      await Promise.all(batch);
      batch = [];
    }
    await Promise.all(batch);
    this.#timer = undefined;
    this.#schedule();
  }

  async #look(key: string, wait: OpenWait): Promise<void> {
    const { work, now, onWaiting } = this.#options;
    // Without an answer the next check asks again.
    const ahead = await work.ahead(wait.role, wait).catch(() => 'unknown' as const);
    if (this.#waits.get(key) !== wait || ahead === 'unknown') return;
    if (ahead === undefined) return this.end(key);
    if (!wait.isCounted) onWaiting(1, wait.role);
    wait.isCounted = true;
    if (now() - wait.shownAtMs < QUEUE_NOTICE_MS_MIN || !isNews(ahead, wait.shown)) return;
    wait.shown = ahead;
    wait.shownAtMs = now();
    wait.show(ahead);
  }
}

/** A place never moves back, because later requests wait behind this one. A larger estimate is only less exact. */
function isNews(ahead: number, shown: number | undefined): boolean {
  return shown === undefined || shown === Number.POSITIVE_INFINITY || shown - ahead >= Math.max(1, shown * NEWS_SHARE);
}
