import { isTerminal } from '@hopline/a2a';
import { type RelayInput, shardOf } from '@hopline/events';
import { followBucket, type Log, type TaskIndexEntry } from '@hopline/log';
import { type Logger, taskLogger } from '@hopline/telemetry';

/** Deadlines closer together than this are met together, milliseconds: each look costs one step per waiting task. */
const LOOK_MS_MIN = 100;
/** A deadline that could not be told (another relay owns the shard, the log is away) is looked at again after this, milliseconds. */
const AGAIN_MS = 1_000;
/** Node's timers overflow after 24 days; a deadline beyond this is looked at on the way, milliseconds. */
const LOOK_MS_MAX = 60 * 60_000;

/** What is to be said of a task, and when (epoch milliseconds). `name` is unique in the task: it is said once, by whomever. */
type Deadline = { at: number; name: string; input: RelayInput };

/** What the index says of a task makes a deadline, or none. */
export type DeadlineRule = (entry: TaskIndexEntry) => Deadline | undefined;

/** Ends a task whose client does not answer (S3-8), `timeoutMs` after the status that asks. */
export function inputTimeout(timeoutMs: number): DeadlineRule {
  return ({ inputRequest: asked }) =>
    asked && { at: asked.at + timeoutMs, name: `timeout:${asked.n}`, input: { kind: 'timeout', request: asked.n } };
}

/** Ends a task that gets no credentials, `timeoutMs` after the status that asks for them. */
export function authTimeout(timeoutMs: number): DeadlineRule {
  return ({ authRequest: asked }) =>
    asked && { at: asked.at + timeoutMs, name: `auth-timeout:${asked.n}`, input: { kind: 'auth-timeout', request: asked.n } };
}

/** Has the facts of an open task stored again, `afterMs` after they were stored last (S4-44). */
export function copyForwardRule(afterMs: number): DeadlineRule {
  return ({ state, generation, startStoredAt: since = 0 }) => {
    const isOpen = generation > 0 && !isTerminal(state);
    return isOpen
      ? { at: since + afterMs, name: `copy-forward:${since}`, input: { kind: 'copy-forward', startStoredAt: since } }
      : undefined;
  };
}

export type TaskDeadlinesOptions = {
  log: Pick<Log, 'tasks' | 'inputs' | 'shards'>;
  rules: readonly DeadlineRule[];
  /** Whether this relay folds the shard now. A hint: two relays that say the same say it once. */
  owns: (shard: number) => boolean;
  /** Epoch milliseconds. */
  now: () => number;
  logger: Logger;
};

/**
 * What the passing of time does to tasks. A deadline is not kept anywhere: it follows from the task index, which every relay reads at its start, so it survives all of them. What is due becomes an input
 * of the task, because the order of the inputs decides between it and what a client or an agent says.
 */
export class TaskDeadlines {
  readonly #options: TaskDeadlinesOptions;
  readonly #stop = new AbortController();
  /** Of all shards: a shard that is taken over later needs no reading. */
  readonly #waiting = new Map<string, Deadline[]>();
  #timer: NodeJS.Timeout | undefined;
  #lookAt = Number.POSITIVE_INFINITY;
  #looking = false;

  constructor(options: TaskDeadlinesOptions) {
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
    const deadlines = entry === undefined ? [] : this.#options.rules.flatMap(rule => rule(entry) ?? []);
    if (deadlines.length === 0) this.#waiting.delete(taskId);
    else this.#waiting.set(taskId, deadlines);
    for (const { at } of deadlines) this.#lookBy(at);
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
      for (const [taskId, deadline] of this.#due()) await this.#tell(taskId, deadline);
      this.#looking = false;
    }
    this.#lookBy(this.#next());
  }

  #due(): [string, Deadline][] {
    const { now, owns, log } = this.#options;
    const nowMs = now();
    const due: [string, Deadline][] = [];
    for (const [taskId, deadlines] of this.#waiting) {
      for (const deadline of deadlines)
        if (deadline.at <= nowMs && owns(shardOf(taskId, log.shards))) due.push([taskId, deadline]);
    }
    return due;
  }

  #next(): number {
    const nowMs = this.#options.now();
    let next = Number.POSITIVE_INFINITY;
    for (const deadlines of this.#waiting.values()) {
      for (const { at } of deadlines) next = Math.min(next, at <= nowMs ? nowMs + AGAIN_MS : at);
    }
    return next;
  }

  async #tell(taskId: string, { name, input }: Deadline): Promise<void> {
    const { log, now, logger } = this.#options;
    if (!this.#isDue(taskId, name) || this.#stop.signal.aborted) return;
    try {
      await log.inputs.append(taskId, { v: 1, at: Math.round(now()), from: 'relay', input }, { id: `${taskId}:${name}` });
      if (this.#isDue(taskId, name)) this.#forget(taskId, name);
    } catch (error) {
      taskLogger(logger, taskId).warn({ err: error, reason: input.kind }, 'what is due could not be told');
    }
  }

  #isDue(taskId: string, name: string): boolean {
    return this.#waiting.get(taskId)?.some(one => one.name === name) === true;
  }

  #forget(taskId: string, name: string): void {
    const others = this.#waiting.get(taskId)!.filter(one => one.name !== name);
    if (others.length === 0) this.#waiting.delete(taskId);
    else this.#waiting.set(taskId, others);
  }
}
