import {
  type ApprovalResponse,
  approvalRequestOf,
  isInProgress,
  isInterrupted,
  isShownCall,
  type Part,
  stateWord,
  type TaskState,
} from '@hopline/a2a';
import {
  type ClientView,
  changesOf,
  type TextLabel,
  type ViewChange,
  type ViewFile,
  type ViewQuestion,
  type ViewTool,
} from '@hopline/task-view';
import type { UiChunk } from './ui-chunk.ts';

/** Header by which clients recognize a UI message stream, and its value. */
export const UI_STREAM_HEADER = 'x-vercel-ai-ui-message-stream';
export const UI_STREAM_VERSION = 'v1';

/**
 * A decision about a call of the message. `toolCallId`: the id by which the page knows the call; if present, the page also knows the
 * decision.
 */
export type ShownApproval = ApprovalResponse & { toolCallId?: string };

/** A call about which the message has asked, with the id of the page and that of the agent. */
type AskedCall = { toolCallId: string; callId: string };
type DecidedCall = AskedCall & { approved: boolean; hasOutput: boolean };

/**
 * Encodes one turn of a task as one assistant message of the AI SDK: the changes of its view as chunks, in order. Only the answer becomes text,
 * so that a page that joins the text parts has the answer. A stream ends with `finish`, `error` or `abort`.
 */
export class ChunkEncoder {
  readonly #messageId: string;
  readonly #open = new Set<string>();
  /** Numbers the versions of a plan: each is a reasoning part of its own. */
  readonly #plans = new Map<string, number>();
  /** Ids of the calls that the message shows, and whether they have an output. */
  readonly #calls = new Map<string, boolean>();
  #expected: ShownApproval[] = [];
  #asked: AskedCall | undefined;
  readonly #decided: DecidedCall[] = [];
  #hasStarted = false;
  #hasEnded = false;

  /** `messageId` must be the same for each stream of the turn, because a resumed stream replaces the message of this id. */
  constructor(messageId: string) {
    this.#messageId = messageId;
  }

  /** The turn has ended. No chunk follows. */
  get ended(): boolean {
    return this.#hasEnded;
  }

  /** The next turns continue the message, each with one of these decisions. */
  expect(approvals: readonly ShownApproval[]): void {
    this.#expected = [...approvals];
  }

  /** Encodes the changes of a fold, whose view has all of them. The first chunks begin the message. */
  encode(changes: readonly ViewChange[], fold: { readonly view: ClientView }): UiChunk[] {
    // Most changes are one piece of text.
    if (this.#hasStarted && changes.length === 1 && changes[0]!.kind === 'text') return this.#encode(changes[0]!);
    const chunks: UiChunk[] = this.#hasStarted ? [] : [this.#start(fold.view)];
    const isTakenBack = changes.some(change => change.kind === 'text-restarted' && change.text.channel === 'answer');
    if (!isTakenBack) return [...chunks, ...changes.flatMap(change => this.#encode(change))];
    // Text that was streamed cannot be changed, only taken back with everything else.
    this.#open.clear();
    this.#plans.clear();
    return [...chunks, { type: 'reset-step' }, ...changesOf(fold.view).flatMap(change => this.#encode(change))];
  }

  #start({ taskId, contextId }: ClientView): UiChunk {
    this.#hasStarted = true;
    return { type: 'start', messageId: this.#messageId, messageMetadata: { hopline: { taskId, contextId } } };
  }

  #encode(change: ViewChange): UiChunk[] {
    if (this.#hasEnded) return [];
    switch (change.kind) {
      case 'text':
        return this.#delta(change.text, change.delta);
      case 'text-restarted':
        return this.#nextPlan(change.text, change.whole);
      case 'text-ended':
        return this.#end(change.text);
      case 'tool-started':
      case 'tool-arguments':
        return this.#input(change.tool);
      case 'tool-ended':
        return this.#output(change.tool);
      case 'file':
        return change.file.parts.map((part, index) => fileOf(change.file, part, index));
      case 'progress':
        return [{ type: 'data-progress', id: 'progress', data: { line: change.line, agent: change.agent }, transient: true }];
      case 'question':
        return [...this.#approvalRequest(change.question), ...questionOf(change.question)];
      case 'usage':
        return [{ type: 'message-metadata', messageMetadata: { hopline: { usage: change.usage } } }];
      case 'state':
        return this.#state(change.state, change.reason);
      case 'turn':
        return this.#nextTurn();
      case 'task':
      case 'gap':
        return [];
    }
  }

  #input(tool: ViewTool): UiChunk[] {
    // The page keeps the decision in the part of the call, so it is not shown again.
    if (this.#decidedCall(tool) !== undefined) return [];
    this.#calls.set(tool.id, false);
    return [inputOf(tool)];
  }

  #output(tool: ViewTool): UiChunk[] {
    const decided = this.#decidedCall(tool);
    if (decided === undefined) {
      const shown = outputOf(tool);
      if (shown.length > 0) this.#calls.set(tool.id, true);
      return shown;
    }
    if (!decided.approved) return [];
    const output = outputOf({ ...tool, id: decided.toolCallId });
    decided.hasOutput ||= output.length > 0;
    return output;
  }

  #decidedCall({ id }: ViewTool): DecidedCall | undefined {
    return this.#decided.findLast(({ callId }) => isShownCall(id, callId));
  }

  /** The person sees the arguments of the request, because the call runs with those; a notice may have none, or only their beginning. */
  #approvalRequest({ message }: ViewQuestion): UiChunk[] {
    const asked = approvalRequestOf(message);
    if (asked === undefined) return [];
    const { callId, tool: toolName, arguments: input } = asked;
    const shownId = [...this.#calls.keys()].findLast(id => isShownCall(id, callId));
    const toolCallId = shownId ?? callId;
    this.#asked = { toolCallId, callId };
    const request: UiChunk = { type: 'tool-approval-request', approvalId: callId, toolCallId };
    const open = [...this.#calls].flatMap(([id, hasOutput]) => (hasOutput || id === shownId ? [] : [id]));
    this.#calls.set(toolCallId, false);
    return [
      ...open.map(id => this.#interrupted(id)),
      { type: 'tool-input-available', toolCallId, toolName, input, ...BY_SERVER },
      request,
    ];
  }

  /** The call of an agent whose tool waits. A page sends decisions by itself only when no other call is open. */
  #interrupted(toolCallId: string): UiChunk {
    this.#calls.set(toolCallId, true);
    return { type: 'tool-output-available', toolCallId, output: 'waits for an approval', ...BY_SERVER };
  }

  /** A turn that a decision began. Only text of that turn can be taken back later, because the turn is a step of its own. */
  #nextTurn(): UiChunk[] {
    const next = this.#expected.shift();
    if (next === undefined) return [];
    const { callId, reason } = next;
    const { toolCallId = this.#asked?.toolCallId } = next;
    if (toolCallId === undefined) return [];
    const approved = next.approved && (this.#asked === undefined || this.#asked.callId === callId);
    this.#decided.push({ toolCallId, callId: this.#asked?.callId ?? callId, approved, hasOutput: false });
    this.#calls.set(toolCallId, true);
    const approvalId = this.#asked?.callId ?? callId;
    const response: UiChunk = { type: 'tool-approval-response', approvalId, approved, ...(reason !== undefined && { reason }) };
    return [
      ...(next.toolCallId === undefined ? [response] : []),
      ...(approved ? [] : [{ type: 'tool-output-denied' as const, toolCallId }]),
      { type: 'start-step' },
    ];
  }

  /** A page sends an approval again as long as its call has no output, and profiles that show no calls show no results. */
  #missingOutputs(error: string | undefined): UiChunk[] {
    const missing = this.#decided.filter(({ approved, hasOutput }) => approved && !hasOutput);
    return missing.map(({ toolCallId }) =>
      error === undefined
        ? { type: 'tool-output-available', toolCallId, output: null, ...BY_SERVER }
        : { type: 'tool-output-error', toolCallId, errorText: error, ...BY_SERVER },
    );
  }

  #delta(text: TextLabel, delta: string): UiChunk[] {
    const { id, type } = this.#partOf(text);
    if (this.#open.has(id)) return [{ type: `${type}-delta`, id, delta }];
    this.#open.add(id);
    const { agent } = text;
    const start: UiChunk = {
      type: `${type}-start`,
      id,
      ...(agent !== undefined && { providerMetadata: { hopline: { agent } } }),
    };
    return [start, { type: `${type}-delta`, id, delta }];
  }

  #end(text: TextLabel): UiChunk[] {
    const { id, type } = this.#partOf(text);
    return this.#open.delete(id) ? [{ type: `${type}-end`, id }] : [];
  }

  #nextPlan(text: TextLabel, whole: string): UiChunk[] {
    const ended = this.#end(text);
    this.#plans.set(text.id, (this.#plans.get(text.id) ?? 1) + 1);
    return whole === '' ? ended : [...ended, ...this.#delta(text, whole)];
  }

  #partOf({ id, channel }: TextLabel): { id: string; type: 'text' | 'reasoning' } {
    if (channel === 'answer') return { id, type: 'text' };
    const version = this.#plans.get(id) ?? 1;
    return { id: version === 1 ? id : `${id}.${version}`, type: 'reasoning' };
  }

  #state(state: TaskState, reason: string | undefined): UiChunk[] {
    const messageMetadata = { hopline: { state: stateWord(state) } };
    if (isInProgress(state)) return [{ type: 'message-metadata', messageMetadata }];
    this.#hasEnded = true;
    if (state === 'TASK_STATE_COMPLETED' || isInterrupted(state))
      return [...this.#missingOutputs(undefined), { type: 'finish', finishReason: 'stop', messageMetadata }];
    const errorText = reason ?? `the task is ${stateWord(state)}`;
    const shown: UiChunk[] = [...this.#missingOutputs(errorText), { type: 'message-metadata', messageMetadata }];
    if (state === 'TASK_STATE_CANCELED') return [...shown, { type: 'abort', ...(reason !== undefined && { reason }) }];
    return [...shown, { type: 'error', errorText }];
  }
}

/** The id of the assistant message that answers a message of the user: the same for each stream of the turn. */
export function answerIdOf(userMessageId: string): string {
  return `answer-${userMessageId}`;
}

/** The server runs all tools, so the page must not run them: `providerExecuted`. Their names are not known in advance: `dynamic`. */
const BY_SERVER = { providerExecuted: true, dynamic: true } as const;

function inputOf({ id, tool, agent, arguments: input = {} }: ViewTool): UiChunk {
  const call = { toolCallId: id, toolName: tool, input, ...BY_SERVER };
  return { type: 'tool-input-available', ...call, ...(agent !== undefined && { providerMetadata: { hopline: { agent } } }) };
}

function questionOf({ kind, text }: ViewQuestion): UiChunk[] {
  const id = 'question';
  const providerMetadata = { hopline: { channel: 'question' } };
  const shown: UiChunk[] =
    text === ''
      ? []
      : [
          { type: 'text-start', id, providerMetadata },
          { type: 'text-delta', id, delta: text },
          { type: 'text-end', id },
        ];
  return [...shown, { type: 'data-question', id, data: { kind, text } }];
}

/** A call that waits for the user, or whose end is unknown, stays without output. */
function outputOf({ id, outcome, result, notice }: ViewTool): UiChunk[] {
  if (outcome === 'completed')
    return [{ type: 'tool-output-available', toolCallId: id, output: result ?? notice.trim(), ...BY_SERVER }];
  if (outcome !== 'failed') return [];
  const errorText = typeof result === 'string' ? result : notice.trim();
  return [{ type: 'tool-output-error', toolCallId: id, errorText, ...BY_SERVER }];
}

/** Addresses that a page may open. */
const LINK = /^https?:\/\//i;

function fileOf({ id, name, description, agent }: ViewFile, part: Part, index: number): UiChunk {
  const { text, raw, url, data, filename = name } = part;
  const artifact = (content: unknown): UiChunk => ({
    ...{ type: 'data-artifact', id: `${id}.${index}`, data: { name, description, agent, data: content } },
  });
  if (data !== undefined) return artifact(data);
  // A page makes a link of a file. One with another scheme, such as `javascript:`, would be the agent's script in the page.
  if (url !== undefined && !LINK.test(url))
    return artifact({ url, ...(part.mediaType !== undefined && { mediaType: part.mediaType }) });
  const mediaType = part.mediaType ?? (text === undefined ? 'application/octet-stream' : 'text/plain');
  const providerMetadata = { hopline: { filename, agent } };
  if (url !== undefined) return { type: 'file', url, mediaType, providerMetadata };
  // A lone surrogate cannot be percent-encoded.
  const content = raw === undefined ? `,${encodeURIComponent((text ?? '').toWellFormed())}` : `;base64,${raw}`;
  return {
    type: 'file',
    url: `data:${mediaType}${raw === undefined ? ';charset=utf-8' : ''}${content}`,
    mediaType,
    providerMetadata,
  };
}
