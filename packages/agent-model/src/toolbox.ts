import { randomUUID } from 'node:crypto';
import { type AgentEvent, type AgentSkill, cutResult, MODEL_TOOLS_MAX, type ModelTools, type Turn } from '@hopline/agent';
import {
  callTool,
  MCP_LIMITS,
  type McpConnection,
  type McpLimits,
  type McpServer,
  McpSession,
  resultEvents,
  ToolCallFault,
  TooManyTools,
} from '@hopline/agent-mcp';
import type { ToolCall } from '@hopline/chat-model';
import { callableName } from './tool-names.ts';

type Offered = { session: McpSession; tool: ReturnType<McpConnection['tools']>[number] };

/** The result of a tool call: text for the model, artifacts for the client. */
type ToolResult = { text: string; artifacts: AgentEvent[]; failed: boolean };

type ToolboxOptions = {
  limits: Partial<McpLimits>;
  resultUnitsMax: number;
  /** Names of the tools whose calls a person must approve, as their servers name them; true: all. */
  approve: true | readonly string[];
};

/** An MCP server's tools that the model does not know of would make it invent answers, so none of them is left out. */
function tooMany(count: number): TooManyTools {
  return new TooManyTools(
    `the MCP servers of the agent have ${count} tools, and a model is offered at most ${MODEL_TOOLS_MAX}: let them offer fewer, or give some to another agent`,
  );
}

/** The tools of an agent's MCP servers. */
export class Toolbox {
  readonly #sessions: readonly McpSession[];
  readonly #limits: McpLimits;
  readonly #options: ToolboxOptions;

  constructor(servers: readonly McpServer[], options: ToolboxOptions) {
    this.#limits = { ...MCP_LIMITS, ...options.limits };
    this.#sessions = servers.map(server => new McpSession(server, this.#limits));
    this.#options = options;
  }

  /**
   * Connects to all servers. Rejects if one is unreachable, because without its tools an agent would make up answers, and with TooManyTools.
   */
  async open(): Promise<OpenTools> {
    const tools = new Map<string, Offered>();
    for (const { session, tool } of await this.#offered()) tools.set(callableName(tool.name, tools), { session, tool });
    return new OpenTools(tools, this.#limits, this.#options);
  }

  async skills(): Promise<AgentSkill[]> {
    return (await this.#offered()).map(({ tool: { name, title, description } }) => {
      const displayName = title ?? name;
      return { id: name, name: displayName, description: description ?? displayName, tags: ['mcp', 'tool'] };
    });
  }

  async #offered(): Promise<Offered[]> {
    const connections = await Promise.all(this.#sessions.map(session => session.connect()));
    const offered = connections.flatMap((connection, index) =>
      connection.tools().map(tool => ({ session: this.#sessions[index]!, tool })),
    );
    if (offered.length > MODEL_TOOLS_MAX) throw tooMany(offered.length);
    return offered;
  }

  /** Cancels a call that a process has begun, at the server that it names. */
  async cancelCall(call: unknown, trace: Turn['trace']): Promise<void> {
    await Promise.all(this.#sessions.map(session => session.cancelCall(call, trace)));
  }

  async close(): Promise<void> {
    await Promise.all(this.#sessions.map(session => session.close()));
  }
}

/** The tools offered in one turn. */
class OpenTools {
  readonly #tools: ReadonlyMap<string, Offered>;
  readonly #limits: McpLimits;
  readonly #resultUnitsMax: number;
  readonly #approve: ToolboxOptions['approve'];

  constructor(tools: ReadonlyMap<string, Offered>, limits: McpLimits, { resultUnitsMax, approve }: ToolboxOptions) {
    this.#tools = tools;
    this.#limits = limits;
    this.#resultUnitsMax = resultUnitsMax;
    this.#approve = approve;
  }

  /**
   * A name in `approve` that is not the name of a tool. Its author means some tool, whose calls would otherwise run without an approval.
   */
  get unknown(): string | undefined {
    if (this.#approve === true) return undefined;
    const names = new Set([...this.#tools.values()].map(({ tool }) => tool.name));
    return this.#approve.find(name => !names.has(name));
  }

  /** The tools in a turn. A fault of a call becomes a result, which the model reads; a call rejects only when the turn is over. */
  toolsOf(turn: Turn): ModelTools {
    const offered = [...this.#tools].map(([name, { tool }]) => ({
      name,
      description: tool.description ?? tool.title ?? tool.name,
      parameters: tool.inputSchema,
    }));
    return {
      offered: () => offered,
      call: (call, callId) => this.#call(call, turn, callId),
      toApprove: async ({ name }) => {
        const shownName = this.#tools.get(name)?.tool.name;
        return shownName !== undefined && (this.#approve === true || this.#approve.includes(shownName)) ? shownName : undefined;
      },
    };
  }

  async *#call({ name, args }: ToolCall, turn: Turn, callId: string = randomUUID()): AsyncGenerator<AgentEvent, string, unknown> {
    const offered = this.#tools.get(name);
    // A tool invented by the model does not run, so nothing is shown.
    if (offered === undefined) return 'No tool has that name.';
    // The server's name of the tool.
    const shown = { type: 'tool', callId, tool: offered.tool.name } as const;
    yield { ...shown, phase: 'start', arguments: args };
    const { text, artifacts, failed } = await this.#run(offered, args, {
      ...turn,
      trace: turn.toolTrace?.(shown.callId) ?? turn.trace,
    });
    yield { ...shown, phase: 'end', failed, result: text };
    yield* artifacts;
    return text;
  }

  async #run(
    { session, tool }: Offered,
    args: ToolCall['args'],
    { signal, trace, remoteRunBegan }: Pick<Turn, 'signal' | 'trace' | 'remoteRunBegan'>,
  ): Promise<ToolResult> {
    const began = remoteRunBegan && { began: remoteRunBegan };
    const options = { session, limits: this.#limits, signal, trace, onprogress: () => {}, ...began };
    try {
      const result = await callTool({ tool: tool.name, args }, options);
      return this.#read([...resultEvents(tool.name, result)], result.isError === true);
    } catch (error) {
      if (!(error instanceof ToolCallFault)) throw error;
      return { text: `The call failed: ${error.message}.`, artifacts: [], failed: true };
    }
  }

  /** The model reads text. Images and files are artifacts for the client, and the model reads a note instead. */
  #read(events: AgentEvent[], failed: boolean): ToolResult {
    let text = '';
    const artifacts: AgentEvent[] = [];
    for (const event of events) {
      if (event.type === 'text') text += event.text;
      if (event.type !== 'artifact') continue;
      artifacts.push(event);
      const [part] = event.artifact.parts;
      text += part?.data === undefined ? `[shown to the user: ${part?.mediaType ?? 'a file'}]` : JSON.stringify(part.data);
    }
    return { text: cutResult(text, this.#resultUnitsMax), artifacts, failed };
  }
}
