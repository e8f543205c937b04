import type { Message } from '@hopline/a2a';
import type { TaskView } from '@hopline/task';
import type { A2AServer, OperationContext, OperationResult } from '../a2a-server.ts';
import { fromLog } from '../log-faults.ts';
import type { ResolvedMessage } from './resolve-message.ts';
import { resolveRequest } from './resolve-request.ts';
import { withHistory } from './history.ts';
import { acceptTurn, settleTurn } from './settle.ts';
import { beginTurn } from './turn.ts';

/**
 * SendMessage, message/send: the same flow as a stream (S1-1), answered once: when the turn is over, or at once when the client asked for that. With the task, or with the message of an
 * agent that made none (S1-11).
 */
export async function messageSend(server: A2AServer, context: OperationContext): Promise<OperationResult> {
  const request = context.dialect.decodeSend(context.params);
  const leave = server.streams.enter();
  try {
    const resolved = await resolveRequest(server, context, request);
    const turn = await beginTurn(server, context, resolved);
    try {
      const isToldLater = !request.blocking || (await expectsWebhook(server, context, resolved));
      const wait = isToldLater ? acceptTurn : settleTurn;
      const view = await wait(server, context, turn, resolved);
      const message = directAnswer(context, view);
      return context.dialect.encodeSendResult(message ? { message } : { task: withHistory(view.task, request.historyLength) });
    } finally {
      turn.lease.release();
    }
  } finally {
    leave();
  }
}

/** A client of April 2025 says by naming a webhook that it does not wait: its form has no flag for that (S3-33). */
async function expectsWebhook(server: A2AServer, { dialect }: OperationContext, { taskId }: ResolvedMessage): Promise<boolean> {
  if (!server.push || dialect.name !== 'legacy') return false;
  const webhooks = await server.log.pushConfigs.under(taskId).catch(thrown => {
    throw fromLog(thrown, taskId);
  });
  return webhooks.length > 0;
}

/** As the agent sent it, and without the id of a task that only we know of: [A2A 1.0] 4.1.4 wants one only where a task was made. The legacy form has nothing but tasks (S3-4). */
function directAnswer({ dialect }: OperationContext, { direct, task }: TaskView): Message | undefined {
  const { message } = task.status;
  if (!direct || message === undefined || dialect.name === 'legacy') return undefined;
  const { taskId: _ours, ...rest } = message;
  return rest;
}
