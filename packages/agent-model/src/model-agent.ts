import {
  type Agent,
  type AgentEvent,
  conversationOf,
  eventsOf,
  MODEL_TOOL_RESULT_UNITS_MAX,
  pausedModelOf,
  pauseModel,
  runModel,
  type Turn,
} from '@hopline/agent';
import { type McpLimits, type McpServer, TooManyTools } from '@hopline/agent-mcp';
import { type ChatModel, type ChatModelOptions, createChatModel, ModelError } from '@hopline/chat-model';
import { MODEL_MEDIA, promptMessages } from '@hopline/chat-model/prompt-messages';
import { Toolbox } from './toolbox.ts';

export type ModelAgentOptions = ChatModelOptions & {
  description?: string;
  /** System prompt. */
  system?: string;
  /** MCP servers whose tools the model may call. */
  mcp?: readonly McpServer[];
  mcpLimits?: Partial<McpLimits>;
  /** Names of the tools whose calls a person must approve, as their servers name them; true: all. */
  approve?: true | readonly string[];
  /** Emits the model's reasoning as an artifact `reasoning`; it is never part of the answer. */
  reasoning?: boolean;
  /** Media types of the files of users that the model reads; of any other file it gets the name. Default MODEL_MEDIA. */
  media?: readonly string[];
  stepsMax?: number;
  toolResultUnitsMax?: number;
};

/** An agent that is a language model with tools. It connects on first use. */
export function createModelAgent(options: ModelAgentOptions): Agent {
  const model = createChatModel(options);
  const { mcp = [], mcpLimits = {}, toolResultUnitsMax = MODEL_TOOL_RESULT_UNITS_MAX } = options;
  const toolbox = new Toolbox(mcp, { limits: mcpLimits, resultUnitsMax: toolResultUnitsMax, approve: options.approve ?? [] });
  const description = options.description ?? 'A language model.';
  const chat = { id: 'chat', name: 'Chat', description, tags: [] };
  const runBatches = (turn: Turn) => runTurn(turn, { model, options, toolbox });
  return {
    description,
    skills: async () => [chat, ...(await toolbox.skills())],
    run: turn => eventsOf(runBatches(turn)),
    runBatches,
    cancelRemoteRun: (run, trace) => toolbox.cancelCall(run, trace),
    close: () => toolbox.close(),
  };
}

/** One turn: the model answers and its tools run, until it calls no more tools. */
async function* runTurn(
  turn: Turn,
  { model, options, toolbox }: { model: ChatModel; options: ModelAgentOptions; toolbox: Toolbox },
): AsyncGenerator<readonly AgentEvent[]> {
  const { remoteRuns = [], trace, signal, history, message } = turn;
  const { system, stepsMax, reasoning, media = MODEL_MEDIA } = options;
  // Cancels the tool calls of an earlier attempt, because the model may make other calls now. The model request of that attempt ended
  // with its process.
  const opened = await Promise.all(remoteRuns.map(call => toolbox.cancelCall(call, trace)))
    .then(() => toolbox.open())
    .catch((error: unknown) => (error instanceof TooManyTools ? error : undefined));
  if (opened instanceof TooManyTools) {
    yield [{ type: 'failed', reason: opened.message, retryable: false, cause: 'too_many_tools' }];
    return;
  }
  if (opened === undefined) {
    yield [{ type: 'failed', reason: 'an MCP server of the agent cannot be reached', retryable: true, cause: 'unreachable' }];
    return;
  }
  if (opened.unknown !== undefined) {
    const reason = `\`approve\` names ${opened.unknown}, a tool that no MCP server of the agent has`;
    yield [{ type: 'failed', reason, retryable: false, cause: 'no_such_tool' }];
    return;
  }
  const paused = pausedModelOf(turn);
  const asked = paused === undefined ? { history, message } : conversationOf(turn, paused.paused);
  const messages = promptMessages({ system, history: asked.history, message: asked.message, media });
  const pause: Parameters<typeof runModel>[0]['pause'] = (request, loop) =>
    pauseModel(request, { ...loop, number: 1, request: paused?.paused.request ?? message });
  const tools = opened.toolsOf(turn);
  try {
    const answer = yield* runModel({ model, messages, tools, request: { trace, signal }, stepsMax, reasoning, pause, paused });
    if (answer === undefined) return;
    yield [{ type: 'done' }];
  } catch (error) {
    if (signal.aborted) return;
    if (!(error instanceof ModelError)) throw error;
    if (error.cause !== undefined) turn.showError?.(error.cause);
    yield [{ type: 'failed', reason: error.message, retryable: error.retryable, cause: error.code }];
  }
}
