import { A2AError, isTerminal } from '@hopline/a2a';
import type { Fact } from '@hopline/events';
import type { A2AServer, OperationContext, OperationResult } from '../a2a-server.ts';
import { waitAround } from '../feed/wait-for.ts';
import { acquireTask } from './resolve-message.ts';
import { appendCancel } from './append-message.ts';
import { ownMetadata } from './reserved-metadata.ts';
import { dialectFor } from './task-dialect.ts';

/** CancelTask, tasks/cancel: stores the wish, waits for the fact. A task that ends otherwise in the meantime was not cancelable. */
export async function tasksCancel(server: A2AServer, context: OperationContext): Promise<OperationResult> {
  const { taskId, metadata } = context.dialect.decodeCancel(context.params);
  const leave = server.streams.enter();
  try {
    const { feed, release } = await acquireTask(server, context, taskId);
    try {
      if (feed.ended) throw new A2AError('TASK_NOT_CANCELABLE', { taskId });
      const end = (fact: Fact) => fact.kind === 'status.changed' && isTerminal(fact.event.statusUpdate.status.state);
      const append = () => appendCancel(server, context, taskId, ownMetadata(metadata));
      await waitAround(append, feed, end, { timeoutMs: server.limits.cancelWaitMsMax, signal: context.leaving });
      const { task } = feed.view!;
      if (feed.ended && task.status.state !== 'TASK_STATE_CANCELED') throw new A2AError('TASK_NOT_CANCELABLE', { taskId });
      return dialectFor(context, task).encodeTask(task);
    } finally {
      release();
    }
  } finally {
    leave();
  }
}
