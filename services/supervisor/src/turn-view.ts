import { type Artifact, isInterrupted } from '@hopline/a2a';
import type { CallEnded, Fact, StatusChanged, TaskControl } from '@hopline/events';
import type { StoredFacts } from '@hopline/log';
import { project, type TaskView } from '@hopline/task';

/** A call of the turn before that waits for the client's answer. */
export type WaitingCall = { agent: string; resume: unknown };

/**
 * What the log says about the turn in progress: all the supervisor knows. One that died and came back folds the same facts and goes on from there;
 * it keeps nothing of its own.
 */
export class TurnView {
  #task: TaskView | undefined;
  #control: TaskControl | undefined;
  #shown = new Set<string>();
  #answers: string[] = [];
  #started: string[] = [];
  #ended = new Map<string, CallEnded>();
  #waiting: WaitingCall[] = [];
  /** Calls whose agents wait for credentials. */
  readonly #credentials = new Map<string, WaitingCall>();

  apply({ record }: StoredFacts): void {
    for (const fact of record.facts) this.#fold(fact);
    this.#control = record.control;
  }

  get control(): TaskControl | undefined {
    return this.#control;
  }

  /** Agents that asked for input in the turn before this one. */
  get waiting(): readonly WaitingCall[] {
    return this.#waiting;
  }

  /** True when an event of this lane stands in the log for this turn. */
  isShown(lane: string): boolean {
    return this.#shown.has(lane);
  }

  /** Calls of this turn, oldest first. */
  get calls(): readonly string[] {
    return this.#started;
  }

  agentOf(call: string): string {
    return this.#control?.calls[call]?.agent ?? '';
  }

  ended(call: string): CallEnded | undefined {
    return this.#ended.get(call);
  }

  /** There are calls, and every one has ended or asks: an agent that waits for credentials still works. */
  get haveEnded(): boolean {
    return this.#started.length > 0 && this.#started.every(call => this.#ended.has(call));
  }

  /** The text that agents streamed to the client in this turn: every segment in order of opening, nothing inserted (C-28). */
  answerText(): string {
    const artifacts = this.#task?.task.artifacts ?? [];
    return this.#answers.map(id => textOf(artifacts.find(artifact => artifact.artifactId === id))).join('');
  }

  #fold(fact: Fact): void {
    this.#task = project(this.#task, fact);
    if (fact.kind === 'message.received') this.#nextTurn();
    if (fact.kind === 'status.changed' && fact.call !== undefined) this.#authorizing(fact.call, fact);
    if (fact.kind === 'call.started') this.#started.push(fact.call);
    if (fact.kind === 'call.ended') this.#ended.set(fact.call, fact);
    if (fact.kind === 'artifact.updated') {
      this.#shown.add(fact.lane);
      const { artifactId, name } = fact.event.artifactUpdate.artifact;
      if (name === ANSWER_NAME && !this.#answers.includes(artifactId)) this.#answers.push(artifactId);
    }
  }

  #authorizing(call: string, { event, resume }: StatusChanged): void {
    const waits = event.statusUpdate.status.state === 'TASK_STATE_AUTH_REQUIRED';
    if (waits) this.#credentials.set(call, { agent: this.agentOf(call), resume });
    else this.#credentials.delete(call);
  }

  #nextTurn(): void {
    const asked = [...this.#ended.values()].filter(ended => isInterrupted(ended.state));
    const authorizing = [...this.#credentials].filter(([call]) => !this.#ended.has(call)).map(([, waiting]) => waiting);
    this.#waiting = [...asked.map(({ agent, resume }) => ({ agent, resume })), ...authorizing];
    this.#credentials.clear();
    this.#shown = new Set();
    this.#answers = [];
    this.#started = [];
    this.#ended = new Map();
  }
}

/** Name of the artifact that carries an agent's text to the client in profile `caipe` (S0-17). */
export const ANSWER_NAME = 'streaming_result';

function textOf(artifact: Artifact | undefined): string {
  return (artifact?.parts ?? []).map(part => part.text ?? '').join('');
}
