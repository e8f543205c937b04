import { A2AError } from '@hopline/a2a';
import { isTaskId } from '@hopline/events';
import type { A2AServer, OperationContext, OperationResult } from '../a2a-server.ts';
import { taskIdOf } from './client-task-id.ts';
import { nameTask } from './resolve-message.ts';
import { dialectFor, withHistory } from './task-response.ts';

/** GetTask, tasks/get: the projection of the task's facts as they are in the log now. */
export async function tasksGet(server: A2AServer, context: OperationContext): Promise<OperationResult> {
  const { taskId: named, historyLength } = context.dialect.decodeGet(context.params);
  const taskId = await taskIdOf(server, context, named);
  nameTask(context, taskId);
  if (!isTaskId(taskId)) throw new A2AError('TASK_NOT_FOUND');
  const { task } = await server.feeds.view(taskId, context.caller);
  return dialectFor(context, task).encodeTask(withHistory(task, historyLength));
}
