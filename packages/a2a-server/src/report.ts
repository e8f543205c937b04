import type { A2AError, Operation } from '@hopline/a2a';
import { isTaskId, type Owner } from '@hopline/events';
import {
  A2A_METHOD,
  type A2aMethod,
  ATTR,
  type Binding,
  errorWord,
  type Hop,
  type HoplineMethod,
  LINE,
  ownerFields,
  startHop,
  type TraceCarrier,
} from '@hopline/telemetry';
import type { A2AServer } from './a2a-server.ts';
import { firstOf, type RequestHeaders } from './authenticate.ts';

type FailedRequest = {
  method: A2aMethod | HoplineMethod;
  hop: Hop;
  /** The task that the request named, or would have created. */
  taskId: string | undefined;
  /** Absent before it was authenticated. */
  caller?: Owner | undefined;
};

/** Errors that are already in the metrics and have a span, and the request that failed with each. */
const recorded = new WeakMap<A2AError, FailedRequest>();

type Failure = FailedRequest & {
  /** How metrics count the request among those of A2A; absent for a request outside A2A. */
  counted?: { binding: Binding; operation: Operation | 'unknown' };
  isGone: boolean;
};

/** Counts a failed request and ends its span. `report` logs it. */
export function recordFailure(server: A2AServer, error: A2AError, { counted, isGone, ...request }: Failure): void {
  const { hop } = request;
  recorded.set(error, request);
  const outcome = isGone ? 'client_gone' : error.row.http >= 500 ? 'server_error' : 'client_error';
  if (counted !== undefined) server.metrics?.requests.add(1, { ...counted, outcome });
  if (!isGone) server.metrics?.requestErrors.add(1, { reason: error.code });
  hop.set({ [ATTR.outcome]: isGone ? outcome : error.code });
  // Only 5xx errors mark the span as failed (OpenTelemetry semantic conventions for SERVER spans).
  if (outcome === 'server_error') hop.fail(error.code === 'INTERNAL_ERROR' ? errorWord(error.cause) : error.code);
  else {
    if (!isGone) hop.set({ [ATTR.errorType]: error.code });
    hop.end();
  }
}

/** A request outside A2A: its method exists in no version of A2A. */
export type RequestOutsideA2A = { method: HoplineMethod; taskId?: string };

/** A request without a span: an A2A request refused before its operation was known, or one outside A2A. */
type UnrecordedRequest = { headers: RequestHeaders } & ({ binding: Binding } | RequestOutsideA2A);

/**
 * Logs server faults with the trace, the task and the method of the request; a client's mistakes are not logged. An unrecorded request gets
 * a span and is counted.
 */
export function report(server: A2AServer, error: A2AError, request?: UnrecordedRequest): void {
  if (request !== undefined && !recorded.has(error)) recordUnrecorded(server, error, request);
  const { hop, method, taskId, caller } = recorded.get(error) ?? {};
  const fields = { code: error.code, method, task_id: taskId, ...ownerFields(caller), err: error.cause };
  const log = () => {
    if (error.code === 'INTERNAL_ERROR') server.logger.error(fields, LINE.requestFailed);
    else if (error.code === 'UNAVAILABLE') server.logger.warn(fields, LINE.requestRefused);
  };
  if (hop === undefined) log();
  else hop.run(log);
}

function recordUnrecorded(server: A2AServer, error: A2AError, request: UnrecordedRequest): void {
  const parent = traceCarrierOf(request.headers);
  const role = { [ATTR.role]: server.role };
  if ('binding' in request) {
    const method = A2A_METHOD.unknown;
    const attributes = { [ATTR.a2aMethod]: method, [ATTR.binding]: request.binding, ...role };
    const hop = startHop(method, { kind: 'server', parent, attributes });
    const counted = { binding: request.binding, operation: 'unknown' } as const;
    recordFailure(server, error, { method, hop, taskId: error.taskId, counted, isGone: false });
    return;
  }
  const { method } = request;
  // Text that cannot be a task id is left out.
  const taskId = request.taskId !== undefined && isTaskId(request.taskId) ? request.taskId : undefined;
  const hop = startHop(method, { kind: 'server', parent, attributes: { [ATTR.a2aTask]: taskId, ...role } });
  recordFailure(server, error, { method, hop, taskId, isGone: false });
}

/** The caller's trace context. */
export function traceCarrierOf(headers: RequestHeaders): TraceCarrier {
  const traceparent = firstOf(headers, 'traceparent');
  const tracestate = firstOf(headers, 'tracestate');
  return { ...(traceparent !== undefined && { traceparent }), ...(tracestate !== undefined && { tracestate }) };
}
