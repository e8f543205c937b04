import { isTerminal, stateWord } from '@hopline/a2a';
import { type CopyForwardInput, type RelayInput, shardOf } from '@hopline/events';
import type { Log, TaskIndexEntry } from '@hopline/log';
import { type Logger, taskLogger } from '@hopline/telemetry';
import type { OpenTask } from './index-entry.ts';

/** Shortest pause between two checks in milliseconds. A check costs one step per waiting task. */
const CHECK_MS_MIN = 100;
/** Pause before a missed deadline is retried (another relay owns the shard, the log is unavailable). */
const RETRY_MS = 1_000;
/** Longest pause between two checks, because timers stand still while the machine is suspended, but deadlines do not. */
export const CHECK_MS_MAX = 60_000;

/**
 * An input that becomes due at `at`, epoch milliseconds. `name` is unique within the task, so that the input is appended only once even by
 * several relays.
 */
type Deadline = { at: number; name: string; input: RelayInput };

/** Derives a deadline from a task's index entry. */
type DeadlineRule = (entry: TaskIndexEntry) => Deadline | undefined;

/** Fails a task whose client does not answer within `timeoutMs` of its input-required status. */
export function inputTimeout(timeoutMs: number): DeadlineRule {
  return ({ inputRequest }) =>
    inputRequest && {
      at: inputRequest.at + timeoutMs,
      name: `timeout:${inputRequest.n}`,
      input: { kind: 'timeout', request: inputRequest.n },
    };
}

/** Fails a task that gets no credentials within `timeoutMs` of its auth-required status. */
export function authTimeout(timeoutMs: number): DeadlineRule {
  return ({ authRequest }) =>
    authRequest && {
      at: authRequest.at + timeoutMs,
      name: `auth-timeout:${authRequest.n}`,
      input: { kind: 'auth-timeout', request: authRequest.n },
    };
}

/** Copies the facts of an open task forward when `afterMs` have passed since they were last stored. */
export function copyForwardRule(afterMs: number): DeadlineRule {
  return ({ state, generation, startStoredAt = 0 }) => {
    const isOpen = generation > 0 && !isTerminal(state);
    return isOpen ? { at: startStoredAt + afterMs, ...copyForwardInput(startStoredAt) } : undefined;
  };
}

/** The input of a copy-forward. Because of its name a start is copied only once, whether its age or the bytes of the log cause the copy. */
export function copyForwardInput(startStoredAt: number): { name: string; input: CopyForwardInput } {
  return { name: `copy-forward:${startStoredAt}`, input: { kind: 'copy-forward', startStoredAt } };
}

type TaskDeadlinesOptions = {
  log: Pick<Log, 'inputs' | 'layouts'>;
  rules: readonly DeadlineRule[];
  /** Whether this relay owns the shard now. Only a hint: the input's id keeps two relays from storing the input twice. */
  owns: (shard: number) => boolean;
  /** Epoch milliseconds. */
  now: () => number;
  logger: Logger;
};

/**
 * Appends an input when a deadline of a task passes. Deadlines are derived from the entries of the open tasks of the relay's shards, which it
 * reads when it takes a shard, so they survive every relay. The order of the input log decides between a deadline and a message that arrives at the same time.
 */
export class TaskDeadlines {
  readonly #options: TaskDeadlinesOptions;
  readonly #stop = new AbortController();
  readonly #deadlines = new Map<string, Deadline[]>();
  #timer: NodeJS.Timeout | undefined;
  #checkAt = Number.POSITIVE_INFINITY;
  #isChecking = false;

  constructor(options: TaskDeadlinesOptions) {
    this.#options = options;
  }

  stop(): void {
    this.#stop.abort();
    clearTimeout(this.#timer);
  }

  /** Takes the entry of an open task of the relay's shards; undefined if the task has ended, or if its shard has another owner. */
  update(taskId: string, task: OpenTask | undefined): void {
    const deadlines = task === undefined ? [] : this.#options.rules.flatMap(rule => rule(task.entry) ?? []);
    if (deadlines.length === 0) this.#deadlines.delete(taskId);
    else this.#deadlines.set(taskId, deadlines);
    for (const { at } of deadlines) this.#checkBy(at);
  }

  #checkBy(atMs: number): void {
    if (atMs >= this.#checkAt || this.#stop.signal.aborted) return;
    this.#checkAt = atMs;
    clearTimeout(this.#timer);
    const waitMs = Math.min(CHECK_MS_MAX, Math.max(CHECK_MS_MIN, atMs - this.#options.now()));
    this.#timer = setTimeout(() => void this.#check(), waitMs);
  }

  async #check(): Promise<void> {
    this.#checkAt = Number.POSITIVE_INFINITY;
    if (!this.#isChecking) {
      this.#isChecking = true;
      for (const [taskId, deadline] of this.#dueDeadlines()) await this.#append(taskId, deadline);
      this.#isChecking = false;
    }
    this.#checkBy(this.#nextCheckAt());
  }

  #dueDeadlines(): [string, Deadline][] {
    const { now, owns, log } = this.#options;
    const nowMs = now();
    const due: [string, Deadline][] = [];
    for (const [taskId, deadlines] of this.#deadlines) {
      for (const deadline of deadlines)
        if (deadline.at <= nowMs && owns(shardOf(taskId, log.layouts))) due.push([taskId, deadline]);
    }
    return due;
  }

  #nextCheckAt(): number {
    const nowMs = this.#options.now();
    let next = Number.POSITIVE_INFINITY;
    for (const deadlines of this.#deadlines.values()) {
      for (const { at } of deadlines) next = Math.min(next, at <= nowMs ? nowMs + RETRY_MS : at);
    }
    return next;
  }

  async #append(taskId: string, { name, input }: Deadline): Promise<void> {
    const { log, now, logger } = this.#options;
    if (!this.#isWaiting(taskId, name) || this.#stop.signal.aborted) return;
    try {
      await log.inputs.append(taskId, { v: 1, at: Math.round(now()), from: 'relay', input }, { id: `${taskId}:${name}` });
      if (this.#isWaiting(taskId, name)) this.#remove(taskId, name);
    } catch (error) {
      taskLogger(logger, taskId).warn({ err: error, reason: input.kind }, 'deadline input could not be appended');
    }
  }

  #isWaiting(taskId: string, name: string): boolean {
    return this.#deadlines.get(taskId)?.some(deadline => deadline.name === name) === true;
  }

  #remove(taskId: string, name: string): void {
    const others = this.#deadlines.get(taskId)!.filter(deadline => deadline.name !== name);
    if (others.length === 0) this.#deadlines.delete(taskId);
    else this.#deadlines.set(taskId, others);
  }
}

const OPEN_STATES = ['submitted', 'working', 'input-required', 'auth-required'] as const;
type OpenState = (typeof OPEN_STATES)[number];

/** When the first record of the oldest open task was stored, in epoch milliseconds; empty without open tasks. */
export function oldestStart(tasks: ReadonlyMap<string, OpenTask>): [number] | [] {
  let oldest: number | undefined;
  for (const { entry } of tasks.values()) {
    const { startStoredAt = 0 } = entry;
    if (startStoredAt > 0 && startStoredAt < (oldest ?? Number.POSITIVE_INFINITY)) oldest = startStoredAt;
  }
  return oldest === undefined ? [] : [oldest];
}

/** Open tasks by state. */
export function countOpen(tasks: ReadonlyMap<string, OpenTask>): Map<OpenState, number> {
  const counts = new Map<string, number>(OPEN_STATES.map(state => [state, 0]));
  for (const { entry } of tasks.values()) {
    const state = stateWord(entry.state);
    const count = counts.get(state);
    if (entry.generation > 0 && count !== undefined) counts.set(state, count + 1);
  }
  return counts as Map<OpenState, number>;
}
