import { A2AError, isTerminal } from '@hopline/a2a';
import { isSameOwner } from '@hopline/events';
import { LogConflict } from '@hopline/log';
import type { A2AServer, OperationContext } from '../a2a-server.ts';
import { fromLog } from '../log-faults.ts';
import type { IndexedTask } from '../task-index.ts';
import type { ResolvedMessage } from './resolve-message.ts';

/** Concurrent reads of tasks from the log. */
export const READS_AT_ONCE_MAX = 8;
/** Generation that the index has for a task whose message is stored but which has no facts yet. */
const NO_FACT = 0;

/**
 * Adds a task to the index before its client learns the id. The relay updates the index only after it has stored the task, and
 * in between the client may request a list from another replica. An entry of the relay is kept. A server that does not write the index
 * lists only its own new tasks that early.
 */
export async function addToIndex(
  { log, role, index, writesIndex }: A2AServer,
  context: OperationContext,
  { taskId, contextId }: ResolvedMessage,
): Promise<void> {
  const owner = isSameOwner(context.caller, undefined) ? {} : { owner: context.caller };
  const entry = {
    contextId,
    role,
    state: 'TASK_STATE_SUBMITTED',
    startSeq: 0,
    generation: NO_FACT,
    at: context.receivedAt,
  } as const;
  if (!writesIndex) return index.note(taskId, { ...entry, ...owner });
  try {
    await log.tasks.create(taskId, { ...entry, ...owner });
  } catch (thrown) {
    if (!(thrown instanceof LogConflict)) throw fromLog(thrown, taskId);
  }
}

/** Whether the log is known to hold facts of the task. */
export const hasFacts = ({ generation }: Pick<IndexedTask, 'generation'>): boolean => generation > NO_FACT;

/**
 * Reads the caller's open tasks from the log, because the index lags behind it and a client that has seen a status on any replica must find
 * that status in its next list.
 */
export async function refreshOpenTasks(
  server: A2AServer,
  context: OperationContext,
  contextId: string | undefined,
): Promise<void> {
  const isOpen = ({ owner, state, contextId: taskContextId }: IndexedTask) =>
    !isTerminal(state) && isSameOwner(owner, context.caller) && (contextId === undefined || taskContextId === contextId);
  const open = server.index.newestFirst(isOpen).slice(0, server.limits.listedOpenTasksMax);
  for (let at = 0; at < open.length; at += READS_AT_ONCE_MAX) {
    if (context.signal.aborted) throw new A2AError('UNAVAILABLE');
    await Promise.all(open.slice(at, at + READS_AT_ONCE_MAX).map(task => refresh(server, context, task)));
  }
}

async function refresh(server: A2AServer, context: OperationContext, known: IndexedTask): Promise<void> {
  const { taskId, contextId, owner, state } = known;
  const aggregate = await server.feeds.aggregate(taskId, context.caller);
  if (aggregate === undefined) {
    // By then the server of its message has answered UNAVAILABLE, or retention has removed the task.
    if (known.at < Date.now() - server.limits.firstFactMsMax) server.index.forget(taskId, known.generation);
    return;
  }
  if (hasFacts(known) && aggregate.state === state) return;
  const { task, generation } = await server.feeds.view(taskId, context.caller);
  const at = Date.parse(task.status.timestamp ?? '');
  server.index.note(taskId, { contextId, role: server.role, state: task.status.state, generation, at, ...(owner && { owner }) });
}
