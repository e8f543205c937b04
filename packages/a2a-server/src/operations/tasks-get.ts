import { A2AError } from '@hopline/a2a';
import { isTaskId } from '@hopline/events';
import type { A2AServer, OperationContext, OperationResult } from '../a2a-server.ts';
import { withHistory } from './history.ts';
import { dialectFor } from './task-dialect.ts';

/** GetTask, tasks/get: the fold of the task's facts as they are in the log now. */
export async function tasksGet(door: A2AServer, ask: OperationContext): Promise<OperationResult> {
  const { taskId, historyLength } = ask.dialect.decodeGet(ask.params);
  if (!isTaskId(taskId)) throw new A2AError('TASK_NOT_FOUND');
  const { task } = await door.feeds.view(taskId, ask.caller);
  return dialectFor(ask, task).encodeTask(withHistory(task, historyLength));
}
