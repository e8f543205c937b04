import { A2AError, isTerminal } from '@hopline/a2a';
import { isSameOwner } from '@hopline/events';
import { LogConflict } from '@hopline/log';
import type { A2AServer, OperationContext } from '../a2a-server.ts';
import { fromLog } from '../log-faults.ts';
import type { IndexedTask } from '../task-index.ts';
import type { Admission } from './admit-message.ts';

/** Tasks read from the log at a time. */
export const READS_AT_ONCE_MAX = 8;
/** Generation in the index of a task that was said and of which no fact is known. */
const NO_FACT = 0;

/**
 * Enters a task into the index before anybody is told of it: the relay does so after the log has stored the task, and a client that saw it there may ask another replica for a list in between.
 * What the relay has written already stays.
 */
export async function enterIndex(
  { log, role }: A2AServer,
  ask: OperationContext,
  { taskId, contextId }: Admission,
): Promise<void> {
  const owner = isSameOwner(ask.caller, undefined) ? {} : { owner: ask.caller };
  const entry = { contextId, role, state: 'TASK_STATE_SUBMITTED', startSeq: 0, generation: NO_FACT, at: ask.receivedAt } as const;
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
export async function refreshOpen(door: A2AServer, ask: OperationContext, contextId: string | undefined): Promise<void> {
  const isOpen = ({ owner, state, contextId: context }: IndexedTask) =>
    !isTerminal(state) && isSameOwner(owner, ask.caller) && (contextId === undefined || context === contextId);
  const open = door.index.newestFirst(isOpen).slice(0, door.limits.listedOpenTasksMax);
  for (let at = 0; at < open.length; at += READS_AT_ONCE_MAX) {
    if (ask.leaving.aborted) throw new A2AError('UNAVAILABLE');
    await Promise.all(open.slice(at, at + READS_AT_ONCE_MAX).map(task => refresh(door, ask, task)));
  }
}

async function refresh(door: A2AServer, ask: OperationContext, known: IndexedTask): Promise<void> {
  const { taskId, contextId, owner, state } = known;
  const aggregate = await door.feeds.aggregate(taskId, ask.caller);
  if (aggregate === undefined) {
    // The door that said it has given up by then, or the log has removed it.
    if (known.at < Date.now() - door.limits.firstFactMsMax) door.index.forget(taskId, known.generation);
    return;
  }
  if (hasFacts(known) && aggregate.state === state) return;
  const { task, generation } = await door.feeds.view(taskId, ask.caller);
  const at = Date.parse(task.status.timestamp ?? '');
  door.index.note(taskId, { contextId, role: door.role, state: task.status.state, generation, at, ...(owner && { owner }) });
}
