import { isUtf8 } from 'node:buffer';
import {
  A2AError,
  DIALECTS,
  type Dialect,
  isAmbiguous,
  type JsonObject,
  namedDialect,
  type Operation,
  operationOf,
  parseRequest,
  type RpcId,
  rpcFailure,
  rpcSuccessAround,
  unversionedDialect,
  VERSION_HEADER,
  VERSION_QUERY,
} from '@hopline/a2a';
import { isTaskId } from '@hopline/events';
import { A2A_METHOD, type A2aMethod, ATTR, type Hop, startHop, type TraceCarrier } from '@hopline/telemetry';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Answer, Ask, Door, Operate } from './door.ts';
import { messageSend } from './operations/message-send.ts';
import { messageStream } from './operations/message-stream.ts';
import { tasksCancel } from './operations/tasks-cancel.ts';
import { tasksGet } from './operations/tasks-get.ts';
import { tasksSubscribe } from './operations/tasks-subscribe.ts';

const OPERATE: Readonly<Record<Operation, Operate>> = {
  send: messageSend,
  stream: messageStream,
  get: tasksGet,
  cancel: tasksCancel,
  subscribe: tasksSubscribe,
};

const SPAN_OF: Readonly<Record<Operation, A2aMethod>> = {
  send: A2A_METHOD.sendMessage,
  stream: A2A_METHOD.sendStreamingMessage,
  get: A2A_METHOD.getTask,
  cancel: A2A_METHOD.cancelTask,
  subscribe: A2A_METHOD.subscribeToTask,
};

/** Seconds after which a refused client may come back. */
const RETRY_AFTER_S = 1;

const ALL = Object.values(DIALECTS);

/** POST `/` and POST `/a2a` (C-27). One JSON-RPC request in, one JSON answer or one event stream out. Never throws. */
export async function answerJsonRpc(door: Door, request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply | undefined> {
  let dialect = DIALECTS['1.0'];
  let id: RpcId = null;
  let taskId: string | undefined;
  try {
    const parsed = parseRequest(jsonOf(request.body));
    id = 'request' in parsed ? parsed.request.id : parsed.id;
    const named = namedDialect(headerOf(request, VERSION_HEADER), queryOf(request, VERSION_QUERY));
    dialect = DIALECTS[named ?? '0.3'];
    if ('error' in parsed) throw parsed.error;
    const { method, params } = parsed.request;
    if (named === undefined) dialect = unversionedDialect(method);
    const operation = operationOf(dialect, method, ALL);
    taskId = taskIdOf(params);
    const ambiguous = named === undefined && isAmbiguous(method);
    const answer = await operate(door, operation, { dialect, ambiguous, id, params, request, reply });
    return answer === 'streamed' ? undefined : sendResult(reply, id, answer);
  } catch (thrown) {
    const error = A2AError.from(thrown);
    report(door, error);
    return reply.sent ? undefined : sendError(reply, id, error, dialect, { taskId });
  }
}

/** What a request calls its task, for the data of an error. */
function taskIdOf(params: unknown): string | undefined {
  const id = (params as { id?: unknown } | null)?.id;
  return typeof id === 'string' && isTaskId(id) ? id : undefined;
}

type Understood = Pick<Ask, 'dialect' | 'params' | 'reply'> & { ambiguous: boolean; id: RpcId; request: FastifyRequest };

async function operate(door: Door, operation: Operation, understood: Understood): Promise<Answer> {
  const { dialect, ambiguous, id, params, request, reply } = understood;
  const receivedAt = Date.now();
  const attributes = { [ATTR.a2aMethod]: SPAN_OF[operation], [ATTR.a2aVersion]: dialect.name, [ATTR.role]: door.role };
  const hop = startHop(SPAN_OF[operation], { kind: 'server', parent: traceOf(request), attributes });
  const gone = new AbortController();
  const { raw } = reply;
  raw.once('close', () => {
    gone.abort();
    hop.end();
  });
  const leaving = AbortSignal.any([gone.signal, door.streams.draining]);
  const cursor = headerOf(request, 'last-event-id') ?? queryOf(request, 'cursor');
  const ask = { dialect, ambiguous, rpcId: id, params, cursor, hop, reply, receivedAt, leaving };
  try {
    return await hop.run(() => OPERATE[operation](door, ask));
  } catch (thrown) {
    endFailed(hop, A2AError.from(thrown));
    throw thrown;
  }
}

/** A client's mistake is no error of this span; a fault of ours is (OTel semantic conventions: SERVER spans). */
function endFailed(hop: Hop, error: A2AError): void {
  hop.set({ [ATTR.outcome]: error.code });
  if (error.row.http >= 500) hop.fail(error.code);
}

function report(door: Door, error: A2AError): void {
  if (error.code === 'INTERNAL_ERROR') door.logger.error({ code: error.code, err: error.cause }, 'request failed');
  else if (error.code === 'UNAVAILABLE') door.logger.warn({ code: error.code, err: error.cause }, 'request refused');
}

/** Bytes that are not UTF-8 would be replaced in silence, and the text would not be the client's any more. */
function jsonOf(body: unknown): unknown {
  if (!Buffer.isBuffer(body)) throw new A2AError('PARSE_ERROR', { detail: 'the body is empty' });
  if (!isUtf8(body)) throw new A2AError('PARSE_ERROR', { detail: 'the body is not UTF-8' });
  try {
    return JSON.parse(body.toString('utf8')) as unknown;
  } catch (cause) {
    throw new A2AError('PARSE_ERROR', { cause });
  }
}

function headerOf(request: FastifyRequest, name: string): string | undefined {
  const value = request.headers[name];
  return Array.isArray(value) ? value[0] : value;
}

function queryOf(request: FastifyRequest, name: string): string | undefined {
  const value = (request.query as Record<string, unknown>)[name];
  return typeof value === 'string' ? value : undefined;
}

function traceOf(request: FastifyRequest): TraceCarrier {
  const traceparent = headerOf(request, 'traceparent');
  const tracestate = headerOf(request, 'tracestate');
  return { ...(traceparent !== undefined && { traceparent }), ...(tracestate !== undefined && { tracestate }) };
}

function sendResult(reply: FastifyReply, id: RpcId, result: JsonObject): FastifyReply {
  const { before, after } = rpcSuccessAround(id);
  return reply.type('application/json; charset=utf-8').send(`${before}${JSON.stringify(result)}${after}`);
}

/** JSON-RPC says what went wrong in the body, and HTTP 200; only what concerns the connection has a status of its own. */
export function sendError(
  reply: FastifyReply,
  id: RpcId,
  error: A2AError,
  dialect: Dialect,
  known: { status?: number; taskId?: string | undefined } = {},
): FastifyReply {
  const { http } = error.row;
  if (error.code === 'UNAVAILABLE') reply.header('retry-after', RETRY_AFTER_S);
  const own = error.code === 'UNAVAILABLE' || error.code === 'REQUEST_TOO_LARGE';
  return reply.code(known.status ?? (own ? http : 200)).send(rpcFailure(id, error, dialect.name, known.taskId));
}
