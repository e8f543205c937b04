import { A2AError, isTerminal } from '@hopline/a2a';
import { isSameOwner } from '@hopline/events';
import { LogConflict } from '@hopline/log';
import type { A2AServer, OperationContext } from '../a2a-server.ts';
import { fromLog } from '../log-faults.ts';
import type { IndexedTask } from '../task-index.ts';
import type { ResolvedMessage } from './resolve-message.ts';

/** Tasks read from the log at a time. */
export const READS_AT_ONCE_MAX = 8;
/** Generation in the index of a task that was said and of which no fact is known. */
const NO_FACT = 0;

/**
 * Enters a task into the index before anybody is told of it: the relay does so after the log has stored the task, and a client that saw it there may ask another replica for a list in between.
 * What the relay has written already stays.
 */
export async function addToIndex(
  { log, role }: A2AServer,
  context: OperationContext,
  { taskId, contextId }: ResolvedMessage,
): Promise<void> {
  const owner = isSameOwner(context.caller, undefined) ? {} : { owner: context.caller };
  const entry = { contextId, role, state: 'TASK_STATE_SUBMITTED', startSeq: 0, generation: NO_FACT, at: context.receivedAt } as const;
  try {
    await log.tasks.create(taskId, { ...entry, ...owner });
  } catch (thrown) {
    if (!(thrown instanceof LogConflict)) throw fromLog(thrown, taskId);
  }
}

/** Whether the log is known to have the task. */
export const hasFacts = ({ generation }: IndexedTask): boolean => generation > NO_FACT;

/**
 * Looks the caller's open tasks up in the log. The index learns of a status after the log has stored it, and a client may have been told of it by then, at any replica: what it was told, it finds in
 * the next list.
 */
export async function refreshOpenTasks(server: A2AServer, context: OperationContext, contextId: string | undefined): Promise<void> {
  const isOpen = ({ owner, state, contextId: taskContextId }: IndexedTask) =>
    !isTerminal(state) && isSameOwner(owner, context.caller) && (contextId === undefined || taskContextId === contextId);
  const open = server.index.newestFirst(isOpen).slice(0, server.limits.listedOpenTasksMax);
  for (let at = 0; at < open.length; at += READS_AT_ONCE_MAX) {
    if (context.leaving.aborted) throw new A2AError('UNAVAILABLE');
    await Promise.all(open.slice(at, at + READS_AT_ONCE_MAX).map(task => refresh(server, context, task)));
  }
}

async function refresh(server: A2AServer, context: OperationContext, known: IndexedTask): Promise<void> {
  const { taskId, contextId, owner, state } = known;
  const aggregate = await server.feeds.aggregate(taskId, context.caller);
  if (aggregate === undefined) {
    // The door that said it has given up by then, or the log has removed it.
    if (known.at < Date.now() - server.limits.firstFactMsMax) server.index.forget(taskId, known.generation);
    return;
  }
  if (hasFacts(known) && aggregate.state === state) return;
  const { task, generation } = await server.feeds.view(taskId, context.caller);
  const at = Date.parse(task.status.timestamp ?? '');
  server.index.note(taskId, { contextId, role: server.role, state: task.status.state, generation, at, ...(owner && { owner }) });
}
