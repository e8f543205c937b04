import {
  A2AError,
  type A2AErrorCode,
  DIALECTS,
  type Dialect,
  isAmbiguous,
  namedDialect,
  operationOf,
  parseRequest,
  type RpcId,
  rpcFailure,
  rpcSuccessAround,
  SSE_CONTENT_TYPE,
  sseFrame,
  unversionedDialect,
  VERSION_HEADER,
  VERSION_QUERY,
} from '@hopline/a2a';
import { type A2AServer, type OperationAnswer, report, runOperation } from '@hopline/a2a-server';
import { isTaskId } from '@hopline/events';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { setErrorHeaders } from './error-headers.ts';
import { operationRequest } from './operation-request.ts';
import { acceptsOnlyEvents, headerOf, jsonOfAnyDepth, namedVersion, queryOf } from './request-values.ts';
import type { Framing } from './sse-sink.ts';

const BINDING = 'jsonrpc' as const;
const ALL = Object.values(DIALECTS);

/** POST `/` and POST `/a2a`: one JSON-RPC request, answered with JSON or an event stream. Never throws. */
export async function answerJsonRpc(
  server: A2AServer,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<FastifyReply | undefined> {
  let dialect = dialectOfErrors(request);
  let id: RpcId = null;
  let taskId: string | undefined;
  try {
    const parsed = parseRequest(jsonOfAnyDepth(request.body));
    id = 'request' in parsed ? parsed.request.id : parsed.id;
    const named = namedDialect(headerOf(request, VERSION_HEADER), queryOf(request, VERSION_QUERY));
    dialect = DIALECTS[named ?? '0.3'];
    if ('error' in parsed) throw parsed.error;
    const { method, params } = parsed.request;
    if (named === undefined) dialect = unversionedDialect(method);
    const operation = operationOf(dialect, method, ALL);
    taskId = taskIdOf(params);
    const ambiguous = named === undefined && isAmbiguous(method);
    const encode = (answer: OperationAnswer) => encodedAnswer(id, answer);
    const understood = { binding: BINDING, dialect, ambiguous, params, encode, framing: rpcFraming(id, taskId) };
    const answer = await runOperation(server, operation, operationRequest(server, request, reply, understood));
    return answer === 'streamed' ? undefined : reply.type('application/json; charset=utf-8').send(answer);
  } catch (thrown) {
    const error = A2AError.from(thrown);
    report(server, error, { binding: BINDING, headers: request.headers });
    return reply.sent ? undefined : sendError(reply, id, error, dialect, { taskId });
  }
}

/** The dialect of an error that occurs before the method is known: 0.3 without a version, 1.0 for an unsupported one. */
export function dialectOfErrors(request: FastifyRequest): Dialect {
  const version = namedVersion(request) ?? '0.3';
  return DIALECTS[version === 'unknown' ? '1.0' : version];
}

/** Each frame repeats the id of its request. */
function rpcFraming(id: RpcId, taskId: string | undefined): Framing {
  return { ...rpcSuccessAround(id), failure: (error, dialect) => rpcFailure(id, error, dialect, taskId) };
}

/** The task id of a request, for the data of an error. */
function taskIdOf(params: unknown): string | undefined {
  const id = (params as { id?: unknown } | null)?.id;
  return typeof id === 'string' && isTaskId(id) ? id : undefined;
}

function encodedAnswer(id: RpcId, answer: OperationAnswer): Buffer {
  const { before, after } = rpcSuccessAround(id);
  return Buffer.from(`${before}${JSON.stringify(answer)}${after}`);
}

/** Errors that concern the connection or the caller, not the request. */
const OWN_STATUS: readonly A2AErrorCode[] = [
  'UNAUTHENTICATED',
  'PERMISSION_DENIED',
  'REQUEST_TOO_LARGE',
  'QUOTA_EXCEEDED',
  'UNAVAILABLE',
];

/**
 * JSON-RPC reports errors in the body with HTTP 200, except those that concern the connection or the caller. Before 1.0, a client that
 * accepts only event streams gets the error as the single event of a stream, as [A2A 0.3] 7 specifies for streaming methods: the Java SDK
 * treats JSON here as a stream without events and reports nothing, the Python SDK reports a protocol error. A client of 1.0 gets JSON: the
 * conformance kit requires it (STREAM-SUB-003), and `@a2a-js/sdk` raises its own error class only then.
 */
export function sendError(
  reply: FastifyReply,
  id: RpcId,
  error: A2AError,
  dialect: Dialect,
  known: { status?: number; taskId?: string | undefined } = {},
): FastifyReply {
  const status = known.status ?? (OWN_STATUS.includes(error.code) ? error.row.http : 200);
  const failure = rpcFailure(id, error, dialect.name, known.taskId);
  setErrorHeaders(reply, error);
  if (status !== 200 || dialect.name === '1.0' || !acceptsOnlyEvents(reply.request)) return reply.code(status).send(failure);
  const event = sseFrame({ data: JSON.stringify(failure) });
  return reply.type(`${SSE_CONTENT_TYPE}; charset=utf-8`).header('cache-control', 'no-cache, no-transform').send(event);
}
