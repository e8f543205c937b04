import { randomUUID } from 'node:crypto';
import { isInterrupted, isObject, isTerminal, type Message, type StreamResponse, textOf } from '@hopline/a2a';
import type { AgentEvent } from '@hopline/agent';
import { own, readEvent } from './a2a-payload.ts';
import { type GraphEvent, GraphFault, type Interrupt } from './graph.ts';
import { type GraphMessage, readMessage, readMessages } from './graph-message.ts';
import { Invocations } from './invocations.ts';
import { listOf, stringOf } from './json.ts';
import { messageEnding, readOutbox, taskEnding } from './outbox.ts';
import { askedOf } from './turn-start.ts';

export type GraphReaderOptions = {
  /** The state before the run: what it holds is of earlier turns. */
  before: Readonly<Record<string, unknown>>;
  /** The run goes on from where an earlier attempt of this turn was cut: what the state holds after this message is of this turn, too. */
  again?: { messageId: string };
  /** Told of every custom payload that is no A2A event. */
  onSkipped?: (what: 'custom payload') => void;
};

const INTERRUPT = '__interrupt__';

/** Turns what a graph streams in one turn into agent events. Knows the modes' meaning (S1-21 to S1-31), not where the graph runs. */
export class GraphReader {
  readonly #options: GraphReaderOptions;
  readonly #invocations = new Invocations();
  readonly #toolsBegun = new Set<string>();
  readonly #toolsEnded = new Map<string, string>();
  readonly #earlier: EarlierMessages;
  #values: Readonly<Record<string, unknown>> | undefined;
  #interrupts: readonly Interrupt[] = [];
  #node: string | undefined;
  #outboxIsNew: boolean;
  /** The end the graph itself has said in `custom`: it stands, and nothing is inferred (S1-29, S1-23). */
  #said: AgentEvent | undefined;

  constructor(options: GraphReaderOptions) {
    this.#options = options;
    this.#outboxIsNew = options.again !== undefined;
    this.#earlier = new EarlierMessages(options.before.messages, options.again?.messageId);
  }

  /** What an earlier attempt had its models say and the checkpoint has kept: the new attempt says it again, for it replaces that one. */
  *begin(): Generator<AgentEvent> {
    if (this.#options.again === undefined) return;
    for (const message of this.#earlier.newIn(this.#options.before.messages))
      if (message.type === 'ai') yield* this.#invocations.say({ ...message, isChunk: false }, { node: undefined, namespace: '' });
  }

  *read({ mode, path, chunk }: GraphEvent): Generator<AgentEvent> {
    if (this.#said !== undefined && mode !== 'updates') return;
    if (mode === 'messages') yield* this.#message(chunk);
    else if (mode === 'updates') yield* this.#updates(chunk, path);
    else if (mode === 'custom') yield* this.#custom(chunk);
    else if (path.length === 0) this.values(chunk);
  }

  /** The state as it is now; the last one is the state at the end (S1-23). */
  values(chunk: unknown): void {
    if (!isObject(chunk)) return;
    this.#interrupts = readInterrupts(chunk[INTERRUPT]);
    // JavaScript sends the interrupts alone, Python with the state.
    if (Object.keys(chunk).some(key => key !== INTERRUPT)) this.#values = chunk;
  }

  /** How the turn ends (S1-12, S1-19, S1-23, S1-24). Throws GraphFault. */
  *end(): Generator<AgentEvent> {
    if (this.#said !== undefined) yield this.#said;
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

  /** S2-2: what a model has streamed is not said again by the message that ends the turn. */
  #standing(end: Extract<AgentEvent, { type: 'done' }>, otherwise?: 'replaces'): AgentEvent {
    const text = textOf(end.message?.parts ?? []);
    if (text === '') return end;
    const standing = this.#invocations.has(text) ? 'repeats' : otherwise;
    return standing === undefined ? end : { ...end, standing };
  }

  *#message(chunk: unknown): Generator<AgentEvent> {
    const [said, metadata] = listOf(chunk);
    const message = readMessage(said);
    if (message?.type !== 'ai') return;
    const { langgraph_node: node, langgraph_checkpoint_ns: namespace } = isObject(metadata) ? metadata : {};
    const origin = { node: stringOf(node), namespace: stringOf(namespace) ?? '' };
    yield* this.#step(origin.node);
    yield* this.#invocations.say(message, origin);
  }

  /** No frame for a client (S1-31): the node, its tool calls, and that its models are done. */
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
        for (const message of readMessages(write.messages)) yield* this.#tools(message);
      }
    }
  }

  /** The state of a sub-graph comes again as the update of the node that holds it: a call begins and ends once. */
  *#tools({ toolCalls, toolCallId, toolFailed }: GraphMessage): Generator<AgentEvent> {
    for (const { id, name } of toolCalls) {
      if (this.#toolsBegun.has(id)) continue;
      this.#toolsBegun.add(id);
      this.#toolsEnded.set(id, name);
      yield { type: 'tool', phase: 'start', callId: id, tool: name };
    }
    const tool = toolCallId === undefined ? undefined : this.#toolsEnded.get(toolCallId);
    if (toolCallId === undefined || tool === undefined) return;
    this.#toolsEnded.delete(toolCallId);
    yield { type: 'tool', phase: 'end', callId: toolCallId, tool, ...(toolFailed && { failed: true }) };
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

  /** S1-29, S1-30: what the graph says as A2A is taken as it is, with our ids. */
  *#explicit(event: StreamResponse): Generator<AgentEvent> {
    const source = { mode: 'custom', ...(this.#node !== undefined && { node: this.#node }) };
    if ('artifactUpdate' in event) {
      const { artifact, append = false, lastChunk = false } = event.artifactUpdate;
      yield { type: 'artifact', artifact, append, lastChunk, apart: true, source };
    } else if ('message' in event) this.#said = this.#standing(messageEnding(event.message), 'replaces');
    else if ('task' in event) {
      const { events, end } = taskEnding(event.task);
      yield* events;
      if (isTerminal(event.task.status.state) || isInterrupted(event.task.status.state)) this.#said = end;
    } else {
      const { status } = event.statusUpdate;
      if (isTerminal(status.state) || isInterrupted(status.state)) this.#said = taskEnding({ id: '', contextId: '', status }).end;
      else if (status.message !== undefined) yield { type: 'progress', message: own(status.message), source };
    }
  }
}

/** Tells the messages of a run from those the thread had before. */
class EarlierMessages {
  readonly #ids = new Set<string>();
  readonly #count: number;

  /** `from`: the messages after the one of this id are of this turn. */
  constructor(messages: unknown, from: string | undefined) {
    const all = readMessages(messages);
    const index = from === undefined ? -1 : all.findLastIndex(({ id }) => id === from);
    const earlier = index < 0 ? all : all.slice(0, index + 1);
    for (const { id } of earlier) if (id !== undefined) this.#ids.add(id);
    this.#count = earlier.length;
  }

  newIn(messages: unknown): GraphMessage[] {
    return readMessages(messages).filter(({ id }, index) => (id === undefined ? index >= this.#count : !this.#ids.has(id)));
  }
}

export function readInterrupts(value: unknown): Interrupt[] {
  return listOf(value).flatMap(entry => (isObject(entry) ? [{ id: stringOf(entry.id) ?? '', value: entry.value }] : []));
}

/** The question: a text as it is; anything else as data, with its `question` or `message` as text where it has one. */
export function interruptedBy(interrupts: readonly Interrupt[]): AgentEvent {
  const [first] = interrupts;
  const { value } = first ?? { value: undefined };
  const said =
    typeof value === 'string' ? value : isObject(value) ? (stringOf(value.question) ?? stringOf(value.message)) : undefined;
  const parts = [
    ...(said === undefined ? [] : [{ text: said }]),
    ...(typeof value === 'string' ? [] : [{ data: value ?? null }]),
  ];
  const message: Message = { messageId: randomUUID(), role: 'ROLE_AGENT', parts };
  return { type: 'interrupted', state: 'TASK_STATE_INPUT_REQUIRED', message, resume: askedOf(interrupts) };
}
