import type { Turn } from '@hopline/agent';
import { StreamableHTTPError } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { type CallToolResult, ErrorCode, McpError, type Progress, type RequestId } from '@modelcontextprotocol/sdk/types.js';
import type { McpLimits } from './limits.ts';
import type { McpSession } from './mcp-session.ts';
import { type RemoteCall, withRequestId } from './remote-call.ts';
import type { WrittenCall } from './tool-calls.ts';
import { withTraceHeaders } from './trace-headers.ts';

/** A call without a result. The message names the tool and the error code, never text of the server, which may be content. */
export class ToolCallFault extends Error {
  override readonly name = 'ToolCallFault';
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
  /** Trace context of the call, for the server. */
  trace: Turn['trace'];
  /** Progress restarts the silence limit. */
  onprogress: (progress: Progress) => void;
  /** Reports the call, as `Turn.remoteRunBegan` describes. */
  began?: Turn['remoteRunBegan'];
};

/**
 * Calls a tool. A server that died in an earlier call of the turn is started again; a server that may be dead is pinged, so that the next
 * call gets a new one if it does not answer. Throws ToolCallFault, or the SDK's error when `signal` aborts.
 */
export async function callTool({ tool, args }: WrittenCall, options: CallToolOptions): Promise<CallToolResult> {
  const { session, limits, signal, onprogress, trace, began } = options;
  const connection = await session.connect().catch(() => undefined);
  if (connection === undefined) throw new ToolCallFault(MCP_UNREACHABLE, true);
  const { client } = connection;
  let call: RemoteCall | undefined;
  const onSent = (request: RequestId) => {
    call = connection.callOf(request);
    if (call !== undefined) began?.(call);
  };
  // The SDK never removes its listener from a signal: with the signal of the turn, a cancellation would also cancel calls that have ended.
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
    // The trace context is in `_meta`, as MCP specifies (SEP-414), and in the HTTP headers for proxies in between.
    const params = { name: tool, arguments: args, _meta: { ...trace } };
    return (await withRequestId(onSent, () =>
      withTraceHeaders(trace, () => client.callTool(params, undefined, request)),
    )) as CallToolResult;
  } catch (error) {
    if (signal.aborted) throw error;
    if (isTimeout(error) || isUnreachable(error)) void session.check(client);
    throw faultOf(tool, error);
  } finally {
    signal.removeEventListener('abort', abort);
    if (call !== undefined && !signal.aborted) session.callEnded(call);
  }
}

const isTimeout = (error: unknown) => error instanceof McpError && error.code === ErrorCode.RequestTimeout;
/** `fetch` rejects with a TypeError when there is no connection. */
const isUnreachable = (error: unknown) => error instanceof StreamableHTTPError || error instanceof TypeError;

/** A call that timed out is not retryable: it may have had its effect. */
function faultOf(tool: string, error: unknown): ToolCallFault {
  if (isTimeout(error)) return new ToolCallFault(`tool ${tool} timed out`, false);
  if (isUnreachable(error)) return new ToolCallFault(MCP_UNREACHABLE, true);
  if (!(error instanceof McpError)) return new ToolCallFault(`the MCP server's response to ${tool} is malformed`, false);
  if (error.code === ErrorCode.ConnectionClosed)
    return new ToolCallFault(`the MCP server closed the connection during ${tool}`, true);
  return new ToolCallFault(`the MCP server answered ${tool} with error ${error.code}`, false);
}

export const MCP_UNREACHABLE = 'the MCP server cannot be reached';
