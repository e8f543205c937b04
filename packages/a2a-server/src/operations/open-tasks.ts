import { A2AError, isTerminal } from '@hopline/a2a';
import { isSameOwner } from '@hopline/events';
import { LogConflict, listKeyOf } from '@hopline/log';
import type { A2AServer, OperationContext } from '../a2a-server.ts';
import { fromLog } from '../log-faults.ts';
import type { IndexedTask } from '../task-index.ts';
import type { OwnedTasks } from '../task-lists.ts';
import type { ResolvedMessage } from './resolve-message.ts';

/** Concurrent reads of tasks from the log. */
export const READS_AT_ONCE_MAX = 8;
/** Generation that the index has for a task whose message is stored but which has no facts yet. */
const NO_FACT = 0;

/**
 * Adds a task to the lists of its owner before its client receives the id. The relay writes the entry only after it has stored the task,
 * and before that the client may request a list from another replica. An entry of the relay is kept. A server that does not write the lists
 * shows only its own new tasks until the relay has stored them.
 */
export async function addToLists(
  { log, role, lists, writesIndex }: A2AServer,
  context: OperationContext,
  { taskId, contextId }: ResolvedMessage,
): Promise<void> {
  const owner = isSameOwner(context.caller, undefined) ? {} : { owner: context.caller };
  const state = { state: 'TASK_STATE_SUBMITTED', startSeq: 0, generation: NO_FACT, at: context.receivedAt } as const;
  const entry = { contextId, role, ...state, ...owner };
  if (!writesIndex) return lists.note(taskId, entry);
  try {
    await log.taskLists.create(listKeyOf(taskId, entry, log.layouts), entry);
  } catch (thrown) {
    if (!(thrown instanceof LogConflict)) throw fromLog(thrown, taskId);
  }
}

/** Whether the log is known to hold facts of the task. */
export const hasFacts = ({ generation }: Pick<IndexedTask, 'generation'>): boolean => generation > NO_FACT;

/**
 * Reads the caller's open tasks from the log. The lists lag behind the log, and a client that has seen a status on any replica must find it
 * in its next list. `likely`: tasks whose records will probably be needed later, and are therefore read in the same request.
 */
export async function refreshOpenTasks(
  server: A2AServer,
  context: OperationContext,
  owned: OwnedTasks,
  { contextId, likely }: { contextId: string | undefined; likely: readonly IndexedTask[] },
): Promise<void> {
  const isOpen = (task: IndexedTask) => !isTerminal(task.state) && (contextId === undefined || task.contextId === contextId);
  const open = owned.newestFirst(isOpen).slice(0, server.limits.listedOpenTasksMax);
  await owned.readRecords([...open, ...likely]);
  for (let at = 0; at < open.length; at += READS_AT_ONCE_MAX) {
    if (context.signal.aborted) throw new A2AError('UNAVAILABLE');
    await Promise.all(open.slice(at, at + READS_AT_ONCE_MAX).map(task => refresh(server, context, owned, task)));
  }
}

async function refresh(server: A2AServer, context: OperationContext, owned: OwnedTasks, known: IndexedTask): Promise<void> {
  const { taskId } = known;
  const record = owned.records.get(taskId);
  if (record === undefined) {
    // By then its server has answered UNAVAILABLE, or retention has removed the task.
    if (known.at < Date.now() - server.limits.firstFactMsMax) owned.forget(taskId);
    return;
  }
  const { state, contextId, owner } = record.record.aggregate;
  if (hasFacts(known) && state === known.state) return;
  const { task, generation } = await server.feeds.view(taskId, context.caller, record);
  const at = Date.parse(task.status.timestamp ?? '');
  owned.note({ taskId, contextId, state: task.status.state, generation, at, owner });
}
