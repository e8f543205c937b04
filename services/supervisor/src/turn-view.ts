import { type Artifact, isInterrupted, type Message } from '@hopline/a2a';
import type { ArtifactUpdated, CallEnded, Fact, MessageReceived, StatusChanged, TaskAggregate } from '@hopline/events';
import type { StoredFacts } from '@hopline/log';
import { project, SUPERVISOR, type TaskView } from '@hopline/task';

/** A call of the turn before that waits for the client's answer. */
export type WaitingCall = { call: string; agent: string; resume: unknown };

type Asking = WaitingCall & { question: Message | undefined };

/** A call that waited, and the one of a later turn that goes on with it. */
export type Continued = { question: Message | undefined; answer: Message; call: string };

type Answer = { id: string; producer: string };

/**
 * What the log says about the turn in progress: all the supervisor knows. One that died and came back folds the same facts and goes on from there;
 * it keeps nothing of its own.
 */
export class TurnView {
  #task: TaskView | undefined;
  #aggregate: TaskAggregate | undefined;
  #shown = new Set<string>();
  #answers: Answer[] = [];
  #started: string[] = [];
  #waiting: WaitingCall[] = [];
  /** Calls of this turn whose agents wait for credentials. */
  readonly #credentials = new Map<string, Asking>();
  /** Of the whole task: a turn that answers an agent's question goes on with the calls of the turn before. */
  readonly #ended = new Map<string, CallEnded>();
  readonly #artifacts = new Map<string, Set<string>>();
  readonly #continued = new Map<string, Continued>();
  #steps = new Map<string, unknown>();
  /** The client's message of each turn. */
  readonly #asked: (Message | undefined)[] = [];
  #begunIn = 1;

  apply({ record }: StoredFacts): void {
    for (const fact of record.facts) this.#fold(fact);
    this.#aggregate = record.aggregate;
  }

  get aggregate(): TaskAggregate | undefined {
    return this.#aggregate;
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
    return this.#aggregate?.calls[call]?.agent ?? '';
  }

  ended(call: string): CallEnded | undefined {
    return this.#ended.get(call);
  }

  /** Every call has ended, and one with a question: nothing goes on before the client answers. An agent that waits for credentials still works. */
  get asksClient(): boolean {
    const ends = this.#started.flatMap(call => this.#ended.get(call) ?? []);
    return ends.length === this.#started.length && ends.some(({ state }) => isInterrupted(state));
  }

  /** The agent of this open call waits for credentials. */
  needsCredentials(call: string): boolean {
    return this.#credentials.has(call) && !this.#ended.has(call);
  }

  /** What the call of a later turn made of one that waited for the client. */
  continued(call: string): Continued | undefined {
    return this.#continued.get(call);
  }

  /** Turn of the message that is worked on: turns that only answer an agent's question belong to the one before them. */
  get begunIn(): number {
    return this.#begunIn;
  }

  messageOf(turn: number): Message | undefined {
    return this.#asked[turn - 1];
  }

  /** Steps recorded for that message, by name. */
  get steps(): ReadonlyMap<string, unknown> {
    return this.#steps;
  }

  /** The text that was streamed to the client in this turn: every segment of an agent in order of opening, nothing inserted, then the supervisor's own (C-28). */
  answerText(): string {
    return this.#textOf(producer => producer !== SUPERVISOR) + this.ownText();
  }

  /** What the supervisor itself has said. */
  ownText(): string {
    return this.#textOf(producer => producer === SUPERVISOR);
  }

  /** What agents have said in this turn and clients do not see, by policy. */
  heldText(): string {
    return this.#started.map(call => this.#ended.get(call)?.withheldText ?? '').join('');
  }

  /** All artifacts of one call, in order of opening. */
  artifactsOf(call: string): Artifact[] {
    return [...(this.#artifacts.get(call) ?? [])].flatMap(id => this.#artifact(id) ?? []);
  }

  #fold(fact: Fact): void {
    this.#task = project(this.#task, fact);
    if (fact.kind === 'task.created') this.#asked.push(fact.event.task.history?.at(-1));
    if (fact.kind === 'message.received') this.#nextTurn(fact);
    if (fact.kind === 'status.changed' && fact.call !== undefined) this.#authorizing(fact.call, fact);
    if (fact.kind === 'call.started') this.#started.push(fact.call);
    if (fact.kind === 'call.ended') this.#ended.set(fact.call, fact);
    if (fact.kind === 'step.recorded') this.#steps.set(fact.step, fact.payload);
    if (fact.kind === 'artifact.updated') this.#foldArtifact(fact);
  }

  #authorizing(call: string, { event, resume }: StatusChanged): void {
    const { state, message: question } = event.statusUpdate.status;
    const waits = state === 'TASK_STATE_AUTH_REQUIRED';
    if (waits) this.#credentials.set(call, { call, agent: this.agentOf(call), resume, question });
    else this.#credentials.delete(call);
  }

  #foldArtifact({ lane, producer, event }: ArtifactUpdated): void {
    this.#shown.add(lane);
    const { artifactId: id, name } = event.artifactUpdate.artifact;
    const known = this.#artifacts.get(producer) ?? new Set();
    this.#artifacts.set(producer, known.add(id));
    if (name === ANSWER_NAME && !this.#answers.some(answer => answer.id === id)) this.#answers.push({ id, producer });
  }

  #nextTurn({ turn, message: answer }: MessageReceived): void {
    this.#asked.push(answer);
    const asking = this.#started.flatMap(call => this.#askingOf(call) ?? []);
    this.#waiting = asking.map(({ question: _question, ...waiting }) => waiting);
    for (const [index, { call, question }] of asking.entries()) {
      this.#continued.set(call, { question, answer, call: resumedCallId(turn, index) });
    }
    if (asking.length === 0) {
      this.#steps = new Map();
      this.#begunIn = turn;
    }
    this.#credentials.clear();
    this.#shown = new Set();
    this.#answers = [];
    this.#started = [];
  }

  /** What a call of this turn asks the client, if it does: it has ended with a question, or its agent still waits for credentials. */
  #askingOf(call: string): Asking | undefined {
    const ended = this.#ended.get(call);
    if (ended === undefined) return this.#credentials.get(call);
    const { agent, resume, message: question } = ended;
    return isInterrupted(ended.state) ? { call, agent, resume, question } : undefined;
  }

  #textOf(isMeant: (producer: string) => boolean): string {
    const meant = this.#answers.filter(({ producer }) => isMeant(producer));
    return meant.map(({ id }) => textOf(this.#artifact(id))).join('');
  }

  #artifact(id: string): Artifact | undefined {
    return this.#task?.task.artifacts?.find(({ artifactId }) => artifactId === id);
  }
}

/** The call of turn `turn` that goes on with the turn before's `index`-th waiting one. */
export function resumedCallId(turn: number, index: number): string {
  return `call-${turn}-${index + 1}`;
}

/** Name of the artifact that carries an agent's text to the client in profile `caipe` (S0-17). */
export const ANSWER_NAME = 'streaming_result';

export function textOf(artifact: Artifact | undefined): string {
  return (artifact?.parts ?? []).map(part => part.text ?? '').join('');
}
