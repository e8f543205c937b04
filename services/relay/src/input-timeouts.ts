import { type Question, shardOf } from '@hopline/events';
import { followBucket, type Log, type TaskIndexEntry } from '@hopline/log';
import { type Logger, taskLogger } from '@hopline/telemetry';

/** Deadlines closer together than this are met together, milliseconds: each look costs one step per waiting task. */
const LOOK_MS_MIN = 100;
/** A deadline that could not be told (another relay owns the shard, the log is away) is looked at again after this, milliseconds. */
const AGAIN_MS = 1_000;
/** Node's timers overflow after 24 days; a deadline beyond this is looked at on the way, milliseconds. */
const LOOK_MS_MAX = 60 * 60_000;

export type InputTimeoutsOptions = {
  log: Pick<Log, 'tasks' | 'inputs' | 'shards'>;
  /** Milliseconds from the status that asks. */
  timeoutMs: number;
  /** Whether this relay folds the shard now. A hint: two relays that say the same say it once. */
  owns: (shard: number) => boolean;
  /** Epoch milliseconds. */
  now: () => number;
  logger: Logger;
};

/**
 * Ends tasks whose client does not answer (S3-8). A deadline is not kept anywhere: it follows from the question in the task index, which every relay reads at its start, so it
 * survives all of them. What is due becomes an input of the task, because the order of the inputs decides between it and the answer.
 */
export class InputTimeouts {
  readonly #options: InputTimeoutsOptions;
  readonly #stop = new AbortController();
  /** The questions of all shards: a shard that is taken over later needs no reading. */
  readonly #waiting = new Map<string, Question>();
  #timer: NodeJS.Timeout | undefined;
  #lookAt = Number.POSITIVE_INFINITY;
  #looking = false;

  constructor(options: InputTimeoutsOptions) {
    this.#options = options;
    const following = followBucket(options.log.tasks, this.#stop.signal, {
      begin: () => this.#waiting.clear(),
      change: ({ key, value }) => this.#note(key, value),
      ready: () => {},
      lost: error => options.logger.warn({ err: error }, 'task index lost'),
    });
    // It goes on by itself after a loss.
    following.catch(() => {});
  }

  stop(): void {
    this.#stop.abort();
    clearTimeout(this.#timer);
  }

  #note(taskId: string, entry: TaskIndexEntry | undefined): void {
    if (entry?.asked === undefined) {
      this.#waiting.delete(taskId);
      return;
    }
    this.#waiting.set(taskId, entry.asked);
    this.#lookBy(entry.asked.at + this.#options.timeoutMs);
  }

  #lookBy(atMs: number): void {
    if (atMs >= this.#lookAt || this.#stop.signal.aborted) return;
    this.#lookAt = atMs;
    clearTimeout(this.#timer);
    const waitMs = Math.min(LOOK_MS_MAX, Math.max(LOOK_MS_MIN, atMs - this.#options.now()));
    this.#timer = setTimeout(() => void this.#look(), waitMs);
  }

  async #look(): Promise<void> {
    this.#lookAt = Number.POSITIVE_INFINITY;
    if (!this.#looking) {
      this.#looking = true;
      for (const [taskId, asked] of this.#due()) await this.#tell(taskId, asked);
      this.#looking = false;
    }
    this.#lookBy(this.#next());
  }

  #due(): [string, Question][] {
    const { timeoutMs, now, owns, log } = this.#options;
    const before = now() - timeoutMs;
    return [...this.#waiting].filter(([taskId, { at }]) => at <= before && owns(shardOf(taskId, log.shards)));
  }

  #next(): number {
    const { timeoutMs, now } = this.#options;
    const nowMs = now();
    let next = Number.POSITIVE_INFINITY;
    for (const { at } of this.#waiting.values()) {
      const dueAt = at + timeoutMs;
      next = Math.min(next, dueAt <= nowMs ? nowMs + AGAIN_MS : dueAt);
    }
    return next;
  }

  async #tell(taskId: string, { n }: Question): Promise<void> {
    const { log, now, logger } = this.#options;
    if (this.#waiting.get(taskId)?.n !== n || this.#stop.signal.aborted) return;
    try {
      const record = { v: 1, at: Math.round(now()), from: 'relay', input: { kind: 'timeout', question: n } } as const;
      await log.inputs.say(taskId, record, { id: `${taskId}:timeout:${n}` });
      if (this.#waiting.get(taskId)?.n === n) this.#waiting.delete(taskId);
    } catch (error) {
      taskLogger(logger, taskId).warn({ err: error }, 'input timeout could not be told');
    }
  }
}
