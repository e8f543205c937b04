import type { InterruptedState, Message, Metadata, TerminalState } from '@hopline/a2a';
import type { Work } from '@hopline/events';
import { artifactIdOf, ROOT_AGENT } from '@hopline/task';
import type { AgentEvent } from './agent.ts';
import { AionMapping } from './aion-mapping.ts';
import { ArtifactLanes } from './artifact-lanes.ts';
import type { Earlier } from './earlier-attempts.ts';
import { type InputSink, Lanes } from './lanes.ts';
import { BoundExceeded, TURN_ARTIFACTS_MAX, TURN_EVENTS_MAX } from './limits.ts';
import { AnswerMapping, type AnswerPlace, OwnMapping, type Standing, type TextMapping } from './text-mapping.ts';
import { toolNotice } from './tool-notice.ts';

/** How a turn ended. */
export type TurnEnd = {
  state: TerminalState | InterruptedState;
  message?: Message;
  /** The message is the whole answer. */
  direct?: true;
  standing?: Standing;
  history?: Message[];
  metadata?: Metadata;
  reason?: string;
  retryable?: boolean;
  resume?: unknown;
};

export type TurnInputsOptions = {
  work: Work;
  /** Name of the agent. */
  agent: string;
  attempt: number;
  sink: InputSink;
  /** JSON bytes of one event that is not text. */
  eventBytesMax: number;
  earlier: Earlier;
  /** The attempt before this one was waiting for credentials. */
  authorizing?: boolean;
  /** False: a supervisor's client does not see the agent's text; the supervisor reads it with the end of the call (C-5). */
  forwardText: boolean;
};

/** `shownId`: the call id that clients see. */
type OpenTool = { lane: string; tool: string; shownId: string };

/** Turns what an agent says in one turn into inputs of the log. Pure: no I/O, no waiting. */
export class TurnInputs {
  readonly #options: TurnInputsOptions;
  readonly #prefix: string;
  readonly #lanes: Lanes;
  readonly #where: AnswerPlace;
  readonly #mapping: TextMapping;
  readonly #tools = new Map<string, OpenTool>();
  #events = 0;
  #artifacts = 0;
  #notices = 0;
  #orphansEnded = false;
  /** The task shows that the agent waits for credentials. */
  #authorizing: boolean;
  #waitsFor: TurnEnd | undefined;

  constructor(options: TurnInputsOptions) {
    const { work, agent, attempt, sink, eventBytesMax, earlier, forwardText } = options;
    this.#options = options;
    this.#authorizing = options.authorizing === true;
    // Call ids are new in every turn; the root agent's lanes are told apart by the turn.
    this.#prefix = work.call?.id ?? `${ROOT_AGENT}/${work.turn}`;
    this.#lanes = new Lanes(sink, attempt);
    const answer = work.call?.answer;
    const lane = `${this.#prefix}/answer`;
    const artifacts = new ArtifactLanes({
      lanes: this.#lanes,
      prefix: `${this.#prefix}/artifact`,
      closed: earlier.closed,
      ...(answer && { metadata: { sourceAgent: agent } }),
      bytesMax: eventBytesMax,
      onNew: () => this.#countArtifact(),
    });
    this.#where = { lanes: this.#lanes, lane, header: answer ?? { name: 'response' }, artifacts };
    // In JSON a unit of text takes 6 bytes at most, and the end of a call is one event.
    this.#mapping = mappingOf(work, this.#where, forwardText ? undefined : Math.floor(eventBytesMax / 6));
  }

  begin(): void {
    const { work, attempt, sink } = this.#options;
    if (work.call === undefined) sink.add({ kind: 'status', state: 'TASK_STATE_WORKING' });
    // What a dead attempt had streamed must not stand, even if this one says nothing.
    if (attempt > 1) this.#mapping.slots.replace(this.#options.earlier.shown);
    this.#endOrphans();
  }

  /** How the turn ends if nobody can wait on for the credentials that its agent needs. */
  get waitsFor(): TurnEnd | undefined {
    return this.#waitsFor;
  }

  /** Takes an event that does not end the turn. Throws BoundExceeded. */
  take(event: Exclude<AgentEvent, { type: 'interrupted' | 'done' | 'failed' }>): void {
    this.#events += 1;
    if (this.#events > TURN_EVENTS_MAX) throw new BoundExceeded(`the agent sent more than ${TURN_EVENTS_MAX} events in one turn`);
    if (event.type === 'auth-required') {
      this.#authorize(event);
      return;
    }
    this.#goOn();
    if (event.type === 'text') this.#mapping.text(event.text, event);
    else if (event.type === 'text-end') this.#mapping.slots.end(event.stream);
    else if (event.type === 'snapshot') this.#mapping.snapshot(event.text);
    else if (event.type === 'artifact') this.#mapping.artifact(event);
    else if (event.type === 'tool') this.#tool(event);
    else if (event.type === 'progress') this.#progress(event);
  }

  /** Says how the turn ended: open tool calls end, lanes close, then the state. */
  end(end: TurnEnd): void {
    const { work, sink } = this.#options;
    const waitsOn = this.#authorizing && end.state === 'TASK_STATE_AUTH_REQUIRED';
    if (!waitsOn) this.#goOn();
    const failed =
      end.state === 'TASK_STATE_FAILED' || end.state === 'TASK_STATE_CANCELED' || end.state === 'TASK_STATE_REJECTED';
    for (const callId of this.#tools.keys()) this.#toolEnds(callId, failed);
    const message = this.#endMessage(end);
    this.#lanes.closeAll();
    const { state, history, reason, retryable = false, resume } = end;
    for (const added of history ?? []) this.#checkSize(added);
    // Who began a task with us knows it by its id: only the first turn can be answered without one.
    const direct = message !== undefined && end.direct && work.turn === 1 && { direct: end.direct };
    const said = { state, ...(message && { message }), ...direct, ...(history && { history }) };
    const left = resume !== undefined && { resume };
    if (work.call === undefined) {
      // The task shows it already.
      if (waitsOn) return;
      const metadata = { ...end.metadata, ...(reason !== undefined && { reason, retryable }) };
      sink.add({ kind: 'status', ...said, ...left, ...(Object.keys(metadata).length > 0 && { metadata }) });
      return;
    }
    const why = { ...(end.metadata && { metadata: end.metadata }), ...(reason !== undefined && { reason, retryable }) };
    const { held } = this.#mapping;
    sink.add({ kind: 'ended', call: work.call.id, ...said, ...(held !== undefined && { withheldText: held }), ...why, ...left });
  }

  #authorize(event: Extract<AgentEvent, { type: 'auth-required' }>): void {
    const { message, resume } = event;
    this.#checkSize(message);
    this.#authorizing = true;
    this.#waitsFor = { state: 'TASK_STATE_AUTH_REQUIRED', message, ...(resume !== undefined && { resume }) };
    this.#options.sink.add({ kind: 'status', ...this.#waitsFor, state: 'TASK_STATE_AUTH_REQUIRED' });
  }

  #goOn(): void {
    this.#waitsFor = undefined;
    if (!this.#authorizing) return;
    this.#authorizing = false;
    this.#options.sink.add({ kind: 'status', state: 'TASK_STATE_WORKING' });
  }

  #endMessage({ state, direct, standing, message }: TurnEnd): Message | undefined {
    const ending = () => (direct && message ? this.#mapping.whole(message) : this.#mapping.ending(message, standing));
    const left = state === 'TASK_STATE_COMPLETED' ? ending() : message;
    if (left !== undefined) this.#checkSize(left);
    return left;
  }

  #tool({ phase, callId, tool, failed }: Extract<AgentEvent, { type: 'tool' }>): void {
    // One start and one end for each call, whatever the agent sends (S0-15, S2-7).
    if (!this.#tools.has(callId)) this.#toolStarts(callId, tool);
    if (phase === 'end') this.#toolEnds(callId, failed === true);
  }

  #toolStarts(callId: string, tool: string): void {
    this.#countArtifact();
    this.#notices += 1;
    // By attempt and place, not by the agent's call id, which may be anything.
    const lane = `${this.#prefix}/tool/${this.#options.attempt}.${this.#notices}`;
    const shownId = this.#shownId(callId);
    this.#tools.set(callId, { lane, tool, shownId });
    this.#lanes.notice(toolNotice(`${lane}/start`, this.#options.agent, tool, shownId, 'start'));
  }

  /** The calls of a dead attempt will never end by themselves. */
  #endOrphans(): void {
    const { earlier, agent } = this.#options;
    if (this.#orphansEnded) return;
    this.#orphansEnded = true;
    for (const { lane, tool, callId } of earlier.orphans)
      this.#lanes.notice(toolNotice(`${lane}/end`, agent, tool, callId, 'failed'));
  }

  #toolEnds(callId: string, failed: boolean): void {
    const open = this.#tools.get(callId);
    if (open === undefined) return;
    this.#tools.delete(callId);
    const { lane, tool, shownId } = open;
    this.#lanes.notice(toolNotice(`${lane}/end`, this.#options.agent, tool, shownId, failed ? 'failed' : 'end'));
  }

  /** Two agents of one task may use one id, and a cluster below begins its calls as we do: an id below a call begins with the call's, so that starts and ends pair (S2-7). */
  #shownId(callId: string): string {
    const { call } = this.#options.work;
    return call === undefined ? callId : `${call.id}/${callId}`;
  }

  /**
   * Progress is a state with a message where the agent speaks for the task, or where its own states pass (profiles `transparent`, `aion`). Else its progress is one artifact that always holds the newest line,
   * so that it is seen and stays out of the answer (S4-21, S2-33).
   */
  #progress({ message, source }: Extract<AgentEvent, { type: 'progress' }>): void {
    this.#checkSize(message);
    const { work, sink } = this.#options;
    const from = source && { source };
    if (work.call === undefined || work.profile !== 'caipe') {
      sink.add({ kind: 'status', state: 'TASK_STATE_WORKING', message, ...from });
      return;
    }
    const artifact = { name: 'progress', metadata: { sourceAgent: this.#options.agent } };
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

function mappingOf({ taskId, profile, call }: Work, where: AnswerPlace, heldUnitsMax: number | undefined): TextMapping {
  if (call?.answer) return new AnswerMapping(where, heldUnitsMax);
  return profile === 'aion' ? new AionMapping(where, artifactIdOf(taskId, `${where.lane}/message`)) : new OwnMapping(where);
}
