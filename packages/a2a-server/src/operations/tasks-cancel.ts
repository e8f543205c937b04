import { A2AError, isTerminal } from '@hopline/a2a';
import type { Fact } from '@hopline/events';
import type { A2AServer, OperationContext, OperationResult } from '../a2a-server.ts';
import { waitAround } from '../feed/wait-for.ts';
import { acquireTask } from './admit-message.ts';
import { sayCancel } from './append-message.ts';
import { ownMetadata } from './reserved-metadata.ts';
import { dialectFor } from './task-dialect.ts';

/** CancelTask, tasks/cancel: stores the wish, waits for the fact. A task that ends otherwise in the meantime was not cancelable. */
export async function tasksCancel(door: A2AServer, ask: OperationContext): Promise<OperationResult> {
  const { taskId, metadata } = ask.dialect.decodeCancel(ask.params);
  const leave = door.streams.enter();
  try {
    const { feed, release } = await acquireTask(door, ask, taskId);
    try {
      if (feed.ended) throw new A2AError('TASK_NOT_CANCELABLE', { taskId });
      const ends = (fact: Fact) => fact.kind === 'status.changed' && isTerminal(fact.event.statusUpdate.status.state);
      const say = () => sayCancel(door, ask, taskId, ownMetadata(metadata));
      await waitAround(say, feed, ends, { timeoutMs: door.limits.cancelWaitMsMax, signal: ask.leaving });
      const { task } = feed.view!;
      if (feed.ended && task.status.state !== 'TASK_STATE_CANCELED') throw new A2AError('TASK_NOT_CANCELABLE', { taskId });
      return dialectFor(ask, task).encodeTask(task);
    } finally {
      release();
    }
  } finally {
    leave();
  }
}
