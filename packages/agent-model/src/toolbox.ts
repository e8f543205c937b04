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
} from '@hopline/agent-mcp';
import type { ToolCall } from '@hopline/chat-model';
import { callableName } from './tool-names.ts';

type Offered = { session: McpSession; tool: ReturnType<McpConnection['tools']>[number] };

/** The result of a tool call: text for the model, artifacts for the client. */
type ToolResult = { text: string; artifacts: AgentEvent[]; failed: boolean };

/** The tools of an agent's MCP servers. */
export class Toolbox {
  readonly #sessions: readonly McpSession[];
  readonly #limits: McpLimits;
  readonly #resultUnitsMax: number;

  constructor(servers: readonly McpServer[], limits: Partial<McpLimits>, resultUnitsMax: number) {
    this.#limits = { ...MCP_LIMITS, ...limits };
    this.#sessions = servers.map(server => new McpSession(server, this.#limits));
    this.#resultUnitsMax = resultUnitsMax;
  }

  /** Connects to all servers. Rejects when one is unreachable: without its tools an agent would make up answers. */
  async open(): Promise<OpenTools> {
    const tools = new Map<string, Offered>();
    const connections = await Promise.all(this.#sessions.map(session => session.connect()));
    for (const [index, connection] of connections.entries()) {
      for (const tool of connection.tools()) {
        if (tools.size === MODEL_TOOLS_MAX) break;
        tools.set(callableName(tool.name, tools), { session: this.#sessions[index]!, tool });
      }
    }
    return new OpenTools(tools, this.#limits, this.#resultUnitsMax);
  }

  async skills(): Promise<AgentSkill[]> {
    const connections = await Promise.all(this.#sessions.map(session => session.connect()));
    return connections.flatMap(connection =>
      connection.tools().map(({ name, title, description }) => {
        const displayName = title ?? name;
        return { id: name, name: displayName, description: description ?? displayName, tags: ['mcp', 'tool'] };
      }),
    );
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

  constructor(tools: ReadonlyMap<string, Offered>, limits: McpLimits, resultUnitsMax: number) {
    this.#tools = tools;
    this.#limits = limits;
    this.#resultUnitsMax = resultUnitsMax;
  }

  /** The tools in a turn. A fault of a call becomes a result, which the model reads; a call rejects only when the turn is over. */
  toolsOf(turn: Turn): ModelTools {
    const offered = [...this.#tools].map(([name, { tool }]) => ({
      name,
      description: tool.description ?? tool.title ?? tool.name,
      parameters: tool.inputSchema,
    }));
    return { offered: () => offered, call: call => this.#call(call, turn) };
  }

  async *#call({ name, args }: ToolCall, turn: Turn): AsyncGenerator<AgentEvent, string, unknown> {
    const offered = this.#tools.get(name);
    // A tool invented by the model does not run, so nothing is shown.
    if (offered === undefined) return 'No tool has that name.';
    // The server's name of the tool.
    const shown = { type: 'tool', callId: randomUUID(), tool: offered.tool.name } as const;
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
