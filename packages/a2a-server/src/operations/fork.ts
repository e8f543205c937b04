import { A2AError, type Message, type Metadata, type SendRequest } from '@hopline/a2a';
import { isContextInUse } from '@hopline/context-history';
import { FORK_KEY, type ForkPoint, forkPointOf, isSameOwner, parseCursor } from '@hopline/events';
import { readTask } from '@hopline/log';
import type { A2AServer, OperationContext } from '../a2a-server.ts';
import { isClaimed } from './message-claim.ts';

/**
 * Checks the reserved metadata of a request that continues an earlier task from one of its events (`hopline.fork`). The message must begin
 * a new task in a new context, and the origin must be a task of the caller whose history up to that event still exists. Undefined without
 * the key. Throws INVALID_PARAMS, TASK_NOT_FOUND for a task that is unknown, expired or not the caller's, and UNSUPPORTED_OPERATION when
 * its beginning has expired.
 */
export async function forkMetadata(
  server: A2AServer,
  context: OperationContext,
  { message, metadata, chosenTaskId }: SendRequest,
): Promise<Metadata | undefined> {
  const point = forkPointOf(metadata);
  if (point === undefined) return undefined;
  if (point === 'malformed')
    throw new A2AError('INVALID_PARAMS', {
      detail: `metadata["${FORK_KEY}"] must be {"taskId", "cursor"} with a cursor of that task`,
    });
  if (message.taskId !== undefined || chosenTaskId !== undefined)
    throw new A2AError('INVALID_PARAMS', { detail: `metadata["${FORK_KEY}"] starts a new task: omit the task id` });
  await checkOrigin(server, context, point);
  if (message.contextId !== undefined) await checkContext(server, context, message, message.contextId);
  return { [FORK_KEY]: point };
}

async function checkOrigin({ log, role }: A2AServer, { caller }: OperationContext, { taskId, cursor }: ForkPoint): Promise<void> {
  const newest = await log.facts.last(taskId);
  if (newest === undefined) throw new A2AError('TASK_NOT_FOUND', { taskId });
  const { aggregate } = newest.record;
  // Another caller's task gets the same answer as an unknown one, so that its existence stays hidden.
  if (aggregate.role !== role || !isSameOwner(aggregate.owner, caller)) throw new A2AError('TASK_NOT_FOUND', { taskId });
  if ((parseCursor(cursor)?.generation ?? 0) > aggregate.generation)
    throw new A2AError('INVALID_PARAMS', { detail: 'cursor does not belong to this task', taskId });
  for await (const { record } of readTask(log.facts, newest)) {
    if (record.facts[0]?.kind === 'task.created') return;
    break;
  }
  throw new A2AError('UNSUPPORTED_OPERATION', { detail: 'the beginning of the task has expired', taskId });
}

/**
 * Refuses a context that is in use, because it has other earlier tasks, and because agents may keep state under its id. A retry is accepted
 * in the context that its first attempt began.
 */
async function checkContext(
  { log }: A2AServer,
  { caller }: OperationContext,
  message: Message,
  contextId: string,
): Promise<void> {
  if (!(await isContextInUse(log, caller, contextId))) return;
  if (await isClaimed(log.messageIds, { owner: caller, contextId }, message)) return;
  throw new A2AError('INVALID_PARAMS', {
    detail: `metadata["${FORK_KEY}"] starts a new context: send a contextId that is not in use`,
  });
}
