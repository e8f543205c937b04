import type { Message, SendRequest } from '@hopline/a2a';
import type { TaskView } from '@hopline/task';
import type { A2AServer, OperationContext, OperationResult } from '../a2a-server.ts';
import { fromLog } from '../log-faults.ts';
import type { ResolvedMessage } from './resolve-message.ts';
import { resolveRequest } from './resolve-request.ts';
import { nameState, shownTask } from './task-response.ts';
import { acceptTurn, beginTurn, completeTurn, startTurn } from './turn.ts';

/**
 * SendMessage, message/send: answers once, at the end of the turn or, if the client does not want to wait, as soon as the task works on the
 * message. The result is the task, or the message of an agent that created no task.
 */
export async function messageSend(server: A2AServer, context: OperationContext): Promise<OperationResult> {
  const request = context.dialect.decodeSend(context.params);
  server.quotas.takeMessage(context.caller);
  const releaseSlot = server.streams.acquire(context.caller, request.blocking ? 'stream' : 'request');
  try {
    const resolved = await resolveRequest(server, context, request);
    const turn = await beginTurn(server, context, resolved);
    try {
      const run = await runFor(server, context, request, resolved);
      const view = await run(server, context, turn, resolved);
      nameState(context, { contextId: view.task.contextId, state: view.task.status.state });
      const message = directMessage(context, view);
      if (message) return context.dialect.encodeSendResult({ message });
      // The message has been stored. A client that does not wait for the answer needs the task's state, even if its artifacts are too
      // large.
      const { task, generation } = view;
      const shown = request.blocking ? view : { task, generation };
      return context.dialect.encodeSendResult({ task: await shownTask(server, context, shown, request) });
    } finally {
      turn.lease.release();
    }
  } finally {
    releaseSlot();
  }
}

/**
 * The legacy form has no flag for a non-blocking send. In that form a client that sets a webhook does not wait, and reads `submitted`
 * (S3-33).
 */
async function runFor(server: A2AServer, context: OperationContext, { blocking }: SendRequest, resolved: ResolvedMessage) {
  if (!blocking) return startTurn;
  return (await expectsWebhook(server, context, resolved)) ? acceptTurn : completeTurn;
}

async function expectsWebhook(server: A2AServer, { dialect }: OperationContext, { taskId }: ResolvedMessage): Promise<boolean> {
  if (!server.push || dialect.name !== 'legacy') return false;
  const webhooks = await server.log.pushConfigs.under(taskId).catch(thrown => {
    throw fromLog(thrown, taskId);
  });
  return webhooks.length > 0;
}

/**
 * The message of an agent that created no task, without our task id, because [A2A 1.0] 4.1.4 allows a task id only if a task exists. The
 * legacy form has only tasks.
 */
function directMessage({ dialect }: OperationContext, { direct, task }: TaskView): Message | undefined {
  const { message } = task.status;
  if (!direct || message === undefined || dialect.name === 'legacy') return undefined;
  const { taskId: _ours, ...rest } = message;
  return rest;
}
