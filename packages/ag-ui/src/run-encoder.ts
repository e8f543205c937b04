import {
  type ApprovalRequest,
  approvalRequestOf,
  isInProgress,
  isInterrupted,
  isShownCall,
  type JsonObject,
  stateWord,
} from '@hopline/a2a';
import { type TextLabel, type ViewChange, type ViewFile, ViewFold, type ViewItem, type ViewTool } from '@hopline/task-view';
import { type AgUiEvent, type AgUiMessage, PROTOCOL_VERSION, type RunOutcome } from './ag-ui-event.ts';
import { interruptIdOf } from './run-input.ts';

type RunEncoderOptions = {
  threadId: string;
  runId: string;
  /** Messages of the thread before the answer, as the client sent them. */
  messages: readonly unknown[];
  /** State of the client, which the run keeps. */
  state: JsonObject;
  /** The turn of the task that the run is. */
  turn: number;
};

/** Agent that calls the other agents: its calls are the steps of a run. */
const SUPERVISOR = 'supervisor';

type Text = { id: string; isPlan: boolean; agent: string | undefined; text: string; isOpen: boolean };
/** `isContinued`: an earlier run has shown the call and asked for its approval, and this run has the result. */
type Call = { id: string; tool: ViewTool; hasArguments: boolean; isOpen: boolean; isContinued: boolean };

/** Form of the answer to a question for an approval. */
const APPROVAL_SCHEMA: JsonObject = {
  type: 'object',
  properties: { approved: { type: 'boolean' }, reason: { type: 'string' } },
  required: ['approved'],
};

/**
 * Encodes one turn of a task as a run of AG-UI. It reads the task from its first event. Events that were stored before the stream began become
 * snapshots, in which open messages are opened again, so that a run that is resumed at any place passes AG-UI's verifier.
 */
export class RunEncoder {
  readonly #options: RunEncoderOptions;
  readonly #fold = new ViewFold();
  /** Texts and calls of the run by their ids in the task, in the order in which they began. A new attempt replaces the previous one. */
  readonly #texts = new Map<string, Text>();
  readonly #calls = new Map<string, Call>();
  readonly #order: (Text | Call)[] = [];
  readonly #steps = new Map<string, string>();
  readonly #files: ViewFile[] = [];
  /** The call about which the previous run asked, and the id under which that run showed it. */
  #asked: { callId: string; shownId: string } | undefined;
  #state: JsonObject = { taskId: '', contextId: '', state: 'submitted', progress: null, usage: null };
  #events: AgUiEvent[] = [];
  /** Events go out; before, changes only prepare the snapshots. */
  #isLive = false;
  #hasBegun = false;
  #end: AgUiEvent | undefined;

  constructor(options: RunEncoderOptions) {
    this.#options = options;
  }

  /** The run has ended. No event follows. */
  get ended(): boolean {
    return this.#isLive && this.#end !== undefined;
  }

  /** `isStored` is true while further events that were stored before the stream began are still to follow. */
  add(item: ViewItem, { isStored = false } = {}): AgUiEvent[] {
    for (const change of this.#fold.add(item)) if (this.#end === undefined) this.#add(change);
    if (!isStored && !this.#isLive && this.#hasBegun) this.#goLive();
    const events = this.#events;
    this.#events = [];
    return events;
  }

  #add(change: ViewChange): void {
    const { turn } = this.#options;
    if (change.kind === 'task') {
      const { taskId, contextId } = change;
      this.#state = { ...this.#state, taskId, contextId };
    }
    if ((change.kind === 'task' && turn === 1) || (change.kind === 'turn' && change.turn === turn)) this.#hasBegun = true;
    if (this.#hasBegun) this.#encode(change);
    else if (change.kind === 'question') {
      const { callId } = approvalRequestOf(change.question.message) ?? {};
      const shown = callId === undefined ? undefined : this.#fold.view.tools.findLast(({ id }) => isShownCall(id, callId));
      this.#asked = callId === undefined ? undefined : { callId, shownId: shown?.id ?? callId };
    }
  }

  /** The first events of the stream: the run so far. */
  #goLive(): void {
    this.#isLive = true;
    const { threadId, runId, messages, state } = this.#options;
    this.#emit({ type: 'RUN_STARTED', threadId, runId, protocolVersion: PROTOCOL_VERSION });
    this.#emit({ type: 'STATE_SNAPSHOT', snapshot: { ...state, hopline: this.#state } });
    if (this.#order.length > 0) this.#snapshot(messages);
    for (const stepName of this.#steps.values()) this.#emit({ type: 'STEP_STARTED', stepName });
    for (const file of this.#files) this.#emit(customFile(file));
    if (this.#end !== undefined) this.#finish(this.#end);
  }

  /** Replaces the messages of the run, and opens again those that are still being written. */
  #snapshot(before: readonly unknown[]): void {
    const messages: AgUiMessage[] = [];
    for (const entry of this.#order) {
      if (!('tool' in entry)) messages.push(messageOf(entry));
      else if (!entry.isOpen) messages.push(...messagesOfCall(entry));
    }
    this.#emit({ type: 'MESSAGES_SNAPSHOT', messages: [...before, ...messages] });
    for (const entry of this.#order) {
      if (!entry.isOpen) continue;
      if ('tool' in entry) this.#openCall(entry);
      else this.#openText(entry);
    }
  }

  #encode(change: ViewChange): void {
    switch (change.kind) {
      case 'text':
        this.#delta(change.text, change.delta);
        break;
      case 'text-restarted':
        this.#restart(change.text, change.whole);
        break;
      case 'text-ended':
        this.#endText(change.text.id);
        break;
      case 'tool-started':
        this.#startCall(change.tool);
        break;
      case 'tool-arguments':
        this.#callArguments(change.tool);
        break;
      case 'tool-ended':
        this.#endCall(change.tool);
        break;
      case 'file':
        this.#files.push(change.file);
        this.#emit(customFile(change.file));
        break;
      case 'progress':
        this.#setState('progress', change.line === '' ? null : change.line);
        break;
      case 'usage':
        this.#setState('usage', change.usage);
        break;
      case 'state':
        this.#stateChanged(change);
        break;
      case 'task':
      case 'turn':
      case 'question':
      case 'gap':
        break;
      default:
        change satisfies never;
    }
  }

  #delta({ id: textId, channel, agent }: TextLabel, delta: string): void {
    let entry = this.#texts.get(textId);
    if (entry === undefined) {
      entry = { id: textId, isPlan: channel === 'plan', agent, text: '', isOpen: true };
      this.#texts.set(textId, entry);
      this.#order.push(entry);
      this.#openText(entry);
    } else if (!entry.isOpen) {
      entry.isOpen = true;
      this.#openText(entry);
    }
    entry.text += delta;
    const type = entry.isPlan ? 'REASONING_MESSAGE_CONTENT' : 'TEXT_MESSAGE_CONTENT';
    this.#emit({ type, messageId: entry.id, delta });
  }

  #openText({ id: messageId, isPlan, agent }: Text): void {
    if (isPlan) {
      this.#emit({ type: 'REASONING_START', messageId });
      this.#emit({ type: 'REASONING_MESSAGE_START', messageId, role: 'reasoning' });
    } else this.#emit({ type: 'TEXT_MESSAGE_START', messageId, role: 'assistant', ...(agent !== undefined && { name: agent }) });
  }

  #closeText({ id: messageId, isPlan }: Text): void {
    if (isPlan) {
      this.#emit({ type: 'REASONING_MESSAGE_END', messageId });
      this.#emit({ type: 'REASONING_END', messageId });
    } else this.#emit({ type: 'TEXT_MESSAGE_END', messageId });
  }

  /** A snapshot of the messages replaces text that was already streamed. */
  #restart(label: TextLabel, whole: string): void {
    const entry = this.#texts.get(label.id);
    if (entry === undefined) {
      if (whole !== '') this.#delta(label, whole);
      return;
    }
    for (const open of this.#order) if (!('tool' in open) && open.isOpen) this.#closeText(open);
    for (const open of this.#order) if ('tool' in open && open.isOpen) this.#closeCall(open);
    entry.text = whole;
    if (this.#isLive) this.#snapshot(this.#options.messages);
  }

  #endText(textId: string): void {
    const entry = this.#texts.get(textId);
    if (entry?.isOpen !== true) return;
    entry.isOpen = false;
    this.#closeText(entry);
  }

  #startCall(tool: ViewTool): void {
    if (tool.agent === SUPERVISOR) {
      this.#startStep(tool);
      return;
    }
    const known = this.#calls.get(tool.id);
    if (known?.isOpen === true) return;
    // A later attempt shows the call again.
    const attempt = this.#order.filter(entry => 'tool' in entry && entry.tool.id === tool.id).length + 1;
    const asked = this.#asked !== undefined && isShownCall(tool.id, this.#asked.callId) ? this.#asked.shownId : undefined;
    const id = asked ?? (attempt === 1 ? tool.id : `${tool.id}~${attempt}`);
    const call: Call = { id, tool, hasArguments: false, isOpen: true, isContinued: asked !== undefined };
    this.#calls.set(tool.id, call);
    this.#order.push(call);
    this.#openCall(call);
  }

  #openCall({ id: toolCallId, tool, hasArguments, isContinued }: Call): void {
    if (isContinued) return;
    this.#emit({ type: 'TOOL_CALL_START', toolCallId, toolCallName: tool.tool });
    if (hasArguments) this.#emit({ type: 'TOOL_CALL_ARGS', toolCallId, delta: argumentsOf(tool) });
  }

  #callArguments(tool: ViewTool): void {
    const call = this.#calls.get(tool.id);
    if (call?.isOpen !== true) return;
    call.tool = tool;
    call.hasArguments = true;
    if (!call.isContinued) this.#emit({ type: 'TOOL_CALL_ARGS', toolCallId: call.id, delta: argumentsOf(tool) });
  }

  #endCall(tool: ViewTool): void {
    if (tool.agent === SUPERVISOR) {
      this.#endStep(tool.id);
      return;
    }
    const call = this.#calls.get(tool.id);
    if (call?.isOpen !== true) return;
    call.tool = tool;
    call.isOpen = false;
    this.#closeCall(call);
    const result = resultOf(call);
    if (result !== undefined) {
      const { id: messageId, toolCallId, content } = result;
      this.#emit({ type: 'TOOL_CALL_RESULT', messageId, toolCallId, content, role: 'tool' });
    }
  }

  #closeCall({ id: toolCallId, isContinued }: Call): void {
    if (!isContinued) this.#emit({ type: 'TOOL_CALL_END', toolCallId });
  }

  /** The id of the call about which a question asks. A call that no notice has shown begins here. */
  #shownCall({ callId, tool, arguments: args }: ApprovalRequest): string {
    const shown = [...this.#calls.values()].findLast(call => isShownCall(call.tool.id, callId));
    if (shown !== undefined) return shown.id;
    const call = { id: callId, tool, arguments: args, agent: undefined, result: undefined, notice: '' };
    const known: ViewTool = { ...call, turn: this.#options.turn, outcome: 'waiting' };
    this.#startCall(known);
    this.#callArguments(known);
    return callId;
  }

  /** Names of open steps differ. */
  #startStep({ id, tool }: ViewTool): void {
    if (this.#steps.has(id)) return;
    const open = new Set(this.#steps.values());
    let stepName = tool;
    for (let n = 2; open.has(stepName); n++) stepName = `${tool} ${n}`;
    this.#steps.set(id, stepName);
    this.#emit({ type: 'STEP_STARTED', stepName });
  }

  #endStep(id: string): void {
    const stepName = this.#steps.get(id);
    if (stepName === undefined) return;
    this.#steps.delete(id);
    this.#emit({ type: 'STEP_FINISHED', stepName });
  }

  #setState(key: string, value: unknown): void {
    this.#state = { ...this.#state, [key]: value };
    this.#emit({ type: 'STATE_DELTA', delta: [{ op: 'replace', path: `/hopline/${key}`, value }] });
  }

  #stateChanged({ state, reason }: ViewChange & { kind: 'state' }): void {
    this.#setState('state', stateWord(state));
    if (isInProgress(state)) return;
    if (this.#state.progress !== null) this.#setState('progress', null);
    const { threadId, runId } = this.#options;
    const { question, usage } = this.#fold.view;
    const finished = (outcome: RunOutcome): AgUiEvent => ({
      ...{ type: 'RUN_FINISHED', threadId, runId, outcome },
      ...(usage !== undefined && { usage: [usageOf(usage)] }),
    });
    let end: AgUiEvent;
    if (state === 'TASK_STATE_COMPLETED') end = finished({ type: 'success' });
    else if (state === 'TASK_STATE_CANCELED') end = finished({ type: 'cancelled' });
    else if (isInterrupted(state)) {
      const id = interruptIdOf({ taskId: String(this.#state.taskId), turn: this.#options.turn });
      const kind = question?.kind === 'auth' ? 'auth_required' : 'input_required';
      const text = question?.text ?? '';
      const asked = approvalRequestOf(question?.message);
      const approval = asked && {
        toolCallId: this.#shownCall(asked),
        responseSchema: APPROVAL_SCHEMA,
        // Arguments and result of the call may have been cut.
        metadata: { tool: asked.tool, arguments: asked.arguments },
      };
      const reason = approval === undefined ? kind : 'tool_call';
      end = finished({ type: 'interrupt', interrupts: [{ id, reason, ...(text !== '' && { message: text }), ...approval }] });
    } else end = { type: 'RUN_ERROR', message: reason ?? `the task is ${stateWord(state)}`, code: `task_${stateWord(state)}` };
    this.#end = end;
    if (this.#isLive) this.#finish(end);
  }

  /** Closes what is open, so that the run may end. */
  #finish(end: AgUiEvent): void {
    for (const entry of this.#order) {
      if (!entry.isOpen) continue;
      entry.isOpen = false;
      if ('tool' in entry) this.#closeCall(entry);
      else this.#closeText(entry);
    }
    for (const id of [...this.#steps.keys()]) this.#endStep(id);
    this.#emit(end);
  }

  #emit(event: AgUiEvent): void {
    if (this.#isLive) this.#events.push(event);
  }
}

function argumentsOf({ arguments: value }: ViewTool): string {
  return JSON.stringify(value ?? {});
}

function messageOf({ id, isPlan, agent, text }: Text): AgUiMessage {
  if (isPlan) return { id, role: 'reasoning', content: text };
  return { id, role: 'assistant', content: text, ...(agent !== undefined && { name: agent }) };
}

function messagesOfCall(call: Call): AgUiMessage[] {
  const { id, tool } = call;
  const called = { id, type: 'function' as const, function: { name: tool.tool, arguments: argumentsOf(tool) } };
  const result = resultOf(call);
  const start: AgUiMessage[] = call.isContinued ? [] : [{ id, role: 'assistant', toolCalls: [called] }];
  return [...start, ...(result === undefined ? [] : [result])];
}

/** A call that waits for the user, or whose end is unknown, has no result. */
function resultOf({ id, tool }: Call): (AgUiMessage & { role: 'tool' }) | undefined {
  const { outcome, result, notice } = tool;
  if (outcome !== 'completed' && outcome !== 'failed') return undefined;
  const content = typeof result === 'string' ? result : result === undefined ? notice.trim() : JSON.stringify(result);
  return { id: `${id}-result`, role: 'tool', toolCallId: id, content, ...(outcome === 'failed' && { error: content }) };
}

function customFile({ id, name, description, agent, parts }: ViewFile): AgUiEvent {
  return { type: 'CUSTOM', name: 'hopline.file', value: { id, name, description, agent, parts } };
}

function usageOf({
  inputTokens,
  outputTokens,
  totalTokens,
  reasoningTokens,
  cachedTokens,
}: Readonly<Record<string, number>>): JsonObject {
  const known = { inputTokens, outputTokens, totalTokens, reasoningTokens, cachedInputTokens: cachedTokens };
  return Object.fromEntries(Object.entries(known).filter(([, value]) => Number.isSafeInteger(value)));
}
