import { StreamableHTTPError } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { type CallToolResult, ErrorCode, McpError, type Progress } from '@modelcontextprotocol/sdk/types.js';
import type { McpLimits } from './limits.ts';
import type { McpSession } from './mcp-session.ts';
import type { ToolCall } from './tool-calls.ts';

/** A call that got no result. The message names the tool and the code, never what the server wrote: that may be content. */
export class ToolUnanswered extends Error {
  override readonly name = 'ToolUnanswered';
  readonly retryable: boolean;

  constructor(reason: string, retryable: boolean) {
    super(reason);
    this.retryable = retryable;
  }
}

export type CallToolOptions = {
  session: McpSession;
  limits: McpLimits;
  signal: AbortSignal;
  /** Progress counts as a sign of life. */
  onprogress: (progress: Progress) => void;
};

/**
 * Runs a tool on the server as it is now: one that died in an earlier call of the turn is started again. Throws ToolUnanswered, or what the SDK throws when `signal` aborts. A server that may be
 * dead is checked, so that the next call gets a new one.
 */
export async function callTool({ tool, args }: ToolCall, options: CallToolOptions): Promise<CallToolResult> {
  const { session, limits, signal, onprogress } = options;
  const connection = await session.connect().catch(() => undefined);
  if (connection === undefined) throw new ToolUnanswered(UNREACHABLE, true);
  const { client } = connection;
  // The SDK never lets go of a signal: every call of a turn would keep a listener on the turn's, and a turn that is cancelled would cancel calls that have ended.
  const stop = new AbortController();
  const abort = () => stop.abort(signal.reason);
  signal.addEventListener('abort', abort, { once: true });
  if (signal.aborted) abort();
  try {
    const request = {
      signal: stop.signal,
      onprogress,
      timeout: limits.silenceMsMax,
      resetTimeoutOnProgress: true,
      maxTotalTimeout: limits.totalMsMax,
    };
    return (await client.callTool({ name: tool, arguments: args }, undefined, request)) as CallToolResult;
  } catch (error) {
    if (signal.aborted) throw error;
    if (isTimeout(error) || isUnreachable(error)) void session.check(client);
    throw unansweredBy(tool, error);
  } finally {
    signal.removeEventListener('abort', abort);
  }
}

const isTimeout = (error: unknown) => error instanceof McpError && error.code === ErrorCode.RequestTimeout;
/** `fetch` rejects with a TypeError when there is no connection. */
const isUnreachable = (error: unknown) => error instanceof StreamableHTTPError || error instanceof TypeError;

/** A call that timed out may have had its effect, so it is not repeated. */
function unansweredBy(tool: string, error: unknown): ToolUnanswered {
  if (isTimeout(error)) return new ToolUnanswered(`tool ${tool} timed out`, false);
  if (isUnreachable(error)) return new ToolUnanswered(UNREACHABLE, true);
  if (!(error instanceof McpError)) return new ToolUnanswered(`the MCP server's answer to ${tool} cannot be used`, false);
  if (error.code === ErrorCode.ConnectionClosed) return new ToolUnanswered(`the MCP server went away during ${tool}`, true);
  return new ToolUnanswered(`the MCP server answered ${tool} with error ${error.code}`, false);
}

export const UNREACHABLE = 'the MCP server cannot be reached';
