import { randomUUID } from 'node:crypto';
import type { Message } from '@hopline/a2a';
import type { Agent, AgentEvent, AgentSkill, Turn } from '@hopline/agent';
import type { CallToolResult, Progress, Tool } from '@modelcontextprotocol/client';
import { askedIn, askUser } from './asked-calls.ts';
import { callTool, MCP_UNREACHABLE, ToolCallFault } from './call-tool.ts';
import { type CallInput, questionKey, readAnswer, ToolAsked } from './elicitation.ts';
import { MCP_LIMITS, type McpLimits, TOOLS_MAX } from './limits.ts';
import { type McpServer, McpSession } from './mcp-session.ts';
import { TooManyTools } from './too-many-tools.ts';
import { findCalls, UNKNOWN_TOOL, type WrittenCall } from './tool-calls.ts';
import { errorText, resultEvents, shownResult } from './tool-result.ts';
import { withProgress } from './with-progress.ts';

export type McpOptions = McpServer & {
  description?: string;
  /** Names of the tools that the agent has. Absent: all of the server's. */
  tools?: readonly string[];
  limits?: Partial<McpLimits>;
};

/** An agent that runs the tools named in a message on an MCP server. It connects on first use. */
export function createMcpAgent(options: McpOptions): Agent {
  const limits = { ...MCP_LIMITS, ...options.limits };
  const session = new McpSession(options, limits, { offersQuestions: true });
  const chosen = (tools: readonly Tool[]) => tools.filter(({ name }) => options.tools?.includes(name) ?? true);
  return {
    description: options.description ?? 'Runs the tools of an MCP server.',
    skills: async () => {
      const tools = chosen((await session.connect()).tools());
      if (tools.length > TOOLS_MAX) throw tooMany(tools);
      return tools.map(skillOf);
    },
    run: turn => runTurn(session, chosen, limits, turn),
    cancelRemoteRun: (run, trace) => session.cancelCall(run, trace),
    close: () => session.close(),
  };
}

function tooMany(tools: readonly Tool[]): TooManyTools {
  return new TooManyTools(
    `the MCP server has ${tools.length} tools, and an agent has at most ${TOOLS_MAX}: name the tools that it needs in its member \`tools\``,
  );
}

function skillOf(tool: Tool): AgentSkill {
  const name = tool.title ?? tool.annotations?.title ?? tool.name;
  return { id: tool.name, name, description: tool.description ?? name, tags: ['mcp', 'tool'] };
}

async function* runTurn(
  session: McpSession,
  chosen: (tools: readonly Tool[]) => readonly Tool[],
  limits: McpLimits,
  turn: Turn,
): AsyncGenerator<AgentEvent> {
  const connection = await cancelEarlierCalls(session, turn)
    .then(() => session.connect())
    .catch(() => undefined);
  if (connection === undefined) {
    yield { type: 'failed', reason: MCP_UNREACHABLE, retryable: true, cause: 'unreachable' };
    return;
  }
  const tools = chosen(connection.tools());
  if (tools.length > TOOLS_MAX) {
    yield { type: 'failed', reason: tooMany(tools).message, retryable: false, cause: 'too_many_tools' };
    return;
  }
  const names = new Set(tools.map(tool => tool.name));
  const asked = askedIn(turn.resume);
  if (asked !== undefined) {
    const { result, fault } = readAnswer(asked.elicitation, turn.message);
    if (fault !== undefined) yield askUser(asked, fault);
    else if (!asked.calls.every(({ tool }) => names.has(tool))) yield rejected(UNKNOWN_TOOL);
    else {
      const answers = [...asked.input.answers, { question: questionKey(asked.elicitation), result }];
      yield* runCalls(session, { calls: asked.calls, input: { ...asked.input, answers } }, limits, turn);
    }
    return;
  }
  const found = findCalls(turn.message.parts, name => names.has(name));
  if (found.rejection !== undefined) {
    yield rejected(found.rejection);
    return;
  }
  if (found.calls.length === 0) yield { type: 'text', text: listing(tools) };
  yield* runCalls(session, { calls: found.calls, input: { answers: [] } }, limits, turn);
}

const rejected = (reason: string) => ({ type: 'failed', reason, retryable: false, cause: 'no_such_tool' }) as const;

/** Calls that are left to run. `input`: of the first of them. */
type OpenWork = { calls: readonly WrittenCall[]; input: CallInput };

async function* runCalls(
  session: McpSession,
  { calls, input }: OpenWork,
  limits: McpLimits,
  turn: Turn,
): AsyncGenerator<AgentEvent> {
  for (const index of calls.keys()) {
    if (turn.signal.aborted) return;
    const work = { calls: calls.slice(index), input: index === 0 ? input : { answers: [] } };
    if (!(yield* runCall(session, work, limits, turn))) return;
  }
  yield { type: 'done' };
}

/** The calls of an earlier attempt run again, because their results are not stored. */
async function cancelEarlierCalls(session: McpSession, { remoteRuns = [], trace }: Turn): Promise<void> {
  for (const run of remoteRuns) await session.cancelCall(run, trace);
}

/** Runs the first of the calls. Returns whether the turn continues. */
async function* runCall(
  session: McpSession,
  { calls, input }: OpenWork,
  limits: McpLimits,
  turn: Turn,
): AsyncGenerator<AgentEvent, boolean> {
  const callId = randomUUID();
  const call = calls[0]!;
  const { tool, args } = call;
  yield { type: 'tool', phase: 'start', callId, tool, arguments: args };
  const { signal, remoteRunBegan } = turn;
  const began = remoteRunBegan && { began: remoteRunBegan };
  const running = withProgress(onprogress =>
    callTool(call, { session, limits, signal, onprogress, trace: turn.toolTrace?.(callId) ?? turn.trace, input, ...began }),
  );
  let result: CallToolResult;
  try {
    let step = await running.next();
    while (step.done !== true) {
      yield { type: 'progress', message: progressMessage(step.value) };
      step = await running.next();
    }
    result = step.value;
  } catch (error) {
    if (signal.aborted) return false;
    if (error instanceof ToolAsked) {
      yield askUser({ calls, elicitation: error.elicitation, input: error.input });
      return false;
    }
    if (!(error instanceof ToolCallFault)) throw error;
    yield { type: 'tool', phase: 'end', callId, tool, failed: true, result: error.message };
    yield { type: 'failed', reason: error.message, retryable: error.retryable, cause: 'tool_call_failed' };
    return false;
  }
  const failed = result.isError === true;
  yield { type: 'tool', phase: 'end', callId, tool, failed, result: shownResult(result) };
  if (!failed) {
    yield* resultEvents(tool, result);
    return true;
  }
  const message = agentMessage(errorText(result));
  yield { type: 'failed', reason: `tool ${tool} failed`, retryable: false, message, cause: 'tool_failed' };
  return false;
}

function progressMessage({ progress, total, message }: Progress): Message {
  return agentMessage(message ?? (total === undefined ? `${progress}` : `${progress}/${total}`));
}

function agentMessage(text: string): Message {
  return { messageId: randomUUID(), role: 'ROLE_AGENT', parts: [{ text }] };
}

/** Length of the first line of a description in the list of tools. */
const TOOL_DESCRIPTION_CHARS_MAX = 160;

function listing(tools: readonly Tool[]): string {
  const lines = tools.map(tool => {
    const [first = ''] = (tool.description ?? tool.title ?? '').split('\n', 1);
    return `- ${tool.name}${first === '' ? '' : `: ${first.slice(0, TOOL_DESCRIPTION_CHARS_MAX)}`}\n`;
  });
  return `Name a tool and its arguments as \`tool {"argument":"value"}\`. The tools:\n${lines.join('')}`;
}
