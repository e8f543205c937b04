import { A2AError, type Operation } from '@hopline/a2a';
import { A2A_METHOD, type A2aMethod, ATTR, type Hop, startHop } from '@hopline/telemetry';
import type { FastifyRequest } from 'fastify';
import type { Answer, Ask, Door, Operate } from './door.ts';
import { messageSend } from './operations/message-send.ts';
import { messageStream } from './operations/message-stream.ts';
import { tasksCancel } from './operations/tasks-cancel.ts';
import { tasksGet } from './operations/tasks-get.ts';
import { tasksList } from './operations/tasks-list.ts';
import { tasksSubscribe } from './operations/tasks-subscribe.ts';
import { headerOf, queryOf, traceOf } from './read-request.ts';

/** Seconds after which a refused client may come back. */
export const RETRY_AFTER_S = 1;

const OPERATE: Readonly<Record<Operation, Operate>> = {
  send: messageSend,
  stream: messageStream,
  get: tasksGet,
  list: tasksList,
  cancel: tasksCancel,
  subscribe: tasksSubscribe,
};

const SPAN_OF: Readonly<Record<Operation, A2aMethod>> = {
  send: A2A_METHOD.sendMessage,
  stream: A2A_METHOD.sendStreamingMessage,
  get: A2A_METHOD.getTask,
  list: A2A_METHOD.listTasks,
  cancel: A2A_METHOD.cancelTask,
  subscribe: A2A_METHOD.subscribeToTask,
};

/** A request as its binding understood it. */
export type Understood = Pick<Ask, 'dialect' | 'ambiguous' | 'framing' | 'params' | 'reply'> & { request: FastifyRequest };

/** Runs an operation in a span of its own, whatever the binding. Throws what the operation throws. */
export async function operate(door: Door, operation: Operation, understood: Understood): Promise<Answer> {
  const { dialect, ambiguous = false, framing, params, request, reply } = understood;
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
  const ask = { dialect, ambiguous, framing, params, cursor, hop, reply, receivedAt, leaving };
  try {
    refuseTenant(ask);
    return await hop.run(() => OPERATE[operation](door, ask));
  } catch (thrown) {
    endFailed(hop, A2AError.from(thrown));
    throw thrown;
  }
}

/**
 * This door has no tenants, its card names none, and a client sends the tenant that the card names ([A2A 1.0] 8.3.2). Another tenant's tasks are not to be seen,
 * and "not yours" looks like "not found": so everything under a tenant is not found, in every binding.
 */
function refuseTenant({ dialect, params }: Ask): void {
  const { tenant } = (params ?? {}) as { tenant?: unknown };
  const named = dialect.name === '1.0' && tenant !== undefined && tenant !== null && tenant !== '';
  if (named) throw new A2AError('TASK_NOT_FOUND', { detail: 'there is no such tenant here' });
}

/** A client's mistake is no error of this span; a fault of ours is (OTel semantic conventions: SERVER spans). */
function endFailed(hop: Hop, error: A2AError): void {
  hop.set({ [ATTR.outcome]: error.code });
  if (error.row.http >= 500) hop.fail(error.code);
}

/** Faults of ours go to the log; a client's mistake does not. */
export function report(door: Door, error: A2AError): void {
  if (error.code === 'INTERNAL_ERROR') door.logger.error({ code: error.code, err: error.cause }, 'request failed');
  else if (error.code === 'UNAVAILABLE') door.logger.warn({ code: error.code, err: error.cause }, 'request refused');
}
