import { A2AError } from '@hopline/a2a';
import { isTaskId } from '@hopline/events';
import type { A2AServer, OperationContext, OperationResult } from '../a2a-server.ts';
import type { ReadView } from '../feed/task-feed.ts';
import { waitBeyond } from '../feed/wait-for.ts';
import { taskIdOf } from './client-task-id.ts';
import { acquireTask, nameTask } from './resolve-message.ts';
import { dialectFor, shownTask } from './task-response.ts';

/**
 * GetTask, tasks/get: the projection of the task's facts as they are in the log now. With `currentGeneration` (draft 1.1), the answer waits until the
 * task is beyond that generation, for at most `longPollMsMax`.
 */
export async function tasksGet(server: A2AServer, context: OperationContext): Promise<OperationResult> {
  const { taskId: named, currentGeneration, ...lengths } = context.dialect.decodeGet(context.params);
  const taskId = await taskIdOf(server, context, named);
  nameTask(context, taskId);
  if (!isTaskId(taskId)) throw new A2AError('TASK_NOT_FOUND');
  const view =
    currentGeneration === undefined
      ? await server.feeds.view(taskId, context.caller)
      : await viewBeyond(server, context, taskId, currentGeneration);
  return dialectFor(context, view.task).encodeTask(await shownTask(server, context, view, lengths));
}

/** Takes a slot like a stream, because it may wait just as long. */
async function viewBeyond(server: A2AServer, context: OperationContext, taskId: string, generation: number): Promise<ReadView> {
  const releaseSlot = server.streams.acquire(context.caller, 'stream');
  try {
    const { feed, release } = await acquireTask(server, context, taskId);
    try {
      await waitBeyond(feed, generation, { timeoutMs: server.limits.longPollMsMax, signal: context.signal });
      return (await feed.readView()).view;
    } finally {
      release();
    }
  } finally {
    releaseSlot();
  }
}
