import type { Turn } from '@hopline/agent';
import {
  type CallToolResult,
  type InputRequiredResult,
  isInputRequiredResult,
  type Progress,
  ProtocolError,
  ProtocolErrorCode,
  type RequestId,
  SdkError,
  SdkErrorCode,
  SdkHttpError,
  type Tool,
} from '@modelcontextprotocol/client';
import {
  Answers,
  type CallInput,
  type Elicitation,
  type GivenAnswer,
  type InputRound,
  questionKey,
  ToolAsked,
} from './elicitation.ts';
import { ASKED_MS_MAX, INPUT_ROUNDS_MAX, type McpLimits } from './limits.ts';
import type { McpConnection, McpSession } from './mcp-session.ts';
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
  /** The answers of the user to questions of earlier runs. Absent: a call that asks is a fault. */
  input?: CallInput;
};

/**
 * Calls a tool. A server that died in an earlier call of the turn is started again; a server that may be dead is pinged, so that the next
 * call gets a new one if it does not answer. Throws ToolCallFault, ToolAsked when the tool needs an answer of the user, or the SDK's error
 * when `signal` aborts.
 */
export async function callTool(call: WrittenCall, options: CallToolOptions): Promise<CallToolResult> {
  const { session, signal } = options;
  const connection = await session.connect().catch(() => undefined);
  if (connection === undefined) throw new ToolCallFault(MCP_UNREACHABLE, true);
  try {
    if (connection.client.getProtocolEra() === 'modern') return await callInRounds(call, connection, options);
    return await callWithQuestions(call, connection, options);
  } catch (error) {
    if (signal.aborted || error instanceof ToolAsked || error instanceof ToolCallFault) throw error;
    if (isTimeout(error) || isUnreachable(error)) void session.check(connection.client);
    throw faultOf(call.tool, error);
  }
}

/**
 * A call of a server before MCP 2026-07-28, whose questions are requests to the client. It gets the answers of earlier runs. A new question
 * is canceled and the result of the call is ignored, because the user may answer days later. The next run asks the same question again.
 */
async function callWithQuestions(
  call: WrittenCall,
  connection: McpConnection,
  options: CallToolOptions,
): Promise<CallToolResult> {
  const { input, signal } = options;
  const answers = new Answers(input?.answers ?? []);
  const stop = new AbortController();
  let asked: Elicitation | undefined;
  let fault: ToolCallFault | undefined;
  let timer: NodeJS.Timeout | undefined;
  const askable = {
    signal,
    answer: (elicitation: Elicitation) => {
      const answer = asked === undefined ? answers.take(elicitation) : undefined;
      if (answer !== undefined) return answer;
      asked ??= elicitation;
      timer ??= setTimeout(() => stop.abort(), ASKED_MS_MAX);
      return { action: 'cancel' as const };
    },
    unmatched: () => {
      fault = new ToolCallFault('the MCP server asked a question that could belong to any of several calls', true);
      stop.abort();
    },
  };
  const ended = await connection.calls
    .run(askable, () => request(call, {}, connection, { ...options, signal: AbortSignal.any([signal, stop.signal]) }))
    .then(
      result => ({ result }),
      (error: unknown) => ({ error }),
    );
  clearTimeout(timer);
  if (!signal.aborted && fault !== undefined) throw fault;
  if (!signal.aborted && asked !== undefined) throw new ToolAsked(asked, { answers: input?.answers ?? [] });
  if ('error' in ended) throw ended.error;
  return ended.result;
}

/**
 * A call of a server of MCP 2026-07-28: its result may be questions, and the next call has the answers. If the server refuses the state of
 * an earlier turn, for example because it signs state with a key of its process and has restarted, the call begins again with all answers.
 */
async function callInRounds(call: WrittenCall, connection: McpConnection, options: CallToolOptions): Promise<CallToolResult> {
  const { input = { answers: [] }, session } = options;
  let { round } = input;
  let answers = new Answers(input.answers);
  let earlier = input.earlier ?? [];
  for (let count = 0; count <= INPUT_ROUNDS_MAX; count += 1) {
    if (round !== undefined && !(session.offersQuestions && Object.values(round.requests).every(isFormQuestion)))
      throw new ToolCallFault(`tool ${call.tool} needs a capability that this agent does not offer, such as sampling`, false);
    const given: GivenAnswer[] = round === undefined ? [] : answersIn(round, answers, earlier);
    let result: CallToolResult | InputRequiredResult;
    try {
      result = await request(call, round === undefined ? {} : roundParams(round, given), connection, options);
    } catch (error) {
      const isStale = round !== undefined && round === input.round && isRefused(error);
      if (!isStale || options.signal.aborted) throw error;
      round = undefined;
      answers = new Answers([...earlier, ...given]);
      earlier = [];
      continue;
    }
    if (!isInputRequiredResult(result)) return result;
    earlier = [...earlier, ...given];
    const { inputRequests: requests = {}, requestState: state } = result;
    round = { requests, ...(state !== undefined && { state }) };
  }
  throw new ToolCallFault(`tool ${call.tool} needs more than ${INPUT_ROUNDS_MAX} rounds of input`, false);
}

type FormQuestion = { method: 'elicitation/create'; params: Elicitation };

function isFormQuestion(request: InputRound['requests'][string]): request is FormQuestion & typeof request {
  return request.method === 'elicitation/create' && request.params.mode !== 'url';
}

/** The answers to the questions of a round, in their order. Throws ToolAsked for the first question without one. */
function answersIn(round: InputRound, answers: Answers, earlier: readonly GivenAnswer[]): GivenAnswer[] {
  const given: GivenAnswer[] = [];
  for (const { params } of Object.values(round.requests) as FormQuestion[]) {
    const result = answers.take(params);
    if (result === undefined) throw new ToolAsked(params, { answers: given, earlier, round });
    given.push({ question: questionKey(params), result });
  }
  return given;
}

function roundParams({ requests, state }: InputRound, given: readonly GivenAnswer[]): object {
  const inputResponses = Object.fromEntries(Object.keys(requests).map((id, index) => [id, given[index]!.result]));
  return { inputResponses, ...(state !== undefined && { requestState: state }) };
}

const isRefused = (error: unknown) => error instanceof ProtocolError && error.code === ProtocolErrorCode.InvalidParams;

/** One request of the call. `more`: parameters of MCP 2026-07-28. */
async function request(
  { tool, args }: WrittenCall,
  more: object,
  { client, callOf, tools }: McpConnection,
  { session, limits, signal, onprogress, trace, began }: CallToolOptions,
): Promise<CallToolResult> {
  let call: RemoteCall | undefined;
  const onSent = (id: RequestId) => {
    call = callOf(id);
    if (call !== undefined) began?.(call);
  };
  const options = {
    signal,
    onprogress,
    timeout: limits.silenceMsMax,
    resetTimeoutOnProgress: true,
    maxTotalTimeout: limits.totalMsMax,
    ...(client.getProtocolEra() === 'modern' && manualInput(tools().find(({ name }) => name === tool))),
  };
  // The trace context is in `_meta`, as MCP specifies (SEP-414), and in the HTTP headers for proxies in between.
  const params = { name: tool, arguments: args, _meta: { ...trace }, ...more };
  try {
    return await withRequestId(onSent, () => withTraceHeaders(trace, () => client.callTool(params, options)));
  } finally {
    if (call !== undefined && !signal.aborted) session.callEnded(call);
  }
}

/** The SDK would compare `input_required` with the schema of the tool's output, and refuse it. */
function manualInput(tool: Tool | undefined) {
  if (tool === undefined) return { allowInputRequired: true };
  const { outputSchema: _, ...toolDefinition } = tool;
  return { allowInputRequired: true, toolDefinition };
}

const isTimeout = (error: unknown) => error instanceof SdkError && error.code === SdkErrorCode.RequestTimeout;
/** `fetch` rejects with a TypeError when there is no connection. */
const isUnreachable = (error: unknown) => error instanceof SdkHttpError || error instanceof TypeError;

const CLOSED: readonly SdkErrorCode[] = [SdkErrorCode.ConnectionClosed, SdkErrorCode.NotConnected];

/** A call that timed out is not retryable: it may have had its effect. */
function faultOf(tool: string, error: unknown): ToolCallFault {
  if (isTimeout(error)) return new ToolCallFault(`tool ${tool} timed out`, false);
  if (isUnreachable(error)) return new ToolCallFault(MCP_UNREACHABLE, true);
  if (error instanceof SdkError && CLOSED.includes(error.code))
    return new ToolCallFault(`the MCP server closed the connection during ${tool}`, true);
  if (!(error instanceof ProtocolError)) return new ToolCallFault(`the MCP server's response to ${tool} is malformed`, false);
  if (error.code === ProtocolErrorCode.UrlElicitationRequired)
    return new ToolCallFault(`tool ${tool} needs the user to open a page, which this agent does not offer`, false);
  if (error.code === ProtocolErrorCode.MissingRequiredClientCapability)
    return new ToolCallFault(`tool ${tool} needs a capability that this agent does not offer, such as sampling`, false);
  return new ToolCallFault(`the MCP server answered ${tool} with error ${error.code}`, false);
}

export const MCP_UNREACHABLE = 'the MCP server cannot be reached';
