import { A2AError, DIALECTS, type Dialect, isLegacyTask, stateWord, type Task } from '@hopline/a2a';
import { isTaskId, type Owner, type TaskAggregate } from '@hopline/events';
import { ATTR } from '@hopline/telemetry';
import type { A2AServer, OperationContext } from '../a2a-server.ts';
import type { ReadView } from '../feed/task-feed.ts';
import { showsTimeline, taskWithDraftGeneration } from '../stream/generation-form.ts';
import { withHistory } from '../stream/history-length.ts';

/**
 * Throws the error of GetTask unless the task belongs to the caller. Routes outside A2A use it, so that other callers' tasks stay hidden
 * there too.
 */
export async function requireOwnTask(server: A2AServer, caller: Owner, taskId: string): Promise<void> {
  const aggregate = isTaskId(taskId) ? await server.feeds.aggregate(taskId, caller) : undefined;
  if (aggregate === undefined) throw new A2AError('TASK_NOT_FOUND');
}

/** Bounds of the task in a response. Absent: all. */
type ShownLengths = { historyLength?: number; timelineLength?: number };

/**
 * The task of a response: with at most the given number of messages and, for clients that ask for the draft 1.1, with its generation and
 * its timeline. The timeline is read from the log for these clients only. `generation`: the generation of the newest event in the task.
 * Throws UNSUPPORTED_OPERATION if the task is too large for an answer.
 */
export async function shownTask(
  server: A2AServer,
  { extensions, caller }: OperationContext,
  { task, generation, isTooLarge }: Pick<ReadView, 'task' | 'generation' | 'isTooLarge'>,
  { historyLength, timelineLength = server.limits.timelineEntriesMax }: ShownLengths = {},
): Promise<Task> {
  if (isTooLarge) throw taskTooLarge(server, task.id);
  if (!showsTimeline(extensions)) return withHistory(task, historyLength);
  const { view, timeline } = await server.feeds.history(task.id, caller);
  // A read of the log may be behind the task that this response is about.
  if (view.isTooLarge) throw taskTooLarge(server, task.id);
  if (view.generation < generation) throw new A2AError('UNAVAILABLE', { taskId: task.id });
  const counted = taskWithDraftGeneration(view.task, view.generation);
  return withHistory(timeline.addTo(counted, Math.min(timelineLength, server.limits.timelineEntriesMax)), historyLength);
}

/** Names the two ways to read such a task: streams, whose events do not contain all of it at once, and exports, which have pages. */
export function taskTooLarge({ limits }: A2AServer, taskId: string): A2AError {
  const detail = `the artifacts of the task have more than ${limits.answerBytesMax} bytes, too many for one answer: subscribe with the cursor 0.0 for its events, or export it`;
  return new A2AError('UNSUPPORTED_OPERATION', { detail, taskId });
}

/**
 * The dialect of a response, once the task is known. `tasks/get`, `tasks/cancel` and `tasks/resubscribe` are the same in 0.3
 * and in the legacy form: a request without a version gets the dialect in which the task was created.
 */
export function dialectFor(context: OperationContext, task: Task): Dialect {
  nameState(context, { contextId: task.contextId, state: task.status.state });
  return dialectOf(context, isLegacyTask(task));
}

export function dialectOf(context: OperationContext, isLegacy: boolean): Dialect {
  if (context.ambiguous !== true || !isLegacy) return context.dialect;
  context.hop.set({ [ATTR.a2aVersion]: DIALECTS.legacy.name });
  return DIALECTS.legacy;
}

/** Puts the state that the client reads on the span of the client's request. */
export function nameState({ hop }: OperationContext, { contextId, state }: Pick<TaskAggregate, 'contextId' | 'state'>): void {
  hop.set({ [ATTR.genAiConversation]: contextId, [ATTR.a2aState]: stateWord(state) });
}
