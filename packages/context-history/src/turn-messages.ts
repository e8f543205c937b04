import { isInterrupted, isTerminal, type Message, type TaskState } from '@hopline/a2a';
import { type Fact, isSameOwner, type Owner, type Role, type TaskAggregate } from '@hopline/events';
import { project, type TaskView } from '@hopline/task';
import { answerOf } from './answer.ts';

/** What an agent left for its next turn. */
type Resume = { agent: string; state: TaskState; resume: unknown };

type Turn = { asked: Message; artifacts: Set<string>; state: TaskState; message: Message | undefined; resumes: Resume[] };

/** One turn of a task, from outside. */
export type SaidTurn = {
  asked: Message;
  /** Absent while the turn runs, and where nothing was said. */
  answer: Message | undefined;
  resumes: readonly Resume[];
};

/** Folds the facts of one task into what was said in its turns. */
export class SaidTurns {
  /** Of `task.created`, oldest first. */
  earlier: readonly string[] = [];
  /** Retention has removed the beginning: nothing can be told. */
  headless = false;
  #view: TaskView | undefined;
  #owner: Owner | undefined;
  #role: Role | undefined;
  readonly #turns: Turn[] = [];

  take(fact: Fact): void {
    if (this.#view === undefined && fact.kind !== 'task.created') this.headless = true;
    if (this.headless) return;
    this.#view = project(this.#view, fact);
    if (fact.kind === 'task.created') {
      this.earlier = fact.earlierTasks ?? [];
      this.#owner = fact.owner;
      this.#role = fact.role;
      const asked = fact.event.task.history?.at(-1);
      if (asked !== undefined) this.#begin(asked);
    } else if (fact.kind === 'message.received') this.#begin(fact.message);
    else this.#said(fact);
  }

  /** Turns before turn `before`, 1-based, oldest first. */
  before(before = Number.POSITIVE_INFINITY): SaidTurn[] {
    return this.#turns.slice(0, before - 1).map((turn, index) => ({
      asked: turn.asked,
      answer: this.#answer(turn, index),
      resumes: turn.resumes,
    }));
  }

  /** The door of one role shows nothing of another's tasks, not even to their owner. */
  isOf({ owner, contextId, role }: Pick<TaskAggregate, 'owner' | 'contextId' | 'role'>): boolean {
    return isSameOwner(this.#owner, owner) && this.#view?.task.contextId === contextId && this.#role === role;
  }

  #begin(asked: Message): void {
    this.#turns.push({ asked, artifacts: new Set(), state: 'TASK_STATE_SUBMITTED', message: undefined, resumes: [] });
  }

  #said(fact: Fact): void {
    const turn = this.#turns.at(-1);
    if (turn === undefined) return;
    if (fact.kind === 'artifact.updated') turn.artifacts.add(fact.event.artifactUpdate.artifact.artifactId);
    // What an interrupted call left is the supervisor's to hand back, with the answer.
    if (fact.kind === 'call.ended' && fact.resume !== undefined && !isInterrupted(fact.state)) {
      turn.resumes.push({ agent: fact.agent, state: fact.state, resume: fact.resume });
    }
    if (fact.kind !== 'status.changed') return;
    const { state, message } = fact.event.statusUpdate.status;
    turn.state = state;
    // Lines about progress are no answer (S4-21): the last status tells it.
    turn.message = message;
    if (fact.resume !== undefined && fact.call === undefined)
      turn.resumes.push({ agent: this.#role!.replace(/^agent\./, ''), state, resume: fact.resume });
  }

  #answer(turn: Turn, index: number): Message | undefined {
    const over = isTerminal(turn.state) || isInterrupted(turn.state);
    if (!over && index === this.#turns.length - 1) return undefined;
    const { id, contextId, artifacts = [] } = this.#view!.task;
    const left = artifacts.filter(({ artifactId }) => turn.artifacts.has(artifactId));
    const parts = answerOf({ artifacts: left, message: over ? turn.message : undefined });
    if (parts.length === 0) return undefined;
    return { messageId: `${id}-answer-${index + 1}`, role: 'ROLE_AGENT', parts, taskId: id, contextId };
  }
}
