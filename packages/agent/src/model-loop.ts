import { randomUUID } from 'node:crypto';
import { type ApprovalRequest, cutIndex } from '@hopline/a2a';
import type { ChatMessage, ChatModel, ChatTool, ModelRequest, Step, ToolCall } from '@hopline/chat-model';
import { ModelError } from '@hopline/chat-model/model-error';
import { addTokens, type TokenUsage } from '@hopline/events';
import type { AgentEvent, Approval, TurnSteps } from './agent.ts';
import { refusalText } from './approval.ts';
import { MODEL_STEPS_DEFAULT } from './limits.ts';
import { merged } from './merged.ts';
import type { PausedLoop } from './paused-model.ts';
import { stepIn } from './step.ts';

/** The tools that a model may call. */
export type ModelTools = {
  /** The tools that the model is offered in its next step. */
  offered(): readonly ChatTool[];
  /**
   * Runs a call: yields its events, and returns the text that the model reads, which may report a fault of the tool. `callId`: the id under
   * which clients already know the call, if it has waited for an approval.
   */
  call(call: ToolCall, callId?: string): AsyncGenerator<AgentEvent, string, unknown>;
  /** The name of the tool as clients see it if a person must approve the call; undefined if it may run. Absent: every call may run. */
  toApprove?(call: ToolCall): Promise<string | undefined>;
};

/** How `runModel` runs: the model, its conversation and its tools. */
export type ModelLoopOptions = {
  model: ChatModel;
  messages: readonly ChatMessage[];
  tools: ModelTools;
  request: Pick<ModelRequest, 'signal' | 'trace' | 'onEnded'>;
  stepsMax?: number | undefined;
  /** Emits the reasoning as an artifact. Default false. */
  reasoning?: boolean | undefined;
  /** Whether the text of the model is text of the agent. Default true. */
  shown?: boolean | undefined;
  /** The agent's text that precedes the model's. */
  textBefore?: string | undefined;
  /** Number of the model's first step in the turn. The reasoning of each step is an artifact with the step's number. */
  firstStep?: number | undefined;
  /** Called when the model reaches a step, with its text of the earlier steps. */
  onStep?: ((before: string) => void) | undefined;
  /** Stores the answers of the model. Its calls then run one after another, because steps must not overlap. */
  storeIn?: TurnSteps | undefined;
  /** The event that ends the turn with the question for a call. Required with `tools.toApprove`. */
  pause?: ((request: ApprovalRequest, paused: PausedLoop) => AgentEvent) | undefined;
  /** The conversation that this run continues, and the decision about the call it waited for. */
  paused?: { paused: PausedLoop; approval: Approval } | undefined;
};

/** The answer of a model, with all its steps. */
export type ModelAnswer = {
  /** The text of all steps, without separators, including those before an approval. */
  text: string;
  /** The conversation: the messages that the model received, its calls with their results, and its answer. */
  messages: ChatMessage[];
  /** Tokens of all steps of the turn, as far as the provider reports them. */
  usage: TokenUsage;
};

/** Name of the steps that store the model's answers. */
const STORED_STEP = 'model';

/**
 * Lets the model answer and runs its tools, until it calls no more tools. Yields arrays of events that arrived together. Throws ModelError.
 * Returns undefined after the event that ends the turn with a question.
 *
 * A call that needs an approval ends the turn with a question, after the other calls of its step have run. If several calls need an
 * approval, the user is asked about one after another, each in a turn of its own. An approved call runs in the turn of the answer.
 */
export async function* runModel(
  options: ModelLoopOptions,
): AsyncGenerator<readonly AgentEvent[], ModelAnswer | undefined, unknown> {
  const { stepsMax = MODEL_STEPS_DEFAULT, firstStep = 1, onStep, paused } = options;
  const earlier = (paused?.paused.messages ?? []).filter(({ role }) => role === 'assistant');
  const earlierText = earlier.map(message => message.text).join('');
  const messages = [...options.messages, ...(paused?.paused.messages ?? [])];
  if (paused !== undefined && !(yield* runCalls(options, messages, paused))) return undefined;
  let text = '';
  let usage: TokenUsage = {};
  for (let number = earlier.length; number < stepsMax; number += 1) {
    onStep?.(text);
    const step = yield* runStep(options, messages, { before: text, number: firstStep + number - earlier.length });
    text += step.text;
    if (step.usage !== undefined) usage = addTokens(usage, step.usage);
    messages.push({ role: 'assistant', text: step.text, calls: step.calls });
    if (step.calls.length === 0) return { text: earlierText + text, messages, usage };
    // After the last step the model would not read the results.
    if (number === stepsMax - 1) break;
    if (!(yield* runCalls(options, messages))) return undefined;
  }
  throw new ModelError('too_many_steps', { steps: stepsMax });
}

/**
 * Runs the calls of the last message, and adds their results to the messages. `decided`: the decision about the first of them that was
 * waiting. Returns false if the turn has ended with a question.
 */
async function* runCalls(
  { messages: prompt, tools, storeIn, pause }: ModelLoopOptions,
  messages: ChatMessage[],
  decided?: ModelLoopOptions['paused'],
): AsyncGenerator<readonly AgentEvent[], boolean, unknown> {
  const last = messages.at(-1);
  const calls = last?.role === 'assistant' ? last.calls : [];
  const results = decided === undefined ? calls.map(() => null as string | null) : [...decided.paused.results];
  const names = await Promise.all(calls.map((call, index) => (results[index] === null ? tools.toApprove?.(call) : undefined)));
  const running = new Map<number, AsyncGenerator<AgentEvent, string, unknown>>();
  if (decided !== undefined)
    running.set(results.indexOf(null), decidedCall(tools, calls[results.indexOf(null)]!, decided.approval));
  else for (const [index, call] of calls.entries()) if (names[index] === undefined) running.set(index, tools.call(call));
  const generators = [...running.values()];
  const ended = yield* batched(storeIn === undefined ? merged(generators) : inOrder(generators));
  for (const [order, index] of [...running.keys()].entries()) results[index] = ended[order]!;
  const waiting = results.indexOf(null);
  if (waiting >= 0) {
    const { name, args } = calls[waiting]!;
    const request = { callId: randomUUID(), tool: names[waiting] ?? name, arguments: args };
    yield [pause!(request, { messages: messages.slice(prompt.length), results })];
    return false;
  }
  for (const [index, call] of calls.entries()) messages.push({ role: 'tool', call, text: results[index]! });
  return true;
}

/** An approved call runs with the arguments that were shown. For a refused call, the model reads the refusal as its result. */
async function* decidedCall(tools: ModelTools, call: ToolCall, approval: Approval): AsyncGenerator<AgentEvent, string, unknown> {
  const { callId, tool, arguments: args, approved } = approval;
  if (approved) return yield* tools.call({ ...call, args }, callId);
  const text = refusalText(approval);
  yield { type: 'tool', phase: 'start', callId, tool, arguments: args };
  yield { type: 'tool', phase: 'end', callId, tool, failed: true, result: text };
  return text;
}

type StepBeginning = { before: string; number: number };

async function* runStep(
  options: ModelLoopOptions,
  messages: readonly ChatMessage[],
  beginning: StepBeginning,
): AsyncGenerator<readonly AgentEvent[], Step, unknown> {
  const { storeIn: steps, request, shown = true } = options;
  if (steps === undefined) return yield* streamStep(options, messages, beginning);
  let isStored = true;
  const turn = { steps, signal: request.signal };
  const step = yield* stepIn<readonly AgentEvent[], Step>(turn, STORED_STEP, async function* () {
    isStored = false;
    return yield* streamStep(options, messages, beginning);
  });
  if (isStored) {
    const text: AgentEvent[] = shown && step.text !== '' ? [{ type: 'text', text: step.text }] : [];
    yield [...text, ...usageOf(step)];
  }
  return step;
}

async function* streamStep(
  { model, tools, request, reasoning = false, shown = true, textBefore = '' }: ModelLoopOptions,
  messages: readonly ChatMessage[],
  { before, number }: StepBeginning,
): AsyncGenerator<readonly AgentEvent[], Step, unknown> {
  const thoughts = new Thoughts(`reasoning-${number}`);
  const step = model.step({ messages, tools: tools.offered(), ...request });
  try {
    for (;;) {
      const { done, value } = await step.next();
      if (done) {
        const last = [...(thoughts.open ? [thoughts.end()] : []), ...usageOf(value)];
        if (last.length > 0) yield last;
        return value;
      }
      const events: AgentEvent[] = [];
      for (const event of value) {
        if (shown && event.type === 'text') events.push(event);
        else if (shown && event.type === 'restart') events.push({ type: 'snapshot', text: textBefore + before });
        if (reasoning && event.type === 'reasoning') events.push(thoughts.more(event.text));
        if (reasoning && event.type === 'restart') thoughts.restart();
      }
      if (events.length > 0) yield events;
    }
  } finally {
    await step.return(undefined as never);
  }
}

const usageOf = ({ usage }: Step): AgentEvent[] => (usage === undefined ? [] : [{ type: 'usage', usage }]);

async function* inOrder(calls: readonly AsyncGenerator<AgentEvent, string, unknown>[]): AsyncGenerator<AgentEvent, string[]> {
  const results: string[] = [];
  for (const call of calls) results.push(yield* call);
  return results;
}

async function* batched<T>(events: AsyncGenerator<AgentEvent, T, unknown>): AsyncGenerator<readonly AgentEvent[], T, unknown> {
  try {
    for (;;) {
      const { done, value } = await events.next();
      if (done) return value;
      yield [value];
    }
  } finally {
    await events.return(undefined as never);
  }
}

/** The result of a tool as the model reads it. */
export function cutResult(text: string, unitsMax: number): string {
  if (text.length <= unitsMax) return text;
  const kept = text.slice(0, cutIndex(text, unitsMax));
  return `${kept}\n[cut: ${text.length - kept.length} more characters]`;
}

/** The reasoning of one step, as one artifact. */
class Thoughts {
  readonly #artifactId: string;
  #begun = false;
  open = false;

  constructor(artifactId: string) {
    this.#artifactId = artifactId;
  }

  more(text: string): AgentEvent {
    const append = this.#begun;
    this.#begun = true;
    this.open = true;
    return { type: 'artifact', artifact: this.#artifact(text), append, lastChunk: false, apart: true };
  }

  /** Makes the next text replace the artifact. */
  restart(): void {
    this.#begun = false;
  }

  end(): AgentEvent {
    this.open = false;
    return { type: 'artifact', artifact: this.#artifact(''), append: true, lastChunk: true, apart: true };
  }

  #artifact(text: string) {
    return { artifactId: this.#artifactId, name: 'reasoning', parts: [{ text }] };
  }
}
