import { A2AError, isInterrupted, isTerminal, type TaskState } from '@hopline/a2a';
import type { Fact } from '@hopline/events';
import type { TaskView } from '@hopline/task';
import type { A2AServer, OperationContext } from '../a2a-server.ts';
import { waitAround, waitFor } from '../feed/wait-for.ts';
import type { ResolvedMessage } from './resolve-message.ts';
import type { Turn } from './turn.ts';
import { takes } from './turn.ts';

function isSettled(state: TaskState): boolean {
  return isTerminal(state) || isInterrupted(state);
}

/**
 * Says a message and waits until it is in its task (S1-3). Throws UNAVAILABLE when nobody takes it in time: it is stored all the same, and the error names its task.
 */
export async function acceptTurn(server: A2AServer, context: OperationContext, turn: Turn, resolved: ResolvedMessage): Promise<TaskView> {
  const { feed } = turn.lease;
  if (turn.start !== 'message' && feed.view !== undefined) {
    await turn.append();
    return feed.view;
  }
  const waiting = { timeoutMs: server.limits.firstFactMsMax, signal: context.leaving };
  const end = await waitAround(turn.append, feed, fact => takes(fact, resolved), waiting);
  if (end !== 'met') throw notTaken(feed.taskId);
  return feed.view!;
}

/**
 * Says a message and waits until its turn is over: the task has ended, or waits for somebody (S1-2). A wait that is cut short, by its limit or by the
 * process's end, answers with the task as it is: better than an error, because the client learns its id.
 */
export async function settleTurn(server: A2AServer, context: OperationContext, turn: Turn, resolved: ResolvedMessage): Promise<TaskView> {
  const { feed } = turn.lease;
  await acceptTurn(server, context, turn, resolved);
  // As it is now, not as it was when the message was taken: what settled it in between is not waited for again.
  if (!isSettled(feed.view!.task.status.state)) {
    const settles = (fact: Fact) => fact.kind === 'status.changed' && isSettled(fact.event.statusUpdate.status.state);
    await waitFor(feed, settles, { timeoutMs: server.limits.blockingWaitMsMax, signal: context.leaving });
  }
  return feed.view!;
}

export function notTaken(taskId: string): A2AError {
  return new A2AError('UNAVAILABLE', { detail: 'the message is stored, but nobody has taken it yet', taskId });
}
