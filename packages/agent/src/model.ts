import { isObject, type Message } from '@hopline/a2a';
import type { ChatMessage, ChatModelOptions, ChatTool, ModelLimits, ToolCall } from '@hopline/chat-model';
import { OPENAI_BASE_URL_DEFAULT } from '@hopline/chat-model/limits';
import { MODEL_MEDIA, promptMessage, promptMessages } from '@hopline/chat-model/prompt-messages';
import type { AgentEvent, Turn } from './agent.ts';
import { type Delegated, delegated } from './delegated.ts';
import { isJson, nonEmpty } from './event-constructors.ts';
import { MODEL_STEPS_MAX, MODEL_TOOL_RESULT_UNITS_MAX, MODEL_TOOLS_MAX } from './limits.ts';
import { AgentMisuse, kindOf } from './misuse.ts';
import { cutResult, type ModelAnswer, type ModelTools, runModel } from './model-loop.ts';
import { conversationOf, type PausedModel, pausedModelOf, pauseModel } from './paused-model.ts';
import type { RetryOptions } from './retried.ts';
import { type TurnRequest, thisTurn } from './this-turn.ts';
import { isToolError, type ToolContext, toolIn } from './tool.ts';

/**
 * A message of a conversation with a model. The answer of `model` also contains such messages, so that the next call can continue with
 * them.
 * @public
 */
export type ModelMessage = ChatMessage;

/**
 * A tool that a model may call, with the retries of `tool`.
 * @public
 */
export type ModelTool = RetryOptions & {
  /** When and how to call it, for the model. */
  description: string;
  /** JSON Schema of the arguments, which are an object. The model may violate it, so `run` must check its arguments. */
  parameters: Readonly<Record<string, unknown>>;
  /**
   * Returns what the model reads: a string unchanged, any other value as JSON. If it throws a ToolError, the model and clients read its
   * message; otherwise they read only that the call has failed.
   */
  run(args: Record<string, unknown>, context: ToolContext): unknown;
  /**
   * Whether a person must approve a call before it runs: a boolean, or a function, for which everything but false means yes. The turn ends
   * with the question, and the turn of the answer continues with the call or its refusal. Default false.
   */
  approve?: boolean | ((args: Record<string, unknown>) => boolean | Promise<boolean>) | undefined;
};

/**
 * The argument of `model`.
 * @public
 */
export type ModelOptions = {
  /** Name of the model at the address. */
  model: string;
  /** Address of an OpenAI-compatible server, without `/chat/completions`. Default: the address of OpenAI. */
  baseUrl?: string | undefined;
  /** Sent as a bearer token. */
  apiKey?: string | undefined;
  /** Further headers of the requests. */
  headers?: Readonly<Record<string, string>> | undefined;
  /** Sampling temperature. Default: the server's. */
  temperature?: number | undefined;
  /** Time limits and tries of one request. */
  limits?: Partial<ModelLimits> | undefined;
  /** System prompt, before the messages. */
  system?: string | undefined;
  /** The conversation: messages of a client, or for the model. Default: `turn.history`, as far as it fits, and `turn.message`. */
  messages?: readonly (Message | ModelMessage)[] | undefined;
  /** The tools by their names, each 1 to 64 of A-Z, a-z, 0-9, _ and -. */
  tools?: Readonly<Record<string, ModelTool>> | undefined;
  /** Maximum number of requests, 1 to MODEL_STEPS_MAX. Each one but the last ends in tool calls. Default MODEL_STEPS_DEFAULT. */
  stepsMax?: number | undefined;
  /** UTF-16 units of one tool result that the model reads. Default MODEL_TOOL_RESULT_UNITS_MAX. */
  toolResultUnitsMax?: number | undefined;
  /** Shows the reasoning of the model as an artifact `reasoning`. Default false. */
  reasoning?: boolean | undefined;
  /**
   * Media types of users' files that the model reads, e.g. `['image/*']`; for any other file it gets only the name. Default MODEL_MEDIA:
   * images, audio (WAV, MP3), PDF and text.
   */
  media?: readonly string[] | undefined;
  /** False: clients do not see the text of the model, only its calls. Default true. */
  shown?: boolean | undefined;
  /**
   * Stores each answer of the model and each result of its tools as a step, so that the next attempt after a death continues after them.
   * The calls of one answer then run one after another. Default false.
   */
  stored?: boolean | undefined;
};

/** The models of a turn: their steps, and the text around a failed step. */
type TurnModels = { calls: number; steps: number; failed?: { before: string; after: string } };

const MODELS = new WeakMap<Turn, TurnModels>();

/**
 * Calls a language model behind any OpenAI-compatible address: `const { text } = yield* model({ model: 'gpt-5-mini', apiKey, tools })`. Its
 * text is the agent's text, token by token. Its tools run until it calls no more, and clients see the calls with their arguments and
 * results. If the stream of a step breaks off, the step is retried and its text is replaced.
 *
 * If a call needs an approval, the turn ends with the question. In the turn of the answer, `run` begins again, and the same `model()`, counted from the beginning of
 * `run`, continues the conversation.
 *
 * Throws ModelError when the model fails. A turn that does not catch it fails with its message.
 * @public
 */
export function model(options: ModelOptions): Delegated<ModelAnswer> {
  return delegated({ kind: 'model' }, callModel(options));
}

async function* callModel(options: ModelOptions): AsyncGenerator<AgentEvent | TurnRequest, ModelAnswer, unknown> {
  check(options);
  const turn = yield* thisTurn();
  const {
    tools = {},
    stepsMax,
    reasoning,
    shown = true,
    stored = false,
    toolResultUnitsMax = MODEL_TOOL_RESULT_UNITS_MAX,
  } = options;
  if (stored && turn.steps === undefined) throw new AgentMisuse('model: this agent runs where steps cannot be stored');
  const { createChatModel } = await importChatModel();
  const models = modelsOf(turn);
  models.calls += 1;
  const { calls: number } = models;
  const answered = pausedModelOf(turn);
  const paused = answered?.paused.number === number ? answered : undefined;
  const textNow = () => turn.textSoFar?.() ?? '';
  const { failed } = models;
  delete models.failed;
  // A fallback model replaces the text of the failed step of the first model.
  if (shown && failed !== undefined && failed.after === textNow() && failed.before !== failed.after)
    yield { type: 'snapshot', text: failed.before };
  const textBefore = textNow();
  let stepBefore = '';
  const loop = runModel({
    model: createChatModel(chatOptions(options, turn)),
    messages: promptOf(
      options,
      paused === undefined ? turn : { ...turn, ...conversationOf(turn, paused.paused) },
      paused?.paused,
    ),
    paused,
    pause: (request, loop) => pauseModel(request, { ...loop, number, ...promptKept(options, turn, paused?.paused) }),
    tools: callableTools(tools, turn, { stored, toolResultUnitsMax }),
    // Without a trace of its own it uses the active span: that of the turn, or one that the author has begun.
    request: { signal: turn.signal, onEnded: turn.modelRequestEnded },
    stepsMax,
    reasoning,
    shown,
    textBefore,
    firstStep: models.steps + 1,
    onStep: text => {
      models.steps += 1;
      stepBefore = text;
    },
    ...(stored && { storeIn: turn.steps }),
  });
  try {
    for (;;) {
      const { done, value } = await loop.next();
      if (done && value === undefined) throw new AgentMisuse('model: the turn has ended with a question, and its run continues');
      if (done) return value as ModelAnswer;
      yield* value;
    }
  } catch (error) {
    if (shown) models.failed = { before: textBefore + stepBefore, after: textNow() };
    throw error;
  } finally {
    await loop.return(undefined as never);
  }
}

function modelsOf(turn: Turn): TurnModels {
  const known = MODELS.get(turn) ?? { calls: 0, steps: 0 };
  MODELS.set(turn, known);
  return known;
}

/** The package for models is an optional dependency of `@hopline/agent`, because it has twice the size of the kit. */
async function importChatModel(): Promise<typeof import('@hopline/chat-model')> {
  try {
    return await import('@hopline/chat-model');
  } catch (error) {
    if ((error as { code?: unknown }).code !== 'ERR_MODULE_NOT_FOUND') throw error;
    throw new AgentMisuse('model needs a package that is not installed: npm install @ai-sdk/openai-compatible');
  }
}

function chatOptions({ baseUrl = OPENAI_BASE_URL_DEFAULT, ...options }: ModelOptions, { modelFetch }: Turn): ChatModelOptions {
  const { model: name, apiKey, headers, temperature, limits } = options;
  return {
    model: name,
    baseUrl,
    apiKey,
    ...(headers && { headers }),
    ...(temperature !== undefined && { temperature }),
    ...(limits && { limits }),
    fetch: modelFetch,
  };
}

function promptOf(
  { system, messages, media = MODEL_MEDIA }: ModelOptions,
  { history, message }: Pick<Turn, 'history' | 'message'>,
  paused?: PausedModel,
): ChatMessage[] {
  if (messages === undefined) return promptMessages({ system, history, message, media });
  return [...promptMessages({ system, history: [], message: undefined }), ...(paused?.prompt ?? givenMessages(messages, media))];
}

function givenMessages(messages: NonNullable<ModelOptions['messages']>, media: readonly string[]): ChatMessage[] {
  return messages.map(one => ('parts' in one ? promptMessage(one, { media }) : one));
}

/**
 * The values from which the turn of the answer builds the same prompt. They are stored, because messages that the agent made itself may
 * depend on the turn's message.
 */
function promptKept(
  { messages, media = MODEL_MEDIA }: ModelOptions,
  { message }: Turn,
  paused?: PausedModel,
): Pick<PausedModel, 'request' | 'prompt'> {
  if (messages !== undefined) return { prompt: paused?.prompt ?? givenMessages(messages, media) };
  return { request: paused?.request ?? message };
}

function callableTools(
  tools: Readonly<Record<string, ModelTool>>,
  turn: Turn,
  { stored, toolResultUnitsMax }: { stored: boolean; toolResultUnitsMax: number },
): ModelTools {
  const offered = Object.entries(tools).map(
    ([name, { description, parameters }]): ChatTool => ({ name, description, parameters }),
  );
  return {
    offered: () => offered,
    toApprove: async ({ name, args }) => {
      const { approve = false } = (Object.hasOwn(tools, name) && tools[name]) || {};
      const isNeeded = typeof approve === 'function' ? await approve(args) : approve;
      return isNeeded === false ? undefined : name;
    },
    call: async function* ({ name, args }: ToolCall, callId?: string) {
      const called = Object.hasOwn(tools, name) ? tools[name] : undefined;
      // A tool that the model has made up does not run, so nothing is shown.
      if (called === undefined) return 'No tool has that name.';
      const { retries, retryIf } = called;
      const retry = { ...(retries !== undefined && { retries }), ...(retryIf && { retryIf }) };
      try {
        const result = yield* toolIn(turn, name, args, context => called.run(args, context), { ...retry, stored, callId });
        return cutResult(readable(name, result), toolResultUnitsMax);
      } catch (error) {
        if (turn.signal.aborted || error instanceof AgentMisuse) throw error;
        if (isToolError(error)) return cutResult(`The call failed: ${error.message}`, toolResultUnitsMax);
        turn.showError?.(error);
        return 'The call failed.';
      }
    },
  };
}

function readable(name: string, result: unknown): string {
  if (typeof result === 'string') return result;
  if (result === undefined) return '';
  if (!isJson(result)) throw new AgentMisuse(`tool ${name}: its result is ${kindOf(result)}, which cannot be written as JSON`);
  return JSON.stringify(result);
}

const TOOL_NAME = /^[A-Za-z0-9_-]{1,64}$/;

/** Throws AgentMisuse, which names the wrong member. */
function check(options: ModelOptions): void {
  if (!isObject(options)) throw new AgentMisuse(`model: its argument is ${kindOf(options)}, not an object`);
  const { model: name, baseUrl, apiKey, messages, tools = {}, stepsMax = 1, toolResultUnitsMax = 1 } = options;
  nonEmpty('model: model', name);
  if (baseUrl !== undefined && (!URL.canParse(baseUrl) || !/^https?:/.test(baseUrl)))
    throw new AgentMisuse('model: baseUrl must be an http:// or https:// URL');
  if (apiKey !== undefined && typeof apiKey !== 'string')
    throw new AgentMisuse(`model: apiKey is ${kindOf(apiKey)}, not a string`);
  if (!isWholeUpTo(stepsMax, MODEL_STEPS_MAX))
    throw new AgentMisuse(`model: stepsMax must be a whole number from 1 to ${MODEL_STEPS_MAX}`);
  if (!isWholeUpTo(toolResultUnitsMax, Number.MAX_SAFE_INTEGER))
    throw new AgentMisuse('model: toolResultUnitsMax must be a whole number, 1 or more');
  if (messages !== undefined && !(Array.isArray(messages) && messages.every(isMessage)))
    throw new AgentMisuse('model: messages must be a list of messages, each with role and text, or with role and parts');
  if (!isObject(tools)) throw new AgentMisuse(`model: tools is ${kindOf(tools)}, not an object`);
  const named = Object.entries(tools);
  if (named.length > MODEL_TOOLS_MAX) throw new AgentMisuse(`model: ${named.length} tools are more than ${MODEL_TOOLS_MAX}`);
  for (const [tool, value] of named) checkTool(tool, value);
}

function checkTool(name: string, tool: ModelTool): void {
  if (!TOOL_NAME.test(name)) throw new AgentMisuse('model: the name of a tool must be 1 to 64 of A-Z, a-z, 0-9, _ and -');
  if (!isObject(tool) || typeof tool.description !== 'string' || !isObject(tool.parameters) || typeof tool.run !== 'function')
    throw new AgentMisuse(`model: tool ${name} needs description, parameters and run`);
  const { approve = false } = tool;
  if (typeof approve !== 'boolean' && typeof approve !== 'function')
    throw new AgentMisuse(`model: approve of tool ${name} is ${kindOf(approve)}, not a boolean or a function`);
}

const isWholeUpTo = (value: unknown, max: number) => Number.isSafeInteger(value) && Number(value) >= 1 && Number(value) <= max;

function isMessage(message: unknown): boolean {
  if (!isObject(message) || typeof message.role !== 'string') return false;
  if (Array.isArray(message.parts)) return message.parts.every(isObject);
  if (typeof message.text !== 'string') return false;
  if (message.role === 'assistant') return Array.isArray(message.calls);
  return message.role === 'tool' ? isObject(message.call) : message.role === 'user' || message.role === 'system';
}
