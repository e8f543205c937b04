import { approvalRequestOf, isInterrupted, isShownCall, type Message, type Part } from '@hopline/a2a';
import { type AgentStepInput, addTokens, type NoticePhase, type StatusInput, type TokenUsage, type Work } from '@hopline/events';
import {
  agentPresentation,
  callNotice,
  type NoticeOptions,
  noticeStatus,
  progressStatus,
  TRANSPARENT,
  withKind,
} from '@hopline/profiles';
import { artifactIdOf, ROOT_AGENT } from '@hopline/task';
import type { AgentEvent, EndEvent } from './agent.ts';
import { AgentArtifacts } from './agent-artifacts.ts';
import type { AgentText, TextSink } from './agent-text.ts';
import { AnswerText } from './answer-text.ts';
import { type InputSink, LaneWriter, UNIT_BYTES_MAX } from './lane-writer.ts';
import {
  BoundExceeded,
  REMOTE_RUN_HOLD_MS,
  REMOTE_RUNS_MAX,
  STEP_HOLD_MS,
  TOOL_ARGUMENTS_BYTES_MAX,
  TOOL_RESULT_BYTES_MAX,
  TURN_ARTIFACTS_MAX,
  TURN_EVENTS_MAX,
} from './limits.ts';
import { PassThroughText } from './pass-through-text.ts';
import type { PriorAttempts } from './prior-attempts.ts';
import { ToolValues } from './tool-values.ts';
import type { TurnEnd } from './turn-end.ts';

type TurnInputsOptions = {
  work: Work;
  /** Name of the agent. */
  agent: string;
  attempt: number;
  sink: InputSink;
  /** JSON bytes of one event that is not text. */
  eventBytesMax: number;
  /** JSON bytes of one input. */
  inputBytesMax: number;
  prior: PriorAttempts;
  /** The previous attempt was waiting for credentials. */
  waitsForCredentials?: boolean;
  /** The agent reports when it begins to work (`Agent.reportsWork`). */
  reportsWork?: boolean;
  /** The agent may send one text several times (`Agent.repeatsText`). */
  repeatsText?: boolean;
  /** False: a supervisor's client does not see the agent's text; the supervisor reads it with the end of the call (C-5). */
  forwardText: boolean;
};

/** Presentation for an agent that was not called by a supervisor. */
const DIRECT = agentPresentation(TRANSPARENT);

/** `shownId`: the call id that clients see. */
type OpenTool = { lane: string; tool: string; shownId: string };

/** Turns the events of an agent in one turn into inputs of the log. Pure: no I/O, no waiting. */
export class TurnInputs {
  readonly #options: TurnInputsOptions;
  readonly #prefix: string;
  readonly #lanes: LaneWriter;
  readonly #text: AgentText;
  readonly #textSink: TextSink;
  readonly #tools = new Map<string, OpenTool>();
  readonly #toolValues = new ToolValues();
  /** Ids of the calls of a server below that ended with a question. */
  readonly #waiting: string[] = [];
  #usage: TokenUsage | undefined;
  #events = 0;
  #artifacts = 0;
  #notices = 0;
  /** The task shows that the agent waits for credentials. */
  #waitsForCredentials: boolean;
  /**
   * True if the task shows that the agent works. A supervisor that conducts the turn sets that state itself; one that only forwards leaves it to the agent.
   */
  #isWorking: boolean;
  #waitsFor: TurnEnd | undefined;
  /** True while clients see the text of an earlier attempt, until this attempt has content. */
  #showsPrior: boolean;
  readonly #priorTools: PriorAttempts['openTools'][number][];
  readonly #remoteRuns: unknown[] = [];

  constructor(options: TurnInputsOptions) {
    const { work, attempt, sink, inputBytesMax, prior } = options;
    this.#options = options;
    this.#waitsForCredentials = options.waitsForCredentials === true;
    this.#showsPrior = attempt > 1;
    this.#priorTools = [...prior.openTools];
    // Lane names are unique per turn: the ids of calls are unique, and a directly addressed agent uses the turn's number.
    this.#prefix = work.call?.id ?? `${ROOT_AGENT}/${work.turn}`;
    this.#lanes = new LaneWriter(sink, prior.openLanes, inputBytesMax);
    this.#text = this.#agentText();
    this.#textSink = this.#text.sink;
    const statusPasses = work.call !== undefined && this.#presentation.progress === 'status';
    this.#isWorking = !statusPasses && !this.#waitsForCredentials;
  }

  begin(): void {
    const { work, reportsWork = false } = this.#options;
    if (work.call === undefined) this.#lanes.add({ kind: 'status', state: 'TASK_STATE_WORKING' });
    else if (!reportsWork && !this.#waitsForCredentials) this.#showWorking();
    this.#endPriorTools();
  }

  /** The end of the turn if this process cannot wait for the credentials that the agent needs. */
  get waitsFor(): TurnEnd | undefined {
    return this.#waitsFor;
  }

  /** The runs that the agent has begun on a server. */
  get remoteRuns(): readonly unknown[] {
    return this.#remoteRuns;
  }

  /** The agent has begun a run on a server. Throws BoundExceeded. */
  remoteRunBegan(run: unknown): void {
    this.#remoteRuns.push(run);
    if (this.#remoteRuns.length <= REMOTE_RUNS_MAX) this.#lanes.addHeld({ kind: 'remote-run', run }, REMOTE_RUN_HOLD_MS);
  }

  /** A step of the agent's own code. The `reached` of a first attempt is sent together with the next input. Throws BoundExceeded. */
  agentStep(input: AgentStepInput): void {
    const isFirst = this.#options.attempt === 1;
    if (isFirst && input.phase === 'reached') this.#lanes.addHeld(input, STEP_HOLD_MS);
    else this.#lanes.add(input);
  }

  /** Takes an event that does not end the turn. Throws BoundExceeded. */
  take(event: Exclude<AgentEvent, EndEvent>): void {
    this.#events += 1;
    if (this.#events > TURN_EVENTS_MAX) throw new BoundExceeded(`the agent sent more than ${TURN_EVENTS_MAX} events in one turn`);
    if (event.type === 'auth-required') {
      this.#awaitCredentials(event);
      return;
    }
    if (event.type === 'usage') {
      this.#usage = addTokens(this.#usage ?? {}, event.usage);
      return;
    }
    if (!this.#isStatus(event)) this.#showWorking();
    if (event.type === 'text' || event.type === 'snapshot' || event.type === 'artifact') this.#replacePrior();
    if (event.type === 'text') this.#textSink.token(event.text, event.stream, event);
    else if (event.type === 'text-end') this.#text.streams.end(event.stream);
    else if (event.type === 'snapshot') this.#textSink.snapshot(event.text);
    else if (event.type === 'artifact') this.#text.artifact(event);
    else if (event.type === 'tool') this.#tool(event);
    else if (event.type === 'progress') this.#progress(event);
  }

  /** Ends the turn: open tool calls end, lanes close, then the state changes. Throws BoundExceeded. */
  end(end: TurnEnd): void {
    const { work } = this.#options;
    const waitsOn = this.#waitsForCredentials && end.state === 'TASK_STATE_AUTH_REQUIRED';
    if (this.#waitsForCredentials && !waitsOn) this.#showWorking();
    const failed =
      end.state === 'TASK_STATE_FAILED' || end.state === 'TASK_STATE_CANCELED' || end.state === 'TASK_STATE_REJECTED';
    // If a turn fails without content, the text that an earlier attempt has shown stays.
    if (!failed) this.#replacePrior();
    if (isInterrupted(end.state)) this.#showAsked(end.message);
    const outcome = failed ? 'failed' : isInterrupted(end.state) ? 'waiting' : 'end';
    for (const callId of this.#tools.keys()) this.#endTool(callId, outcome);
    const message = this.#endMessage(end);
    this.#lanes.closeAll();
    const { state, history, reason, retryable = false, resume } = end;
    const shown = this.#usage === undefined ? end.metadata : { usage: this.#usage, ...end.metadata };
    for (const added of history ?? []) this.#checkSize(added);
    // Only the first turn can be answered with just a message, because a client that continues a task knows that there is one.
    const direct = message !== undefined && end.direct && work.turn === 1 && { direct: end.direct };
    const ended = { state, ...(message && { message }), ...direct, ...(history && { history }) };
    const kept = resume !== undefined && { resume };
    if (work.call === undefined) {
      // The task already shows that the agent waits for credentials.
      if (waitsOn) return;
      const metadata = { ...shown, ...(reason !== undefined && { reason, retryable }) };
      this.#lanes.add({ kind: 'status', ...ended, ...kept, ...(Object.keys(metadata).length > 0 && { metadata }) });
      return;
    }
    const why = { ...(shown && { metadata: shown }), ...(reason !== undefined && { reason, retryable }) };
    const { withheld } = this.#text;
    const withheldText = withheld !== undefined && { withheldText: withheld };
    this.#lanes.add({ kind: 'ended', call: work.call.id, ...ended, ...withheldText, ...why, ...kept });
  }

  /** Whether the event becomes a status, which already shows that the agent works. */
  #isStatus({ type }: AgentEvent): boolean {
    const { progress, notices } = this.#presentation;
    return (
      (type === 'progress' && progress === 'status') || (type === 'tool' && notices.as === 'status' && !this.#waitsForCredentials)
    );
  }

  /** The content of this attempt replaces that of earlier attempts, even if it is empty. */
  #replacePrior(): void {
    if (!this.#showsPrior) return;
    this.#showsPrior = false;
    this.#text.streams.reopen(this.#options.prior.openLanes);
  }

  get #presentation() {
    return this.#options.work.call?.presentation ?? DIRECT;
  }

  #agentText(): AgentText {
    const { work, agent, eventBytesMax, prior, forwardText, repeatsText = false } = this.#options;
    const { text, separateClose } = this.#presentation;
    const lanes = this.#lanes;
    const lane = `${this.#prefix}/answer`;
    const artifacts = new AgentArtifacts({
      lanes,
      prefix: `${this.#prefix}/artifact`,
      closedLanes: prior.closedLanes,
      ...(text.as === 'answer' && { metadata: { sourceAgent: agent } }),
      ...(separateClose && { separateClose }),
      bytesMax: eventBytesMax,
      onNew: () => this.#countArtifact(),
    });
    if (text.as === 'answer') {
      // The withheld text must fit into the one event that ends the call.
      const withheldUnitsMax = forwardText ? undefined : Math.floor(eventBytesMax / UNIT_BYTES_MAX);
      const onProgress = (parts: Part[]) => this.#nestedProgress(parts);
      return new AnswerText({ lanes, lane, presentation: text, artifacts, withheldUnitsMax, repeatsText, onProgress });
    }
    const messageId = text.as === 'transitory' && { messageId: artifactIdOf(work.taskId, `${lane}/message`) };
    return new PassThroughText({ lanes, lane, artifact: text.artifact, artifacts, ...messageId });
  }

  #awaitCredentials({ message, resume }: Extract<AgentEvent, { type: 'auth-required' }>): void {
    this.#checkSize(message);
    this.#waitsForCredentials = true;
    this.#isWorking = false;
    this.#waitsFor = { state: 'TASK_STATE_AUTH_REQUIRED', message, ...(resume !== undefined && { resume }) };
    this.#lanes.add({ kind: 'status', ...this.#waitsFor, state: 'TASK_STATE_AUTH_REQUIRED' });
  }

  /** Records that the agent works: it has begun, or no longer waits for credentials. `progress`: its own message about it. */
  #showWorking(progress?: Pick<StatusInput, 'message' | 'source'>): void {
    this.#waitsFor = undefined;
    this.#waitsForCredentials = false;
    if (!this.#isWorking || progress !== undefined) this.#lanes.add({ kind: 'status', state: 'TASK_STATE_WORKING', ...progress });
    this.#isWorking = true;
    this.#endPriorTools();
  }

  /**
   * Ends the tool calls that an earlier attempt has left open. If notices are statuses, it does so only when the task no longer waits for
   * credentials.
   */
  #endPriorTools(): void {
    if (this.#presentation.notices.as === 'status' && this.#waitsForCredentials) return;
    for (const { lane, tool, callId } of this.#priorTools.splice(0))
      this.#notice('failed', { lane: `${lane}/end`, tool, callId });
  }

  /** The part of the last message that must still be shown, because the text does not contain it. */
  #endMessage({ state, direct, standing, message }: TurnEnd): Message | undefined {
    const shown = () => (direct && message ? this.#text.wholeAnswer(message) : this.#text.ending(message, standing));
    const left = state === 'TASK_STATE_COMPLETED' ? shown() : message;
    if (left !== undefined) this.#checkSize(left);
    return left;
  }

  #tool({ phase, callId, tool, failed, waiting, arguments: args, result }: Extract<AgentEvent, { type: 'tool' }>): void {
    // Each call has exactly one start and one end, whatever the agent sends (S0-15, S2-7).
    if (!this.#tools.has(callId)) this.#startTool(callId, tool, args);
    if (phase === 'end' && waiting === true) this.#waiting.push(callId);
    if (phase === 'end') this.#endTool(callId, failed ? 'failed' : waiting ? 'waiting' : 'end', result);
  }

  /** Shows the call to which a question refers, unless the agent has already shown it. */
  #showAsked(message: Message | undefined): void {
    const asked = approvalRequestOf(message);
    if (asked === undefined) return;
    if (![...this.#waiting, ...this.#tools.keys()].some(id => isShownCall(id, asked.callId)))
      this.#startTool(asked.callId, asked.tool, asked.arguments);
  }

  /** A value of a tool call in at most `bytesMax` bytes, or fewer if records are small. */
  #shownValue(value: unknown, bytesMax: number): unknown {
    return this.#toolValues.bounded(value, Math.min(bytesMax, Math.floor(this.#options.eventBytesMax / 4)));
  }

  #startTool(callId: string, tool: string, args: unknown): void {
    const { attempt, work } = this.#options;
    this.#countArtifact();
    this.#notices += 1;
    // The lane is named by attempt and number, because the agent's call id may be any text.
    const lane = `${this.#prefix}/tool/${attempt}.${this.#notices}`;
    // Begins with the id of the agent's call, because two agents of a task may use the same tool call id, and a cluster below numbers its
    // calls in the same way (S2-7).
    const shownId = work.call === undefined ? callId : `${work.call.id}/${callId}`;
    this.#tools.set(callId, { lane, tool, shownId });
    this.#notice('start', {
      lane: `${lane}/start`,
      tool,
      callId: shownId,
      arguments: this.#shownValue(args, TOOL_ARGUMENTS_BYTES_MAX),
    });
  }

  #endTool(callId: string, phase: 'end' | 'failed' | 'waiting', result?: unknown): void {
    const open = this.#tools.get(callId);
    if (open === undefined) return;
    this.#tools.delete(callId);
    this.#notice(phase, {
      lane: `${open.lane}/end`,
      tool: open.tool,
      callId: open.shownId,
      result: this.#shownValue(result, TOOL_RESULT_BYTES_MAX),
    });
  }

  #notice(phase: NoticePhase, call: Omit<NoticeOptions, 'agent'>): void {
    const { agent, work } = this.#options;
    const { notices } = this.#presentation;
    const notice = callNotice(notices, phase, { ...call, agent });
    if (notices.as !== 'status') this.#lanes.add(notice);
    // The task shows its question, or its wait for credentials, instead of this notice.
    else if (phase !== 'waiting' && !this.#waitsForCredentials) this.#showWorking(noticeStatus(notice, work.taskId));
  }

  /** A plan, a notice or progress of a server below, in a profile that has no artifacts for them. */
  #nestedProgress(parts: Part[]): void {
    const { attempt, work } = this.#options;
    this.#countArtifact();
    const lane = `${this.#prefix}/progress/${attempt}.${this.#artifacts}`;
    const status = progressStatus({ lane, taskId: work.taskId, parts });
    if (status.message !== undefined) this.#checkSize(status.message);
    this.#showWorking(status);
  }

  /**
   * Progress is either a state with a message, or one artifact that contains the newest line. In both cases it is not part of the answer
   * (S4-21, S2-33).
   */
  #progress({ message, source }: Extract<AgentEvent, { type: 'progress' }>): void {
    this.#checkSize(message);
    const { progress } = this.#presentation;
    const from = source && { source };
    if (progress === 'status') {
      this.#showWorking({ message, ...from });
      return;
    }
    const artifact = withKind({ ...progress, metadata: { sourceAgent: this.#options.agent } }, 'progress');
    const lane = `${this.#prefix}/progress`;
    this.#lanes.artifact({ kind: 'artifact', lane, artifact, parts: message.parts, append: false, last: false, ...from });
  }

  #countArtifact(): void {
    this.#artifacts += 1;
    if (this.#artifacts > TURN_ARTIFACTS_MAX) {
      throw new BoundExceeded(`the agent made more than ${TURN_ARTIFACTS_MAX} artifacts and tool calls in one turn`);
    }
  }

  #checkSize(message: Message): void {
    const { eventBytesMax } = this.#options;
    if (Buffer.byteLength(JSON.stringify(message)) > eventBytesMax) {
      throw new BoundExceeded(`a message of the agent has more than ${eventBytesMax} bytes`);
    }
  }
}
