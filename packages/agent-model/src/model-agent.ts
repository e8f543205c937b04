import { randomUUID } from 'node:crypto';
import { type Agent, type AgentEvent, eventsOf, type Turn } from '@hopline/agent';
import type { McpLimits, McpServer } from '@hopline/agent-mcp';
import {
  type ChatMessage,
  type ChatModel,
  type ChatModelOptions,
  createChatModel,
  ModelError,
  type Step,
  type ToolCall,
} from '@hopline/chat-model';
import { promptMessages } from '@hopline/chat-model/prompt-messages';
import { MODEL_AGENT_LIMITS } from './limits.ts';
import { type OpenTools, Toolbox, type ToolResult } from './toolbox.ts';

export type ModelAgentOptions = ChatModelOptions & {
  description?: string;
  /** System prompt. */
  system?: string;
  /** MCP servers whose tools the model may call. */
  mcp?: readonly McpServer[];
  mcpLimits?: Partial<McpLimits>;
  /** Emits the model's reasoning as an artifact `reasoning`; it is never part of the answer. */
  reasoning?: boolean;
  stepsMax?: number;
  toolResultUnitsMax?: number;
};

/** An agent that is a language model with tools. It connects on first use. */
export function createModelAgent(options: ModelAgentOptions): Agent {
  const model = createChatModel(options);
  const { mcp = [], mcpLimits = {}, toolResultUnitsMax = MODEL_AGENT_LIMITS.toolResultUnitsMax } = options;
  const toolbox = new Toolbox(mcp, mcpLimits, toolResultUnitsMax);
  const description = options.description ?? 'A language model.';
  const chat = { id: 'chat', name: 'Chat', description, tags: [] };
  const runBatches = (turn: Turn) => new ToolLoop(model, options, turn).run(toolbox);
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
class ToolLoop {
  readonly #model: ChatModel;
  readonly #options: ModelAgentOptions;
  readonly #turn: Turn;
  readonly #messages: ChatMessage[];
  /** The text of completed steps: a failed attempt of the next step is reset to it. */
  #completedText = '';

  constructor(model: ChatModel, options: ModelAgentOptions, turn: Turn) {
    this.#model = model;
    this.#options = options;
    this.#turn = turn;
    this.#messages = promptMessages({ system: options.system, history: turn.history, message: turn.message });
  }

  /** The events of the turn, in arrays of those that arrived together. */
  async *run(toolbox: Toolbox): AsyncGenerator<readonly AgentEvent[]> {
    const { remoteRuns = [], trace } = this.#turn;
    // Cancels the tool calls of an earlier attempt, because the model may make other calls now. The model request of that attempt ended
    // with its process.
    const tools = await Promise.all(remoteRuns.map(call => toolbox.cancelCall(call, trace)))
      .then(() => toolbox.open())
      .catch(() => undefined);
    if (tools === undefined) {
      yield [{ type: 'failed', reason: 'an MCP server of the agent cannot be reached', retryable: true, cause: 'unreachable' }];
      return;
    }
    try {
      yield* this.#runSteps(tools);
    } catch (error) {
      if (this.#turn.signal.aborted) return;
      if (!(error instanceof ModelError)) throw error;
      yield [{ type: 'failed', reason: error.message, retryable: error.retryable, cause: error.code }];
    }
  }

  async *#runSteps(tools: OpenTools): AsyncGenerator<readonly AgentEvent[]> {
    const { stepsMax = MODEL_AGENT_LIMITS.stepsMax } = this.#options;
    for (let number = 1; number <= stepsMax; number += 1) {
      const { text, calls } = yield* this.#runStep(tools, number);
      this.#completedText += text;
      if (calls.length === 0) {
        yield [{ type: 'done' }];
        return;
      }
      // The model would not read the results of the last step.
      if (number === stepsMax) break;
      this.#messages.push({ role: 'assistant', text, calls });
      for await (const event of this.#runCalls(tools, calls)) yield [event];
    }
    yield [
      { type: 'failed', reason: `the model did not finish within ${stepsMax} steps`, retryable: false, cause: 'too_many_steps' },
    ];
  }

  async *#runStep(tools: OpenTools, number: number): AsyncGenerator<readonly AgentEvent[], Step> {
    const { trace, signal } = this.#turn;
    const thoughts = new Thoughts(`reasoning-${number}`);
    const step = this.#model.step({ messages: this.#messages, tools: tools.offered(), trace, signal });
    try {
      for (;;) {
        const { done, value } = await step.next();
        if (done) {
          if (thoughts.open) yield [thoughts.end()];
          return value;
        }
        const events: AgentEvent[] = [];
        for (const event of value) {
          if (event.type === 'text') events.push(event);
          else if (event.type === 'restart') events.push({ type: 'snapshot', text: this.#completedText });
          if (this.#options.reasoning && event.type === 'reasoning') events.push(thoughts.more(event.text));
          if (this.#options.reasoning && event.type === 'restart') thoughts.restart();
        }
        if (events.length > 0) yield events;
      }
    } finally {
      await step.return(undefined as never);
    }
  }

  /**
   * Runs the calls of a step in parallel. The end of a call is emitted when it happens, but the model reads the results in the order of its
   * calls.
   */
  async *#runCalls(tools: OpenTools, calls: readonly ToolCall[]): AsyncGenerator<AgentEvent> {
    const { signal, trace, toolTrace, remoteRunBegan } = this.#turn;
    const running = new Map<number, Promise<{ index: number; result?: ToolResult; error?: unknown }>>();
    const results: ToolResult[] = [];
    const shownCalls = calls.map(({ name }) => ({ callId: randomUUID(), tool: tools.machineName(name) }));
    for (const [index, call] of calls.entries()) {
      const { callId, tool } = shownCalls[index]!;
      // A tool invented by the model does not run, so nothing is shown.
      if (tool !== undefined) yield { type: 'tool', phase: 'start', callId, tool };
      running.set(
        index,
        // Never rejects: the calls of an abandoned turn are no longer awaited.
        tools.run(call, { signal, trace: toolTrace?.(callId) ?? trace, ...(remoteRunBegan && { remoteRunBegan }) }).then(
          result => ({ index, result }),
          error => ({ index, error: error as unknown }),
        ),
      );
    }
    while (running.size > 0) {
      const { index, result, error } = await Promise.race(running.values());
      running.delete(index);
      if (result === undefined) throw error;
      results[index] = result;
      const { callId, tool } = shownCalls[index]!;
      if (tool !== undefined) yield { type: 'tool', phase: 'end', callId, tool, failed: result.failed };
      yield* result.artifacts;
    }
    for (const [index, call] of calls.entries()) this.#messages.push({ role: 'tool', call, text: results[index]!.text });
  }
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
