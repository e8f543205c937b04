import { isInterrupted, type Message } from '@hopline/a2a';
import type { TaskControl } from '@hopline/events';
import { type Log, readTask, type StoredFacts } from '@hopline/log';
import { CONVERSATION_LIMITS, type ConversationLimits } from './limits.ts';
import { type SaidTurn, SaidTurns } from './turn-messages.ts';

export type Conversation = {
  /** Oldest first. */
  messages: readonly Message[];
  /** By agent: what its adapter wants back. */
  resumes: ReadonlyMap<string, unknown>;
};

type Facts = Pick<Log, 'facts'>;

/**
 * What was said before turn `turn` of a task whose newest record is `newest`. Reads nothing where nothing can have been said. Rejects with LogUnavailable.
 */
export async function readConversation(
  log: Facts,
  newest: StoredFacts,
  turn: number,
  limits: ConversationLimits = CONVERSATION_LIMITS,
): Promise<Conversation> {
  const { control } = newest.record;
  const backwards = new Backwards(limits);
  if (turn === 1 && control.follows !== true) return backwards.conversation();
  const own = await readTurns(log, newest);
  if (own.headless) return backwards.conversation();
  for (const [index, said] of own.before(turn).toReversed().entries()) backwards.add(said, index === 0);
  for (const taskId of own.earlier.slice(-limits.tasksMax).toReversed()) {
    if (backwards.full) break;
    const turns = await readEarlier(log, taskId, control);
    for (const said of turns.toReversed()) backwards.add(said, false);
  }
  return backwards.conversation();
}

/** Nothing of a task that is gone, or that is somebody else's whatever the list says. */
async function readEarlier(log: Facts, taskId: string, control: TaskControl): Promise<SaidTurn[]> {
  const newest = await log.facts.last(taskId);
  if (newest === undefined) return [];
  const turns = await readTurns(log, newest);
  return !turns.headless && turns.isOf(control) ? turns.before() : [];
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
  readonly #limits: ConversationLimits;
  readonly #messages: Message[] = [];
  readonly #resumes = new Map<string, unknown>();
  #characters = 0;
  full = false;

  constructor(limits: ConversationLimits) {
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

  conversation(): Conversation {
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
