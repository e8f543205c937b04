import {
  type Artifact,
  approvalRequestOf,
  approvalResponseOf,
  approvalResponsePart,
  isInterrupted,
  type Message,
  textOf,
} from '@hopline/a2a';
import type {
  ArtifactUpdated,
  CallEnded,
  CallStarted,
  Fact,
  MessageReceived,
  StatusChanged,
  TaskAggregate,
} from '@hopline/events';
import type { StoredFacts } from '@hopline/log';
import { progressId } from '@hopline/profiles';
import { SUPERVISOR, TaskViewBuilder } from '@hopline/task';

/** A call of the previous turn that waits for the client's answer. */
type WaitingCall = {
  call: string;
  agent: string;
  resume: unknown;
  /** Instead of the client's message. */
  message?: Message;
};

/** A waiting call, with the question that its agent has sent to the client. */
type PendingCall = WaitingCall & { question: Message | undefined };

/** The answer to a waiting call, and the call of a later turn that continues it. */
type Continuation = { question: Message | undefined; answer: Message; call: string };

/** Data recorded from the facts of one turn. Dropped when the next turn begins. */
class TurnRecord {
  /** Calls of agents by id, oldest first. */
  readonly calls = new Map<string, CallStarted>();
  /** Lanes with an event that clients see. */
  readonly lanes = new Set<string>();
  /** Ids of the messages of statuses. */
  readonly messages = new Set<string>();
  /** Producers of the artifacts of answer text by id, in order of opening. */
  readonly answers = new Map<string, string>();
  /** Calls whose agents wait for credentials. */
  readonly authorizing = new Map<string, PendingCall>();
  /** Calls of the previous turn that this turn continues. */
  readonly waiting: readonly WaitingCall[];

  constructor(waiting: readonly WaitingCall[] = []) {
    this.waiting = waiting;
  }
}

/** A person approves only the call that the task has shown, so a `yes` to another question must not run this one. */
function refusalOf(question: Message | undefined, answer: Message): { message: Message } | undefined {
  const asked = approvalRequestOf(question);
  if (asked === undefined || approvalResponseOf(answer)?.callId === asked.callId) return undefined;
  const response = {
    callId: asked.callId,
    approved: false,
    reason: 'another question was open, and the user has not seen this one',
  };
  return { message: { ...answer, parts: [approvalResponsePart(response)] } };
}

/** Steps of the model for one message of the client. Turns that only answer an agent's question belong to the preceding message. */
class RequestRecord {
  /** The turn that the message began. */
  readonly turn: number;
  readonly steps = new Map<string, unknown>();

  constructor(turn: number) {
    this.turn = turn;
  }
}

/**
 * The state of a turn as the log records it. A supervisor has no other state: one that takes over folds the same facts and continues from
 * there.
 */
export class TurnView {
  /** Name of the artifacts that contain answer text; undefined in a profile without one. */
  readonly #answerName: string | undefined;
  #newest: StoredFacts | undefined;
  readonly #task = new TaskViewBuilder();
  #turn = new TurnRecord();
  #request = new RequestRecord(1);

  // The members below belong to the whole task: a turn that answers an agent's question continues calls of the previous turn.
  /** The client's message of each turn. */
  readonly #messages: (Message | undefined)[] = [];
  readonly #ends = new Map<string, CallEnded>();
  /** Ids of the artifacts of a call, in order of opening. */
  readonly #artifactIds = new Map<string, Set<string>>();
  readonly #continuations = new Map<string, Continuation>();

  constructor(answerName?: string) {
    this.#answerName = answerName;
  }

  apply(stored: StoredFacts): void {
    for (const fact of stored.record.facts) this.#fold(fact);
    this.#newest = stored;
  }

  /** The newest record. */
  get newest(): StoredFacts | undefined {
    return this.#newest;
  }

  get aggregate(): TaskAggregate | undefined {
    return this.#newest?.record.aggregate;
  }

  // ---- Calls

  /** Calls of this turn, oldest first. */
  get calls(): readonly string[] {
    return [...this.#turn.calls.keys()];
  }

  /** Ends of the calls of this turn, in order of the calls. */
  get ends(): readonly CallEnded[] {
    return this.calls.flatMap(call => this.#ends.get(call) ?? []);
  }

  /** Calls of the previous turn that wait for the client; this turn continues them. */
  get waiting(): readonly WaitingCall[] {
    return this.#turn.waiting;
  }

  /** The agent of a call of this turn. */
  agentOf(call: string): string {
    return this.#turn.calls.get(call)?.agent ?? '';
  }

  /** The fact with which a call of this turn began. */
  started(call: string): CallStarted | undefined {
    return this.#turn.calls.get(call);
  }

  ended(call: string): CallEnded | undefined {
    return this.#ends.get(call);
  }

  /** How the task continued with a call that waited for the client. */
  continuation(call: string): Continuation | undefined {
    return this.#continuations.get(call);
  }

  /** Whether the agent of this open call waits for credentials. */
  needsCredentials(call: string): boolean {
    return this.#turn.authorizing.has(call) && !this.#ends.has(call);
  }

  /**
   * Whether every call has ended and at least one of them with a question, so that the turn is over until the client answers. An agent that
   * waits for credentials counts as working.
   */
  get waitsForClient(): boolean {
    const { ends } = this;
    return ends.length === this.calls.length && ends.some(({ state }) => isInterrupted(state));
  }

  // ---- The client's request and the model's steps for it

  /** The turn that began with the client's request. */
  get requestTurn(): number {
    return this.#request.turn;
  }

  /** The client's message that began a turn. */
  messageOf(turn: number): Message | undefined {
    return this.#messages[turn - 1];
  }

  /** Recorded steps for the request, by name. */
  get steps(): ReadonlyMap<string, unknown> {
    return this.#request.steps;
  }

  // ---- Text and artifacts

  /** True if the log has an event of this lane in this turn, or the lane's text as the message of a status. */
  isShown(lane: string): boolean {
    const { lanes, messages } = this.#turn;
    return lanes.has(lane) || messages.has(progressId(lane, this.aggregate?.taskId ?? ''));
  }

  /** True while more events of this lane are to follow. */
  isOpen(lane: string): boolean {
    const phase = this.aggregate?.lanes[lane]?.phase;
    return phase === 'open' || phase === 'replacing';
  }

  /** The text streamed to the client in this turn: every segment of an agent in order of opening, then the supervisor's own text (C-28). */
  answerText(): string {
    return this.#textBy(producer => producer !== SUPERVISOR) + this.supervisorText();
  }

  /** The supervisor's own text in this turn. */
  supervisorText(): string {
    return this.#textBy(producer => producer === SUPERVISOR);
  }

  /** Text of agents in this turn that policy withholds from clients. */
  withheldText(): string {
    return this.ends.map(({ withheldText = '' }) => withheldText).join('');
  }

  /** The answer of one call, streamed or withheld, with every character once. */
  answerOf(call: string): string {
    const streamed = this.artifactsOf(call).filter(({ name }) => name === this.#answerName);
    return streamed.map(({ parts }) => textOf(parts)).join('') + (this.#ends.get(call)?.withheldText ?? '');
  }

  /** All artifacts of one call, in order of opening. */
  artifactsOf(call: string): Artifact[] {
    return this.#artifacts(this.#artifactIds.get(call) ?? []);
  }

  // ---- Folding

  #fold(fact: Fact): void {
    this.#task.addFact(fact.kind === 'artifact.updated' ? this.#withoutFiles(fact) : fact);
    switch (fact.kind) {
      case 'task.created':
        this.#messages.push(fact.event.task.history?.at(-1));
        break;
      case 'message.received':
        this.#beginTurn(fact);
        break;
      case 'status.changed':
        this.#foldMessage(fact.event.statusUpdate.status.message);
        if (fact.call !== undefined) this.#foldCallStatus(fact.call, fact);
        break;
      case 'call.started':
        this.#turn.calls.set(fact.call, fact);
        break;
      case 'call.ended':
        this.#ends.set(fact.call, fact);
        break;
      case 'step.recorded':
        this.#request.steps.set(fact.step, fact.payload);
        break;
      case 'artifact.updated':
        this.#foldArtifact(fact);
    }
  }

  #beginTurn({ turn, message: answer }: MessageReceived): void {
    this.#messages.push(answer);
    const pending = this.calls.flatMap(call => this.#pendingCall(call) ?? []);
    for (const [index, { call, question }] of pending.entries())
      this.#continuations.set(call, { question, answer, call: continuingCallId(turn, index) });
    // The task has shown the question of the first call that ended with one.
    const shown = pending.find(({ call }) => this.#ends.has(call));
    this.#turn = new TurnRecord(
      pending.map(({ question, ...waiting }) => ({
        ...waiting,
        ...(shown?.call !== waiting.call && refusalOf(question, answer)),
      })),
    );
    if (pending.length === 0) this.#request = new RequestRecord(turn);
  }

  /** A call that waits for the client: it has ended with a question, or its agent waits for credentials. */
  #pendingCall(call: string): PendingCall | undefined {
    const ended = this.#ends.get(call);
    if (ended === undefined) return this.#turn.authorizing.get(call);
    const { agent, resume, message: question } = ended;
    return isInterrupted(ended.state) ? { call, agent, resume, question } : undefined;
  }

  #foldMessage(message: Message | undefined): void {
    if (message !== undefined) this.#turn.messages.add(message.messageId);
  }

  #foldCallStatus(call: string, { event, resume }: StatusChanged): void {
    const { state, message: question } = event.statusUpdate.status;
    const { authorizing } = this.#turn;
    if (state === 'TASK_STATE_AUTH_REQUIRED') authorizing.set(call, { call, agent: this.agentOf(call), resume, question });
    else authorizing.delete(call);
  }

  /**
   * The parts of the artifact that a turn reads: the text of answers, and the data that a model gets. Files of agents may have hundreds of
   * megabytes and would stay in memory for as long as the turn runs.
   */
  #withoutFiles(fact: ArtifactUpdated): ArtifactUpdated {
    const { artifactUpdate } = fact.event;
    const { artifact } = artifactUpdate;
    const isAnswer = artifact.name !== undefined && artifact.name === this.#answerName;
    const parts = artifact.parts.filter(({ text, data }) => data !== undefined || (isAnswer && text !== undefined));
    if (parts.length === artifact.parts.length) return fact;
    return { ...fact, event: { artifactUpdate: { ...artifactUpdate, artifact: { ...artifact, parts } } } };
  }

  #foldArtifact({ lane, producer, event }: ArtifactUpdated): void {
    const { artifactId: id, name } = event.artifactUpdate.artifact;
    const { lanes, answers } = this.#turn;
    lanes.add(lane);
    const ids = this.#artifactIds.get(producer) ?? new Set();
    this.#artifactIds.set(producer, ids.add(id));
    const isAnswer = name !== undefined && name === this.#answerName;
    if (isAnswer && !answers.has(id)) answers.set(id, producer);
  }

  #textBy(includes: (producer: string) => boolean): string {
    const answers = [...this.#turn.answers].filter(([, producer]) => includes(producer));
    return this.#artifacts(answers.map(([id]) => id))
      .map(({ parts }) => textOf(parts))
      .join('');
  }

  /** The artifacts, in the order of the given ids. */
  #artifacts(ids: Iterable<string>): Artifact[] {
    const artifacts = new Map(this.#task.view?.task.artifacts?.map(artifact => [artifact.artifactId, artifact]));
    return [...ids].flatMap(id => artifacts.get(id) ?? []);
  }
}

/** The call of turn `turn` that continues the `index`-th waiting call of the previous turn. */
export function continuingCallId(turn: number, index: number): string {
  return `call-${turn}-${index + 1}`;
}
