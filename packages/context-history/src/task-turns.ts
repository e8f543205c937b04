import { isInProgress, isInterrupted, type Message, type Task, type TaskState } from '@hopline/a2a';
import { type Fact, type ForkPoint, forkPointOf, isSameOwner, type Owner, type Role, type TaskAggregate } from '@hopline/events';
import { TaskViewBuilder } from '@hopline/task';
import { answerOf } from './answer.ts';

/** State that an agent's adapter stored for its next turn. */
type Resume = { agent: string; state: TaskState; resume: unknown };

type Turn = { request: Message; artifacts: Set<string>; state: TaskState; message: Message | undefined; resumes: Resume[] };

/** One turn of a task as a conversation: the client's message and the answer. */
export type TaskTurn = {
  request: Message;
  /** Absent while the turn runs, and if the turn has no text. */
  answer: Message | undefined;
  resumes: readonly Resume[];
};

/** Properties that the tasks of one conversation share. */
export type ConversationKey = Pick<TaskAggregate, 'contextId' | 'role'> & { owner?: Owner | undefined };

/** Folds the facts of one task into its turns. */
export class TaskTurns {
  /** From `task.created`, oldest first. */
  earlierTasks: readonly string[] = [];
  /** From `task.created`: the point of another task that this one continues. */
  fork: ForkPoint | undefined;
  /** True if retention has removed the beginning of the task, so that its turns are unknown. */
  isTruncated = false;
  readonly #task = new TaskViewBuilder();
  #owner: Owner | undefined;
  #role: Role | undefined;
  #isCut = false;
  readonly #turns: Turn[] = [];

  apply(fact: Fact): void {
    if (this.#task.state === undefined && fact.kind !== 'task.created') this.isTruncated = true;
    if (this.isTruncated) return;
    this.#task.addFact(fact);
    if (fact.kind === 'task.created') {
      this.earlierTasks = fact.earlierTasks ?? [];
      const fork = forkPointOf(fact.request);
      this.fork = fork === 'malformed' ? undefined : fork;
      this.#owner = fact.owner;
      this.#role = fact.role;
      const request = fact.event.task.history?.at(-1);
      if (request !== undefined) this.#beginTurn(request);
    } else if (fact.kind === 'message.received') this.#beginTurn(fact.message);
    else this.#applyToTurn(fact);
  }

  /** The turns before turn `before` (1-based), oldest first. */
  before(before = Number.POSITIVE_INFINITY): TaskTurn[] {
    const task = this.#task.view?.task;
    return this.#turns.slice(0, before - 1).map((turn, index) => ({
      request: turn.request,
      answer: task && this.#answer(task, turn, index),
      resumes: turn.resumes,
    }));
  }

  /** True if owner, context and role are the same. The server of one role hides the tasks of another role, even from their owner. */
  belongsWith({ owner, contextId, role }: ConversationKey): boolean {
    return isSameOwner(this.#owner, owner) && this.contextId === contextId && this.#role === role;
  }

  get contextId(): string | undefined {
    return this.#task.view?.task.contextId;
  }

  /**
   * Ends the turns at the point from which a fork continues. The last turn keeps the answer that it has at that point, like a turn that a
   * later message superseded.
   */
  cut(): this {
    this.#isCut = true;
    return this;
  }

  #beginTurn(request: Message): void {
    this.#turns.push({ request, artifacts: new Set(), state: 'TASK_STATE_SUBMITTED', message: undefined, resumes: [] });
  }

  #applyToTurn(fact: Fact): void {
    const turn = this.#turns.at(-1);
    if (turn === undefined) return;
    if (fact.kind === 'artifact.updated') turn.artifacts.add(fact.event.artifactUpdate.artifact.artifactId);
    // The supervisor itself returns the state of an interrupted call, with the answer.
    if (fact.kind === 'call.ended' && fact.resume !== undefined && !isInterrupted(fact.state)) {
      turn.resumes.push({ agent: fact.agent, state: fact.state, resume: fact.resume });
    }
    if (fact.kind !== 'status.changed') return;
    const { state, message } = fact.event.statusUpdate.status;
    turn.state = state;
    // Progress messages are not the answer (S4-21); the message of the last status is.
    turn.message = message;
    if (fact.resume !== undefined && fact.call === undefined)
      turn.resumes.push({ agent: this.#role!.replace(/^agent\./, ''), state, resume: fact.resume });
  }

  #answer({ id, contextId, artifacts = [] }: Task, turn: Turn, index: number): Message | undefined {
    const hasEnded = !isInProgress(turn.state);
    if (!hasEnded && !this.#isCut && index === this.#turns.length - 1) return undefined;
    const ofTurn = artifacts.filter(({ artifactId }) => turn.artifacts.has(artifactId));
    const parts = answerOf({ artifacts: ofTurn, message: hasEnded ? turn.message : undefined });
    if (parts.length === 0) return undefined;
    return { messageId: `${id}-answer-${index + 1}`, role: 'ROLE_AGENT', parts, taskId: id, contextId };
  }
}
