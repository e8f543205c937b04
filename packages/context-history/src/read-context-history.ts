import { isInterrupted, type Message } from '@hopline/a2a';
import { type ForkPoint, isVisible, parseCursor } from '@hopline/events';
import { CONTEXT_TASKS_MAX, type Log, readTask, type StoredFacts } from '@hopline/log';
import { type ConversationKey, type TaskTurn, TaskTurns } from './task-turns.ts';

/** Bounds of a context history. Newer messages take precedence. */
export type ContextHistoryLimits = {
  /** Number of earlier tasks that are read, with and without messages. Each takes two requests to the log. */
  tasksMax: number;
  messagesMax: number;
  /** UTF-16 units of the message parts as JSON, files included. */
  charactersMax: number;
  /** Bytes of records of earlier tasks after which no older task is read. The newest earlier task is read whatever its size. */
  bytesMax: number;
};

/**
 * A context names at most `tasksMax` tasks. Text of `charactersMax` takes about 16 MiB of records, so `bytesMax` matters only for tasks
 * with large files, for which a first token would wait a second for each 40 MB.
 */
export const CONTEXT_HISTORY_LIMITS: ContextHistoryLimits = {
  tasksMax: CONTEXT_TASKS_MAX,
  messagesMax: 100,
  charactersMax: 128 * 1024,
  bytesMax: 64 * 1024 * 1024,
};

/** Number of earlier tasks that are read at the same time. It is small, because a task may have large files. */
const READS_AT_ONCE = 4;
/**
 * Maximum number of tasks on the way to the origin of a fork; if the way is longer, the earlier tasks are left out. A relay that reads for
 * an agent checks each of them.
 */
export const FORK_PATH_MAX = 10;

export type ContextHistory = {
  /** Oldest first. */
  messages: readonly Message[];
  /** Keyed by agent: the state that its adapter stored for the next turn. */
  resumes: ReadonlyMap<string, unknown>;
};

type Facts = Pick<Log, 'facts'>;

/** `bytesLeft`: bytes of records that may still be read. */
type EarlierTasks = Facts & { budget: { bytesLeft: number } };

/**
 * The messages of a context before turn `turn` of the task whose newest record is `newest`. For a first turn without earlier tasks nothing
 * is read. Rejects with LogUnavailable.
 */
export async function readContextHistory(
  log: Facts,
  newest: StoredFacts,
  turn: number,
  limits: ContextHistoryLimits = CONTEXT_HISTORY_LIMITS,
): Promise<ContextHistory> {
  const { aggregate } = newest.record;
  const history = new HistoryBuilder(limits);
  if (turn === 1 && aggregate.hasHistory !== true) return history.build();
  const newestTurns = await readTurns(log, newest);
  if (newestTurns.isTruncated) return history.build();
  for (const [index, past] of newestTurns.before(turn).toReversed().entries()) history.add(past, index === 0);
  let reads = 0;
  const budget = { bytesLeft: limits.bytesMax };
  for await (const turns of earlierTasks({ facts: log.facts, budget }, newestTurns, aggregate, [aggregate.taskId])) {
    for (const past of turns.toReversed()) history.add(past, false);
    reads += 1;
    if (reads >= limits.tasksMax || history.isFull) break;
  }
  return history.build();
}

/**
 * The turns of the tasks before `task`, newest task first. They are read as they are consumed, a few at a time. Listed tasks that retention
 * has removed, or that have another owner, context or role, yield nothing. A fork is preceded by its origin instead of the tasks listed in
 * its context. `by`: as in FactLog.last.
 */
async function* earlierTasks(
  log: EarlierTasks,
  task: TaskTurns,
  key: ConversationKey,
  by: readonly string[],
): AsyncGenerator<readonly TaskTurn[], void> {
  if (task.fork !== undefined) return yield* originOf(log, task.fork, key, by);
  const taskIds = task.earlierTasks.toReversed();
  for (let at = 0; at < taskIds.length; at += READS_AT_ONCE) {
    const some = taskIds.slice(at, at + READS_AT_ONCE);
    const found = await Promise.all(some.map(taskId => log.facts.last(taskId, by)));
    const affordable = found.filter(newest => take(log, newest));
    const read = await Promise.all(affordable.map(newest => readEarlier(log, newest)));
    for (const [n, earlier] of read.entries()) {
      if (earlier?.belongsWith(key) !== true) yield [];
      else {
        yield earlier.before();
        if (earlier.fork !== undefined) return yield* originOf(log, earlier.fork, key, [...by, some[n]!]);
      }
    }
    if (affordable.length < found.length) return;
  }
}

/**
 * The origin of a fork is in another context. State that its agents stored for their next turn belongs to the end of the origin, so the
 * fork does not get it.
 */
async function* originOf(
  log: EarlierTasks,
  fork: ForkPoint,
  { owner, role }: ConversationKey,
  by: readonly string[],
): AsyncGenerator<readonly TaskTurn[], void> {
  if (by.length > FORK_PATH_MAX) return;
  const newest = await log.facts.last(fork.taskId, by);
  if (!take(log, newest)) return;
  const origin = await readEarlier(log, newest, parseCursor(fork.cursor)?.generation);
  if (origin?.contextId === undefined) return;
  const key = { owner, role, contextId: origin.contextId };
  if (!origin.belongsWith(key)) return;
  const withoutResumes = (turns: readonly TaskTurn[]) => turns.map(turn => ({ ...turn, resumes: [] }));
  yield withoutResumes(origin.before());
  for await (const turns of earlierTasks(log, origin, key, [...by, fork.taskId])) yield withoutResumes(turns);
}

/** Whether the task may be read. Counts its bytes. A task that retention has removed has none. */
function take({ budget }: EarlierTasks, newest: StoredFacts | undefined): boolean {
  if (budget.bytesLeft <= 0) return false;
  budget.bytesLeft -= newest?.record.aggregate.storedBytes ?? 0;
  return true;
}

async function readEarlier(log: Facts, newest: StoredFacts | undefined, generation?: number): Promise<TaskTurns | undefined> {
  const turns = newest && (await readTurns(log, newest, generation));
  return turns?.isTruncated ? undefined : turns;
}

/** `generation`: reads up to and including the fact with this generation, because the client did not know the message after it. */
async function readTurns(log: Facts, newest: StoredFacts, generation = Number.POSITIVE_INFINITY): Promise<TaskTurns> {
  const turns = new TaskTurns();
  for await (const { record } of readTask(log.facts, newest)) {
    for (const fact of record.facts) {
      turns.apply(fact);
      if (isVisible(fact) && fact.generation >= generation) return turns.cut();
    }
  }
  return turns;
}

/**
 * Collects turns from the newest to the oldest until a bound is reached. Adds nothing older than the first message that does not fit, so
 * that the history has no holes.
 */
class HistoryBuilder {
  readonly #limits: ContextHistoryLimits;
  readonly #messages: Message[] = [];
  readonly #resumes = new Map<string, unknown>();
  #characters = 0;
  isFull = false;

  constructor(limits: ContextHistoryLimits) {
    this.#limits = limits;
  }

  /** `isAnswered`: whether the current turn answers this turn's request for input. */
  add({ request, answer, resumes }: TaskTurn, isAnswered: boolean): void {
    for (const { agent, state, resume } of resumes.toReversed()) {
      // A later turn has superseded the request for input, so the interrupted state is obsolete.
      if (isInterrupted(state) && !isAnswered) continue;
      if (!this.#resumes.has(agent)) this.#resumes.set(agent, resume);
    }
    if (answer !== undefined) this.#push(answer);
    this.#push(request);
  }

  build(): ContextHistory {
    return { messages: this.#messages.toReversed(), resumes: this.#resumes };
  }

  #push(message: Message): void {
    const characters = this.#characters + JSON.stringify(message.parts).length;
    this.isFull ||= this.#messages.length >= this.#limits.messagesMax || characters > this.#limits.charactersMax;
    if (this.isFull) return;
    this.#characters = characters;
    this.#messages.push(message);
  }
}
