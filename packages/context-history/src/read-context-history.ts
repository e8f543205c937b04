import { isInterrupted, type Message } from '@hopline/a2a';
import type { TaskAggregate } from '@hopline/events';
import { type Log, readTask, type StoredFacts } from '@hopline/log';
import { CONTEXT_HISTORY_LIMITS, type ContextHistoryLimits } from './limits.ts';
import { type SaidTurn, SaidTurns } from './turn-messages.ts';

export type ContextHistory = {
  /** Oldest first. */
  messages: readonly Message[];
  /** By agent: what its adapter wants back. */
  resumes: ReadonlyMap<string, unknown>;
};

type Facts = Pick<Log, 'facts'>;

/**
 * What was said before turn `turn` of a task whose newest record is `newest`. Reads nothing where nothing can have been said. Rejects with LogUnavailable.
 */
export async function readContextHistory(
  log: Facts,
  newest: StoredFacts,
  turn: number,
  limits: ContextHistoryLimits = CONTEXT_HISTORY_LIMITS,
): Promise<ContextHistory> {
  const { aggregate } = newest.record;
  const backwards = new Backwards(limits);
  if (turn === 1 && aggregate.hasHistory !== true) return backwards.conversation();
  const own = await readTurns(log, newest);
  if (own.headless) return backwards.conversation();
  for (const [index, said] of own.before(turn).toReversed().entries()) backwards.add(said, index === 0);
  for (const taskId of own.earlier.slice(-limits.tasksMax).toReversed()) {
    if (backwards.full) break;
    const turns = await readEarlier(log, taskId, aggregate);
    for (const said of turns.toReversed()) backwards.add(said, false);
  }
  return backwards.conversation();
}

/** Nothing of a task that is gone, or that is somebody else's whatever the list says. */
async function readEarlier(log: Facts, taskId: string, aggregate: TaskAggregate): Promise<SaidTurn[]> {
  const newest = await log.facts.last(taskId);
  if (newest === undefined) return [];
  const turns = await readTurns(log, newest);
  return !turns.headless && turns.isOf(aggregate) ? turns.before() : [];
}

async function readTurns(log: Facts, newest: StoredFacts): Promise<SaidTurns> {
  const turns = new SaidTurns();
  for await (const { record } of readTask(log.facts, newest)) {
    for (const fact of record.facts) turns.take(fact);
  }
  return turns;
}

/** Collects turns from the newest on, until a bound is reached: what is older than a message that does not fit is left out, so that there is no hole. */
class Backwards {
  readonly #limits: ContextHistoryLimits;
  readonly #messages: Message[] = [];
  readonly #resumes = new Map<string, unknown>();
  #characters = 0;
  full = false;

  constructor(limits: ContextHistoryLimits) {
    this.#limits = limits;
  }

  /** `isAnswered`: the turn that is worked on answers what this one asked. */
  add({ asked, answer, resumes }: SaidTurn, isAnswered: boolean): void {
    for (const { agent, state, resume } of resumes.toReversed()) {
      // A question that somebody else's turn has overtaken is not to be answered any more.
      if (isInterrupted(state) && !isAnswered) continue;
      if (!this.#resumes.has(agent)) this.#resumes.set(agent, resume);
    }
    if (answer !== undefined) this.#push(answer);
    this.#push(asked);
  }

  conversation(): ContextHistory {
    return { messages: this.#messages.toReversed(), resumes: this.#resumes };
  }

  #push(message: Message): void {
    const characters = this.#characters + JSON.stringify(message.parts).length;
    this.full ||= this.#messages.length >= this.#limits.messagesMax || characters > this.#limits.charactersMax;
    if (this.full) return;
    this.#characters = characters;
    this.#messages.push(message);
  }
}
