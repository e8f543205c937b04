import { isInterrupted, type Message } from '@hopline/a2a';
import type { TaskAggregate } from '@hopline/events';
import { type Log, readTask, type StoredFacts } from '@hopline/log';
import { type TaskTurn, TaskTurns } from './task-turns.ts';

/** Bounds of a context history. Newer messages take precedence. */
export type ContextHistoryLimits = {
  /** Earlier tasks that are read, with two requests to the log each. */
  tasksMax: number;
  messagesMax: number;
  /** UTF-16 units of the message parts as JSON, files included. */
  charactersMax: number;
};

export const CONTEXT_HISTORY_LIMITS: ContextHistoryLimits = { tasksMax: 10, messagesMax: 100, charactersMax: 128 * 1024 };

export type ContextHistory = {
  /** Oldest first. */
  messages: readonly Message[];
  /** By agent: the state its adapter stored for the next turn. */
  resumes: ReadonlyMap<string, unknown>;
};

type Facts = Pick<Log, 'facts'>;

/**
 * The messages of a context before turn `turn` of the task whose newest record is `newest`. A first turn without earlier tasks
 * reads nothing. Rejects with LogUnavailable.
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
  const own = await readTurns(log, newest);
  if (own.isTruncated) return history.build();
  for (const [index, past] of own.before(turn).toReversed().entries()) history.add(past, index === 0);
  for (const taskId of own.earlierTasks.slice(-limits.tasksMax).toReversed()) {
    if (history.isFull) break;
    const turns = await readEarlier(log, taskId, aggregate);
    for (const past of turns.toReversed()) history.add(past, false);
  }
  return history.build();
}

/** Empty for a task that retention removed, and for one of another owner, context or role, whatever the list names. */
async function readEarlier(log: Facts, taskId: string, aggregate: TaskAggregate): Promise<TaskTurn[]> {
  const newest = await log.facts.last(taskId);
  if (newest === undefined) return [];
  const turns = await readTurns(log, newest);
  return !turns.isTruncated && turns.belongsWith(aggregate) ? turns.before() : [];
}

async function readTurns(log: Facts, newest: StoredFacts): Promise<TaskTurns> {
  const turns = new TaskTurns();
  for await (const { record } of readTask(log.facts, newest)) {
    for (const fact of record.facts) turns.apply(fact);
  }
  return turns;
}

/**
 * Collects turns from the newest to the oldest until a bound is reached. Nothing older than the first message that does not fit
 * is added: no holes.
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

  /** `isAnswered`: the current turn answers this one's request for input. */
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
