import { A2AError, invalidMember, type Operation } from '@hopline/a2a';
import type { Owner } from '@hopline/events';
import { A2A_METHOD, type A2aMethod, ATTR, fromCaller, ownerAttributes, SPAN, startHop } from '@hopline/telemetry';
import type { A2AServer, OperationContext, OperationHandler, ServerRequest } from './a2a-server.ts';
import { firstOf } from './authenticate.ts';
import { assertOffered, requestedExtensions } from './capabilities.ts';
import { extendedCard } from './operations/extended-card.ts';
import { messageSend } from './operations/message-send.ts';
import { messageStream } from './operations/message-stream.ts';
import { pushCreate, pushDelete, pushGet, pushList } from './operations/push-configs.ts';
import { tasksCancel } from './operations/tasks-cancel.ts';
import { tasksGet } from './operations/tasks-get.ts';
import { tasksList } from './operations/tasks-list.ts';
import { tasksSubscribe } from './operations/tasks-subscribe.ts';
import { recordFailure, traceCarrierOf } from './report.ts';

/** Default Retry-After of UNAVAILABLE, and of QUOTA_EXCEEDED if the time until the limit allows a retry is unknown. */
const RETRY_AFTER_MS = 1_000;

/** Retry-After of a failed request in milliseconds. Undefined if the error does not ask for a retry. */
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

/** Operations that a caller beyond its budget of sent bytes may begin: streams are paced, and a cancel is never refused. */
const BEYOND_SENT_BUDGET: ReadonlySet<Operation> = new Set(['stream', 'subscribe', 'cancel']);
/** Operations without effects. They can still be refused when their answer is known. */
const READS: ReadonlySet<Operation> = new Set(['get', 'list']);

/**
 * Runs an operation in its own span, for any binding, and counts it. Resolves with the bytes of the response, or with `streamed` when
 * it became a stream of events. Rejects with an A2AError.
 */
export async function runOperation(
  server: A2AServer,
  operation: Operation,
  request: ServerRequest,
): Promise<Buffer | 'streamed'> {
  const { binding, dialect, bytes, headers } = request;
  const receivedAt = Date.now();
  const startedMs = performance.now();
  const attributes = {
    [ATTR.a2aMethod]: SPAN_OF[operation],
    [ATTR.a2aVersion]: dialect.name,
    [ATTR.binding]: binding,
    [ATTR.role]: server.role,
  };
  const hop = startHop(SPAN_OF[operation], { kind: 'server', ...fromCaller(traceCarrierOf(headers)), attributes });
  const { traceparent } = hop.carrier();
  if (traceparent !== undefined) request.nameTrace?.(traceparent);
  let context: OperationContext | undefined;
  let caller: Owner | undefined;
  try {
    caller = await server.authenticate({ headers, tenant: tenantOf(request) });
    hop.set(ownerAttributes(caller));
    server.metrics?.tenantRequests.add(1, server.metrics.parties.of(caller));
    server.quotas.takeBytes(caller, bytes, operation === 'cancel');
    assertOffered(server, operation);
    if (!BEYOND_SENT_BUDGET.has(operation)) server.quotas.requireSentRoom(caller);
    const { openSink } = server.intercept === undefined ? request : await server.intercept(request);
    const extensions = requestedExtensions(server, dialect.name, headers);
    if (extensions.length > 0) request.nameExtensions?.(extensions);
    const accepted = contextOf(server, request, { openSink, extensions, caller, hop, receivedAt });
    context = accepted;
    const result = await hop.run(() => HANDLERS[operation](server, accepted));
    // Concurrent reads may have used up the budget since this one checked it.
    if (READS.has(operation)) server.quotas.requireSentRoom(caller);
    const answer = result === 'streamed' ? result : request.encode(result);
    if (answer !== 'streamed') server.quotas.countSent(caller, answer.length);
    const outcome = request.isClientGone() ? 'client_gone' : 'ok';
    // A stream continues in its own span. This span is exported now, so that it survives the process.
    if (result === 'streamed') hop.taken({ name: SPAN.deliverEvents, kind: 'internal' });
    else {
      hop.set({ [ATTR.outcome]: outcome });
      hop.end();
    }
    server.metrics?.requests.add(1, { binding, operation, outcome });
    return answer;
  } catch (thrown) {
    const error = A2AError.from(thrown);
    const isGone = error.code === 'UNAVAILABLE' && request.isClientGone();
    const taskId = error.taskId ?? context?.taskId;
    recordFailure(server, error, { method: SPAN_OF[operation], hop, taskId, caller, counted: { binding, operation }, isGone });
    throw error;
  } finally {
    server.metrics?.requestDuration.recordMs(performance.now() - startedMs, { binding, operation }, hop.carrier());
  }
}

type Accepted = Pick<OperationContext, 'openSink' | 'extensions' | 'caller' | 'hop' | 'receivedAt'>;

function contextOf(server: A2AServer, request: ServerRequest, accepted: Accepted): OperationContext {
  const { dialect, ambiguous = false, params, headers, reconnects = false } = request;
  const cursor = firstOf(headers, 'last-event-id') ?? request.cursor;
  let signal: AbortSignal | undefined;
  return {
    dialect,
    ambiguous,
    params,
    cursor,
    reconnects,
    ...accepted,
    get signal() {
      signal ??= AbortSignal.any([request.closed, server.streams.draining]);
      return signal;
    },
  };
}

/**
 * Only 1.0 has tenants; an empty string and null mean no tenant. Throws INVALID_PARAMS for other types, because ignoring them would run the
 * request outside of its tenant.
 */
function tenantOf({ dialect, params }: ServerRequest): string | undefined {
  const { tenant = null } = (params ?? {}) as { tenant?: unknown };
  if (dialect.name !== '1.0' || tenant === null || tenant === '') return undefined;
  if (typeof tenant !== 'string') throw invalidMember('tenant', 'must be a string');
  return tenant;
}
