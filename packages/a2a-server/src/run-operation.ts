import { A2AError, type Operation } from '@hopline/a2a';
import {
  A2A_METHOD,
  type A2aMethod,
  ATTR,
  type Binding,
  errorWord,
  type Hop,
  SPAN,
  startHop,
  type TraceCarrier,
} from '@hopline/telemetry';
import type { A2AServer, OperationHandler, OperationResult, ServerRequest } from './a2a-server.ts';
import { firstOf, type RequestHeaders } from './authenticate.ts';
import { assertOffered, requestedExtensions } from './capabilities.ts';
import { extendedCard } from './operations/extended-card.ts';
import { messageSend } from './operations/message-send.ts';
import { messageStream } from './operations/message-stream.ts';
import { pushCreate, pushDelete, pushGet, pushList } from './operations/push-configs.ts';
import { tasksCancel } from './operations/tasks-cancel.ts';
import { tasksGet } from './operations/tasks-get.ts';
import { tasksList } from './operations/tasks-list.ts';
import { tasksSubscribe } from './operations/tasks-subscribe.ts';

/** Time after which a client with UNAVAILABLE should retry, and with QUOTA_EXCEEDED where nothing better is known; milliseconds. */
const RETRY_AFTER_MS = 1_000;

/** When the client of a failed request should retry; milliseconds. Undefined where the error does not ask for it. */
export function retryAfterMs({ code, retryAfterMs }: A2AError): number | undefined {
  return code === 'UNAVAILABLE' || code === 'QUOTA_EXCEEDED' ? (retryAfterMs ?? RETRY_AFTER_MS) : undefined;
}

const HANDLERS: Readonly<Record<Operation, OperationHandler>> = {
  send: messageSend,
  stream: messageStream,
  get: tasksGet,
  list: tasksList,
  cancel: tasksCancel,
  subscribe: tasksSubscribe,
  createPush: pushCreate,
  getPush: pushGet,
  listPush: pushList,
  deletePush: pushDelete,
  extendedCard,
};

const SPAN_OF: Readonly<Record<Operation, A2aMethod>> = {
  send: A2A_METHOD.sendMessage,
  stream: A2A_METHOD.sendStreamingMessage,
  get: A2A_METHOD.getTask,
  list: A2A_METHOD.listTasks,
  cancel: A2A_METHOD.cancelTask,
  subscribe: A2A_METHOD.subscribeToTask,
  createPush: A2A_METHOD.createPushConfig,
  getPush: A2A_METHOD.getPushConfig,
  listPush: A2A_METHOD.listPushConfigs,
  deletePush: A2A_METHOD.deletePushConfig,
  extendedCard: A2A_METHOD.getExtendedCard,
};

/** Runs an operation in its own span, for any binding, and counts it. Rejects with an A2AError. */
export async function runOperation(server: A2AServer, operation: Operation, request: ServerRequest): Promise<OperationResult> {
  const { binding, dialect, ambiguous = false, params, bytes, headers } = request;
  const receivedAt = Date.now();
  const startedMs = performance.now();
  const attributes = {
    [ATTR.a2aMethod]: SPAN_OF[operation],
    [ATTR.a2aVersion]: dialect.name,
    [ATTR.binding]: binding,
    [ATTR.role]: server.role,
  };
  const hop = startHop(SPAN_OF[operation], { kind: 'server', parent: traceCarrierOf(headers), attributes });
  const cursor = firstOf(headers, 'last-event-id') ?? request.cursor;
  try {
    const caller = await server.authenticate({ headers, tenant: tenantOf(request) });
    server.quotas.takeBytes(caller, bytes, operation === 'cancel');
    assertOffered(server, operation);
    const { openSink } = server.intercept === undefined ? request : await server.intercept(request);
    const extensions = requestedExtensions(server, dialect.name, headers);
    if (extensions.length > 0) request.nameExtensions?.(extensions);
    let signal: AbortSignal | undefined;
    const context = {
      dialect,
      ambiguous,
      params,
      cursor,
      openSink,
      extensions,
      caller,
      hop,
      receivedAt,
      get signal() {
        signal ??= AbortSignal.any([request.closed, server.streams.draining]);
        return signal;
      },
    };
    const result = await hop.run(() => HANDLERS[operation](server, context));
    const outcome = request.isClientGone() ? 'client_gone' : 'ok';
    // A stream goes on in a span of its own: this one is exported now, so that it survives the process.
    if (result === 'streamed') hop.taken({ name: SPAN.deliverEvents, kind: 'internal' });
    else {
      hop.set({ [ATTR.outcome]: outcome });
      hop.end();
    }
    server.metrics?.requests.add(1, { binding, operation, outcome });
    return result;
  } catch (thrown) {
    const error = A2AError.from(thrown);
    const isGone = error.code === 'UNAVAILABLE' && request.isClientGone();
    recordError(server, { binding, operation, hop, error, isGone });
    throw error;
  } finally {
    server.metrics?.requestDuration.recordMs(performance.now() - startedMs, { binding, operation });
  }
}

/** Errors that are in the metrics and have a span. */
const recorded = new WeakSet<A2AError>();

type FailedRequest = { binding: Binding; operation: Operation | 'unknown'; hop: Hop; error: A2AError; isGone: boolean };

function recordError(server: A2AServer, { binding, operation, hop, error, isGone }: FailedRequest): void {
  recorded.add(error);
  const outcome = isGone ? 'client_gone' : error.row.http >= 500 ? 'server_error' : 'client_error';
  server.metrics?.requests.add(1, { binding, operation, outcome });
  if (!isGone) server.metrics?.requestErrors.add(1, { reason: error.code });
  hop.set({ [ATTR.outcome]: isGone ? outcome : error.code });
  // Only 5xx errors mark the span as failed (OpenTelemetry semantic conventions for SERVER spans).
  if (outcome === 'server_error') hop.fail(error.code === 'INTERNAL_ERROR' ? errorWord(error.cause) : error.code);
  else {
    if (!isGone) hop.set({ [ATTR.errorType]: error.code });
    hop.end();
  }
}

/**
 * Only 1.0 has tenants; an empty one and null mean none. Throws INVALID_PARAMS for other types: ignoring them would run the
 * request outside its tenant.
 */
function tenantOf({ dialect, params }: ServerRequest): string | undefined {
  const { tenant = null } = (params ?? {}) as { tenant?: unknown };
  if (dialect.name !== '1.0' || tenant === null || tenant === '') return undefined;
  if (typeof tenant !== 'string') throw new A2AError('INVALID_PARAMS', { detail: 'params.tenant must be a string' });
  return tenant;
}

/** The caller's trace context. */
function traceCarrierOf(headers: RequestHeaders): TraceCarrier {
  const traceparent = firstOf(headers, 'traceparent');
  const tracestate = firstOf(headers, 'tracestate');
  return { ...(traceparent !== undefined && { traceparent }), ...(tracestate !== undefined && { tracestate }) };
}

/**
 * Logs server faults. A client's mistakes are not logged. A request of A2A that was refused before its operation was known gets a span, and
 * is counted as `unknown`.
 */
export function report(server: A2AServer, error: A2AError, request?: { binding: Binding; headers: RequestHeaders }): void {
  if (request !== undefined && !recorded.has(error)) {
    const { binding, headers } = request;
    const attributes = { [ATTR.a2aMethod]: A2A_METHOD.unknown, [ATTR.binding]: binding, [ATTR.role]: server.role };
    const hop = startHop(A2A_METHOD.unknown, { kind: 'server', parent: traceCarrierOf(headers), attributes });
    recordError(server, { binding, operation: 'unknown', hop, error, isGone: false });
  }
  if (error.code === 'INTERNAL_ERROR') server.logger.error({ code: error.code, err: error.cause }, 'request failed');
  else if (error.code === 'UNAVAILABLE') server.logger.warn({ code: error.code, err: error.cause }, 'request refused');
}
