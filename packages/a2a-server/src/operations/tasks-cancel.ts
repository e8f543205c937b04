import { A2AError, isTerminal } from '@hopline/a2a';
import type { A2AServer, OperationContext, OperationResult } from '../a2a-server.ts';
import type { TaskChange } from '../feed/feed-listener.ts';
import { waitAround } from '../feed/wait-for.ts';
import { appendCancel } from './append-message.ts';
import { taskIdOf } from './client-task-id.ts';
import { withoutReservedMetadata } from './reserved-metadata.ts';
import { acquireTask } from './resolve-message.ts';
import { dialectFor, shownTask } from './task-response.ts';

/**
 * CancelTask, tasks/cancel: appends the request and waits for the task to end. TASK_NOT_CANCELABLE when it ends in another
 * way.
 */
export async function tasksCancel(server: A2AServer, context: OperationContext): Promise<OperationResult> {
  const { taskId: named, metadata } = context.dialect.decodeCancel(context.params);
  const releaseSlot = server.streams.acquire(context.caller, 'request');
  try {
    const taskId = await taskIdOf(server, context, named);
    const { feed, release } = await acquireTask(server, context, taskId);
    try {
      if (feed.ended) throw new A2AError('TASK_NOT_CANCELABLE', { taskId });
      const ends = (fact: TaskChange) => fact.kind === 'status.changed' && isTerminal(fact.event.statusUpdate.status.state);
      const append = () => appendCancel(server, context, taskId, withoutReservedMetadata(metadata));
      await waitAround(append, feed, ends, { timeoutMs: server.limits.cancelWaitMsMax, signal: context.signal });
      const { view } = await feed.readView();
      // The task is canceled even if it is too large for an answer. In that case its artifacts are left out.
      const { task, generation } = view;
      if (isTerminal(task.status.state) && task.status.state !== 'TASK_STATE_CANCELED')
        throw new A2AError('TASK_NOT_CANCELABLE', { taskId });
      return dialectFor(context, task).encodeTask(await shownTask(server, context, { task, generation }));
    } finally {
      release();
    }
  } finally {
    releaseSlot();
  }
}
