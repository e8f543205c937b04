import { randomUUID } from 'node:crypto';
import { isInProgress, isObject, type Message, type StreamResponse, textOf } from '@hopline/a2a';
import type { AgentEvent } from '@hopline/agent';
import { agentMessage, readEvent } from './a2a-payload.ts';
import { type GraphEvent, GraphFault, type Interrupt } from './graph.ts';
import { type GraphMessage, readMessage, readMessages } from './graph-message.ts';
import { Invocations } from './invocations.ts';
import { listOf, stringOf } from './json.ts';
import { messageEnding, readOutbox, taskEnding } from './outbox.ts';
import { toResume } from './turn-start.ts';

type GraphReaderOptions = {
  /** The state before the run: its messages belong to earlier turns. */
  stateBefore: Readonly<Record<string, unknown>>;
  /** Present if the run continues an earlier attempt of this turn. Messages after this one belong to this turn. */
  continuedFrom?: { messageId: string };
  /** Receives every custom payload that is not an A2A event. */
  onSkipped?: (what: 'custom payload') => void;
};

const INTERRUPT = '__interrupt__';

/** Converts the stream of a graph in one turn to agent events. It is independent of where the graph runs. */
export class GraphReader {
  readonly #options: GraphReaderOptions;
  readonly #invocations = new Invocations();
  /** Ids of the messages whose tokens have been reported. */
  readonly #counted = new Set<string>();
  readonly #toolsBegun = new Set<string>();
  readonly #toolsEnded = new Map<string, string>();
  readonly #earlier: EarlierMessages;
  #values: Readonly<Record<string, unknown>> | undefined;
  #interrupts: readonly Interrupt[] = [];
  #node: string | undefined;
  #outboxIsNew: boolean;
  /** The end of the turn that the graph wrote as a `custom` event. It takes precedence over the state. */
  #explicitEnd: AgentEvent | undefined;

  constructor(options: GraphReaderOptions) {
    this.#options = options;
    this.#outboxIsNew = options.continuedFrom !== undefined;
    this.#earlier = new EarlierMessages(options.stateBefore.messages, options.continuedFrom?.messageId);
  }

  /** Emits the model texts of an earlier attempt that the checkpoint kept, because a new attempt replaces the text of the earlier one. */
  *begin(): Generator<AgentEvent> {
    if (this.#options.continuedFrom === undefined) return;
    for (const message of this.#earlier.newIn(this.#options.stateBefore.messages))
      if (message.type === 'ai') yield* this.#invocations.add({ ...message, isChunk: false }, { node: undefined, namespace: '' });
  }

  *read({ mode, path, chunk }: GraphEvent): Generator<AgentEvent> {
    if (this.#explicitEnd !== undefined && mode !== 'updates') return;
    if (mode === 'messages') yield* this.#message(chunk);
    else if (mode === 'updates') yield* this.#updates(chunk, path);
    else if (mode === 'custom') yield* this.#custom(chunk);
    else if (path.length === 0) this.values(chunk);
  }

  /** Takes the current state. The last one taken is the state at the end. */
  values(chunk: unknown): void {
    if (!isObject(chunk)) return;
    this.#interrupts = readInterrupts(chunk[INTERRUPT]);
    // LangGraph.js sends the interrupts by themselves; LangGraph for Python sends them with the state.
    if (Object.keys(chunk).some(key => key !== INTERRUPT)) this.#values = chunk;
  }

  /** Emits the end of the turn. Throws GraphFault. */
  *end(): Generator<AgentEvent> {
    if (this.#explicitEnd !== undefined) yield this.#explicitEnd;
    else if (this.#interrupts.length > 0) yield interruptedBy(this.#interrupts);
    else if (this.#values === undefined) throw new GraphFault('the graph ended without a state', true);
    else yield* this.#answer(this.#values);
  }

  *#answer(values: Readonly<Record<string, unknown>>): Generator<AgentEvent> {
    const { a2a_outbox: outbox, messages } = values;
    if (this.#outboxIsNew && outbox !== undefined && outbox !== null) {
      const { events, end } = readOutbox(outbox);
      yield* events;
      yield end.type === 'done' ? this.#standing(end, 'replaces') : end;
      return;
    }
    const last = this.#earlier.newIn(messages).findLast(({ type }) => type === 'ai');
    if (last === undefined || last.text === '') {
      yield { type: 'done' };
      return;
    }
    const message: Message = { messageId: last.id ?? randomUUID(), role: 'ROLE_AGENT', parts: [{ text: last.text }] };
    yield this.#standing({ type: 'done', message });
  }

  /** Removes a text that a model has already streamed from the message that ends the turn (S2-2). */
  #standing(end: Extract<AgentEvent, { type: 'done' }>, otherwise?: 'replaces'): AgentEvent {
    const text = textOf(end.message?.parts ?? []);
    if (text === '') return end;
    const standing = this.#invocations.has(text) ? 'repeats' : otherwise;
    return standing === undefined ? end : { ...end, standing };
  }

  *#message(chunk: unknown): Generator<AgentEvent> {
    const [value, metadata] = listOf(chunk);
    const message = readMessage(value);
    if (message?.type !== 'ai') return;
    const { langgraph_node: node, langgraph_checkpoint_ns: namespace } = isObject(metadata) ? metadata : {};
    const origin = { node: stringOf(node), namespace: stringOf(namespace) ?? '' };
    yield* this.#step(origin.node);
    yield* this.#invocations.add(message, origin);
  }

  /** Reads the node, its tool calls and the end of its models from an update. Clients do not see the update itself. */
  *#updates(chunk: unknown, path: readonly string[]): Generator<AgentEvent> {
    if (!isObject(chunk)) return;
    for (const [node, written] of Object.entries(chunk)) {
      if (node === INTERRUPT) {
        if (path.length === 0) this.#interrupts = readInterrupts(written);
        continue;
      }
      yield* this.#step(node);
      yield* this.#invocations.endOf(node, path);
      for (const write of listOf(written)) {
        if (!isObject(write)) continue;
        if (path.length === 0 && 'a2a_outbox' in write) this.#outboxIsNew = true;
        for (const message of readMessages(write.messages)) {
          yield* this.#tools(message);
          yield* this.#usage(message);
        }
      }
    }
  }

  /** The update of a sub-graph is repeated as the update of its node, so calls are deduplicated by id. */
  *#tools({ toolCalls, toolCallId, toolFailed, text }: GraphMessage): Generator<AgentEvent> {
    for (const { id, name, args } of toolCalls) {
      if (this.#toolsBegun.has(id)) continue;
      this.#toolsBegun.add(id);
      this.#toolsEnded.set(id, name);
      yield { type: 'tool', phase: 'start', callId: id, tool: name, ...(args !== undefined && { arguments: args }) };
    }
    const tool = toolCallId === undefined ? undefined : this.#toolsEnded.get(toolCallId);
    if (toolCallId === undefined || tool === undefined) return;
    this.#toolsEnded.delete(toolCallId);
    yield { type: 'tool', phase: 'end', callId: toolCallId, tool, ...(toolFailed && { failed: true }), result: text };
  }

  /** A message counts once, by its id, because sub-graphs repeat updates and some nodes write the whole conversation. */
  *#usage({ id, usage }: GraphMessage): Generator<AgentEvent> {
    if (id === undefined || usage === undefined || this.#counted.has(id) || this.#earlier.has(id)) return;
    this.#counted.add(id);
    yield { type: 'usage', usage };
  }

  *#step(node: string | undefined): Generator<AgentEvent> {
    if (node === undefined || node === this.#node) return;
    this.#node = node;
    yield { type: 'step', step: node };
  }

  *#custom(payload: unknown): Generator<AgentEvent> {
    const event = readEvent(payload);
    if (event === undefined) this.#options.onSkipped?.('custom payload');
    else yield* this.#explicit(event);
  }

  /** An A2A event from the graph is used as it is, with our ids (S1-29, S1-30). */
  *#explicit(event: StreamResponse): Generator<AgentEvent> {
    const source = { mode: 'custom', ...(this.#node !== undefined && { node: this.#node }) };
    if ('artifactUpdate' in event) {
      const { artifact, append = false, lastChunk = false } = event.artifactUpdate;
      yield { type: 'artifact', artifact, append, lastChunk, apart: true, source };
    } else if ('message' in event) this.#explicitEnd = this.#standing(messageEnding(event.message), 'replaces');
    else if ('task' in event) {
      const { events, end } = taskEnding(event.task);
      yield* events;
      if (!isInProgress(event.task.status.state)) this.#explicitEnd = end;
    } else {
      const { status } = event.statusUpdate;
      if (!isInProgress(status.state)) this.#explicitEnd = taskEnding({ id: '', contextId: '', status }).end;
      else if (status.message !== undefined) yield { type: 'progress', message: agentMessage(status.message), source };
    }
  }
}

/** Separates the messages of a run from earlier messages of the thread. */
class EarlierMessages {
  readonly #ids = new Set<string>();
  readonly #count: number;

  /** `from`: id of the message after which the messages of this turn begin. */
  constructor(messages: unknown, from: string | undefined) {
    const all = readMessages(messages);
    const index = from === undefined ? -1 : all.findLastIndex(({ id }) => id === from);
    const earlier = index < 0 ? all : all.slice(0, index + 1);
    for (const { id } of earlier) if (id !== undefined) this.#ids.add(id);
    this.#count = earlier.length;
  }

  has(id: string): boolean {
    return this.#ids.has(id);
  }

  newIn(messages: unknown): GraphMessage[] {
    return readMessages(messages).filter(({ id }, index) => (id === undefined ? index >= this.#count : !this.#ids.has(id)));
  }
}

export function readInterrupts(value: unknown): Interrupt[] {
  return listOf(value).flatMap(entry => (isObject(entry) ? [{ id: stringOf(entry.id) ?? '', value: entry.value }] : []));
}

/** The value of an interrupt as a message: text unchanged; other values as data, with their `question` or `message` as text. */
export function interruptedBy(interrupts: readonly Interrupt[]): AgentEvent {
  const [first] = interrupts;
  const { value } = first ?? { value: undefined };
  const text =
    typeof value === 'string' ? value : isObject(value) ? (stringOf(value.question) ?? stringOf(value.message)) : undefined;
  const parts = [...(text === undefined ? [] : [{ text }]), ...(typeof value === 'string' ? [] : [{ data: value ?? null }])];
  const message: Message = { messageId: randomUUID(), role: 'ROLE_AGENT', parts };
  return { type: 'interrupted', state: 'TASK_STATE_INPUT_REQUIRED', message, resume: toResume(interrupts) };
}
