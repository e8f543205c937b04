import { isInProgress, isInterrupted, type JsonObject, type Metadata, type Part, stateWord, type TaskState } from '@hopline/a2a';
import { type TextLabel, type ViewChange, type ViewFile, ViewFold, type ViewItem, type ViewTool } from '@hopline/task-view';
import { createdAtOf, type ResponseRef, responseIdOf } from './response-id.ts';
import { type ResponseUsage, responseUsageOf } from './usage.ts';

/** Member of a message's metadata that keeps the parts of the request that the response repeats. */
export const RESPONSE_METADATA = 'openai';
/** The model of a response whose message names no agent. */
export const ANY_AGENT = 'hopline';

type Item = { id: string; type: string; status: string } & JsonObject;

export type ResponseEvent = { type: string; sequence_number: number } & JsonObject;

type ResponseObject = {
  id: string;
  object: 'response';
  created_at: number;
  status: 'queued' | 'in_progress' | 'completed' | 'failed' | 'cancelled';
  background: boolean;
  error: { code: string; message: string } | null;
  incomplete_details: null;
  instructions: null;
  max_output_tokens: null;
  metadata: JsonObject;
  model: string;
  output: Item[];
  parallel_tool_calls: true;
  previous_response_id: string | null;
  temperature: null;
  text: { format: { type: 'text' } };
  tool_choice: 'auto';
  tools: never[];
  top_p: null;
  truncation: 'disabled';
  usage: ResponseUsage | null;
};

/** A message or a reasoning that is still written. */
type OpenText = { item: Item; index: number; text: string };

/**
 * Encodes one turn of a task as a response. It must read the task from its first event, so that items and sequence numbers depend only on
 * the log, and every replica gives an event the same number, however often a client resumes. Turns before that of the response get no
 * numbers.
 */
export class ResponseEncoder {
  readonly #ref: ResponseRef;
  readonly #passesGaps: boolean;
  readonly #fold = new ViewFold();
  readonly #output: Item[] = [];
  readonly #texts = new Map<string, OpenText>();
  /** Output index of the open item of each call. */
  readonly #calls = new Map<string, number>();
  readonly #ids = new Set<string>();
  #events: ResponseEvent[] = [];
  #sequence = 0;
  #status: ResponseObject['status'] = 'queued';
  #error: ResponseObject['error'] = null;
  #state: TaskState = 'TASK_STATE_SUBMITTED';
  #request: Metadata = {};
  #hasBegun = false;
  #hasEnded = false;

  /**
   * `passesGaps`: the response is made from the task after the gap. Without it, missing events end the stream, because they had numbers.
   */
  constructor(ref: ResponseRef, { passesGaps = false } = {}) {
    this.#ref = ref;
    this.#passesGaps = passesGaps;
  }

  /** The first event of the turn has been read. */
  get begun(): boolean {
    return this.#hasBegun;
  }

  /** The turn has ended, or events of it have expired. No event follows. */
  get ended(): boolean {
    return this.#hasEnded;
  }

  add(item: ViewItem): ResponseEvent[] {
    if ('event' in item && 'task' in item.event) this.#request = item.event.task.history?.[0]?.metadata ?? this.#request;
    for (const change of this.#fold.add(item)) if (!this.#hasEnded) this.#add(change);
    const events = this.#events;
    this.#events = [];
    return events;
  }

  /** The response so far. */
  response(): ResponseObject {
    const { taskId, turn } = this.#ref;
    const { agent } = this.#request;
    const { background, metadata, previous_response_id: previous } = requestOf(this.#request);
    return {
      ...{ id: responseIdOf(this.#ref), object: 'response', created_at: createdAtOf(taskId), status: this.#status },
      background: background === true,
      ...{ error: this.#error, incomplete_details: null, instructions: null, max_output_tokens: null },
      metadata: { ...(turn === 1 && (metadata as JsonObject)), state: stateWord(this.#state) },
      model: typeof agent === 'string' ? agent : ANY_AGENT,
      output: this.#output.map(shownItem),
      parallel_tool_calls: true,
      previous_response_id: turn > 1 ? responseIdOf({ taskId, turn: turn - 1 }) : typeof previous === 'string' ? previous : null,
      ...{ temperature: null, text: { format: { type: 'text' } }, tool_choice: 'auto', tools: [], top_p: null },
      ...{ truncation: 'disabled', usage: this.#status === 'queued' ? null : responseUsageOf(this.#fold.view.usage) },
    };
  }

  #add(change: ViewChange): void {
    if (change.kind === 'gap' && !this.#passesGaps) {
      this.#hasEnded = true;
      const message = 'events of this response have expired; retrieve it without stream';
      this.#event('error', { code: 'events_expired', message, param: null });
      return;
    }
    const begins = (change.kind === 'task' && this.#ref.turn === 1) || (change.kind === 'turn' && change.turn === this.#ref.turn);
    if (begins) this.#begin();
    if (this.#hasBegun) this.#encode(change);
  }

  #begin(): void {
    this.#hasBegun = true;
    this.#status = 'in_progress';
    this.#event('response.created', { response: this.response() });
    this.#event('response.in_progress', { response: this.response() });
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
        this.#endText(change.text.id, 'completed');
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
        for (const [index, part] of change.file.parts.entries()) this.#image(change.file, part, index);
        break;
      case 'question':
        if (change.question.text === '') break;
        this.#delta({ id: 'question', channel: 'answer', agent: undefined, callId: undefined }, change.question.text);
        this.#endText('question', 'completed');
        break;
      case 'state':
        this.#end(change.state, change.reason);
        break;
      case 'task':
      case 'turn':
      case 'progress':
      case 'usage':
      case 'gap':
        break;
      default:
        change satisfies never;
    }
  }

  #delta(label: TextLabel, delta: string): void {
    const open = this.#texts.get(label.id) ?? this.#open(label);
    open.text += delta;
    if (open.item.type === 'message') this.#textDelta(open, delta);
    else {
      const place = { item_id: open.item.id, output_index: open.index };
      this.#event('response.reasoning_summary_text.delta', { ...place, summary_index: 0, delta });
    }
  }

  /** Written without `#event`, because most events are such deltas, and copying members would cost more than everything else. */
  #textDelta({ item, index }: OpenText, delta: string): void {
    this.#events.push({
      type: 'response.output_text.delta',
      sequence_number: this.#sequence,
      item_id: item.id,
      output_index: index,
      content_index: 0,
      delta,
      logprobs: [],
    });
    this.#sequence += 1;
  }

  #open({ id: textId, channel }: TextLabel): OpenText {
    const isPlan = channel === 'plan';
    const id = this.#newId(isPlan ? 'rs' : 'msg', textId);
    const item: Item = isPlan
      ? { id, type: 'reasoning', status: 'in_progress', summary: [] }
      : { id, type: 'message', status: 'in_progress', role: 'assistant', content: [] };
    const open = { item, index: this.#addItem(item), text: '' };
    this.#texts.set(textId, open);
    const place = { item_id: id, output_index: open.index };
    if (isPlan) this.#event('response.reasoning_summary_part.added', { ...place, summary_index: 0, part: summary('') });
    else this.#event('response.content_part.added', { ...place, content_index: 0, part: outputText('') });
    return open;
  }

  /** Text that was streamed cannot be changed. Its item stays, empty and incomplete, and the text of the new attempt is an item of its own. */
  #restart(label: TextLabel, whole: string): void {
    const wasOpen = this.#texts.has(label.id);
    if (wasOpen) this.#endText(label.id, 'incomplete');
    else this.#void(label.id);
    if (whole === '') return;
    this.#delta(label, whole);
    // A text that had ended does not end again.
    if (!wasOpen) this.#endText(label.id, 'completed');
  }

  /** Empties the newest item of a text that had ended. */
  #void(textId: string): void {
    const item = this.#output.findLast(({ id }) => id.replace(/^(?:msg|rs)_/, '').replace(/~\d+$/, '') === textId);
    if (item === undefined) return;
    item.status = 'incomplete';
    if (item.type === 'message') item.content = [];
    else item.summary = [];
  }

  #endText(textId: string, status: 'completed' | 'incomplete'): void {
    const open = this.#texts.get(textId);
    if (open === undefined) return;
    this.#texts.delete(textId);
    const { item, index, text } = open;
    const place = { item_id: item.id, output_index: index };
    item.status = status;
    if (item.type === 'message') {
      if (status === 'completed') item.content = [outputText(text)];
      this.#event('response.output_text.done', { ...place, content_index: 0, text, logprobs: [] });
      this.#event('response.content_part.done', { ...place, content_index: 0, part: outputText(text) });
    } else {
      if (status === 'completed') item.summary = [summary(text)];
      this.#event('response.reasoning_summary_text.done', { ...place, summary_index: 0, text });
      this.#event('response.reasoning_summary_part.done', { ...place, summary_index: 0, part: summary(text) });
    }
    this.#event('response.output_item.done', { output_index: index, item: shownItem(item) });
  }

  /** A call of the server, which clients must not run: in OpenAI's API that is a call of a remote MCP server. */
  #startCall({ id: callId, tool, agent = 'hopline' }: ViewTool): void {
    if (this.#calls.has(callId)) return;
    const call = { arguments: '', name: tool, server_label: agent, approval_request_id: null, output: null, error: null };
    const item: Item = { id: this.#newId('mcp', callId), type: 'mcp_call', status: 'in_progress', ...call };
    const index = this.#addItem(item);
    this.#calls.set(callId, index);
    this.#event('response.mcp_call.in_progress', { item_id: item.id, output_index: index });
  }

  #callArguments({ id, arguments: value }: ViewTool): void {
    const index = this.#calls.get(id);
    if (index === undefined) return;
    const item = this.#output[index]!;
    const text = JSON.stringify(value);
    item.arguments = text;
    const place = { item_id: item.id, output_index: index };
    this.#event('response.mcp_call_arguments.delta', { ...place, delta: text });
    this.#event('response.mcp_call_arguments.done', { ...place, arguments: text });
  }

  #endCall({ id, outcome, result, notice }: ViewTool): void {
    const index = this.#calls.get(id);
    // A call that waits for the user ends in a later turn.
    if (index === undefined || outcome === 'waiting') return;
    this.#calls.delete(id);
    const item = this.#output[index]!;
    const text = typeof result === 'string' ? result : result === undefined ? notice.trim() : JSON.stringify(result);
    const hasFailed = outcome === 'failed';
    item.status = hasFailed ? 'failed' : outcome === 'completed' ? 'completed' : 'incomplete';
    if (hasFailed) item.error = { type: 'mcp_tool_execution_error', content: [{ type: 'text', text }] };
    else if (outcome === 'completed') item.output = text;
    if (outcome !== 'unknown')
      this.#event(`response.mcp_call.${hasFailed ? 'failed' : 'completed'}`, { item_id: item.id, output_index: index });
    this.#event('response.output_item.done', { output_index: index, item: shownItem(item) });
  }

  /** Output items have no other files. */
  #image({ id: fileId }: ViewFile, { raw, mediaType = '' }: Part, partIndex: number): void {
    if (raw === undefined || !mediaType.startsWith('image/')) return;
    const id = this.#newId('ig', `${fileId}.${partIndex}`);
    const item: Item = { id, type: 'image_generation_call', status: 'completed', result: raw };
    const index = this.#addItem(item);
    this.#event('response.output_item.done', { output_index: index, item: shownItem(item) });
  }

  #end(state: TaskState, reason: string | undefined): void {
    this.#state = state;
    if (isInProgress(state)) return;
    for (const id of [...this.#texts.keys()]) this.#endText(id, 'completed');
    for (const index of this.#calls.values()) {
      const item = this.#output[index]!;
      item.status = 'incomplete';
      this.#event('response.output_item.done', { output_index: index, item: shownItem(item) });
    }
    this.#calls.clear();
    this.#hasEnded = true;
    if (state === 'TASK_STATE_COMPLETED' || isInterrupted(state)) {
      this.#status = 'completed';
      this.#event('response.completed', { response: this.response() });
    } else if (state === 'TASK_STATE_CANCELED') {
      this.#status = 'cancelled';
      this.#event('response.incomplete', { response: this.response() });
    } else {
      this.#status = 'failed';
      this.#error = { code: 'server_error', message: reason ?? `the task is ${stateWord(state)}` };
      this.#event('response.failed', { response: this.response() });
    }
  }

  #addItem(item: Item): number {
    const index = this.#output.push(item) - 1;
    this.#event('response.output_item.added', { output_index: index, item: shownItem(item) });
    return index;
  }

  /** Items of one text or call have numbers, because a new attempt makes a new item. */
  #newId(prefix: string, key: string): string {
    const first = `${prefix}_${key}`;
    let id = first;
    for (let n = 2; this.#ids.has(id); n++) id = `${first}~${n}`;
    this.#ids.add(id);
    return id;
  }

  #event(type: string, members: JsonObject): void {
    this.#events.push({ type, sequence_number: this.#sequence, ...members });
    this.#sequence += 1;
  }
}

function requestOf({ [RESPONSE_METADATA]: request }: Metadata): JsonObject {
  return typeof request === 'object' && request !== null ? (request as JsonObject) : {};
}

function outputText(text: string): JsonObject {
  return { type: 'output_text', text, annotations: [], logprobs: [] };
}

function summary(text: string): JsonObject {
  return { type: 'summary_text', text };
}

/** Events must not change when the item changes later. */
function shownItem(item: Item): Item {
  return { ...item };
}
