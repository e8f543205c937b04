import { A2AError, decodeListTasks, type ListTasksRequest, type Task } from '@hopline/a2a';
import { isSameOwner, isTaskId } from '@hopline/events';
import { ATTR } from '@hopline/telemetry';
import type { A2AServer, OperationContext, OperationResult } from '../a2a-server.ts';
import { comparePositions, type IndexedTask, type IndexPosition } from '../task-index.ts';
import { hasFacts, READS_AT_ONCE_MAX, refreshOpenTasks } from './open-tasks.ts';
import { withHistory } from './task-response.ts';

/** Index entries per page whose task turns out to be removed or not to match any more. After that many, the page ends early. */
const MISSES_MAX = 100;
/** Characters of JSON after which a page ends early. A single task may be larger. */
const PAGE_CHARS_MAX = 4 * 1024 * 1024;

/**
 * ListTasks: newest status first, in the order of the task index. Only the tasks of the page, and open ones, are read from the
 * log. A task whose status changes during paging moves to the front and may appear again on the first page; none is skipped.
 */
export async function tasksList(server: A2AServer, context: OperationContext): Promise<OperationResult> {
  const request = decodeListTasks(context.params);
  const after = request.pageToken === undefined ? undefined : positionOfToken(request.pageToken);
  await server.index.ready();
  context.hop.set({ [ATTR.genAiConversation]: request.contextId });
  const { contextId, state, statusSinceMs = Number.NEGATIVE_INFINITY } = request;
  await refreshOpenTasks(server, context, contextId);
  const matching = server.index.newestFirst(
    task =>
      hasFacts(task) &&
      isSameOwner(task.owner, context.caller) &&
      task.at >= statusSinceMs &&
      (contextId === undefined || task.contextId === contextId) &&
      (state === undefined || task.state === state),
  );
  const from = after === undefined ? 0 : matching.findIndex(task => comparePositions(task, after) < 0);
  const { tasks, next, removed } = await readPage(server, context, request, from < 0 ? [] : matching.slice(from));
  return {
    tasks: tasks.map(task => context.dialect.encodeTask(task)),
    nextPageToken: next === undefined ? '' : tokenOf(next),
    pageSize: request.pageSize,
    totalSize: matching.length - removed,
  };
}

type Page = {
  tasks: Task[] /** The last task that was examined; present when others follow it. */;
  next: IndexPosition | undefined;
  removed: number;
};

async function readPage(
  server: A2AServer,
  context: OperationContext,
  request: ListTasksRequest,
  candidates: IndexedTask[],
): Promise<Page> {
  const tasks: Task[] = [];
  let [at, chars, removed] = [0, 0, 0];
  while (at < candidates.length && tasks.length < request.pageSize && chars < PAGE_CHARS_MAX && at - tasks.length < MISSES_MAX) {
    if (context.signal.aborted) throw new A2AError('UNAVAILABLE');
    const batch = candidates.slice(at, at + Math.min(READS_AT_ONCE_MAX, request.pageSize - tasks.length));
    const read = await Promise.all(batch.map(task => readTask(server, context, task)));
    for (const task of read) {
      if (chars >= PAGE_CHARS_MAX) break;
      at += 1;
      if (task === undefined) removed += 1;
      // The log may be ahead of the index.
      if (task === undefined || (request.state !== undefined && task.status.state !== request.state)) continue;
      const listed = listedForm(task, request);
      chars += JSON.stringify(listed).length;
      tasks.push(listed);
    }
  }
  tasks.sort((a, b) => comparePositions(positionOf(b), positionOf(a)));
  return { tasks, next: at < candidates.length ? candidates[at - 1] : undefined, removed };
}

/** Resolves with undefined if retention has removed the task. */
async function readTask(
  server: A2AServer,
  { caller }: OperationContext,
  { taskId, generation }: IndexedTask,
): Promise<Task | undefined> {
  try {
    return (await server.feeds.view(taskId, caller)).task;
  } catch (thrown) {
    if (!(thrown instanceof A2AError) || thrown.code !== 'TASK_NOT_FOUND') throw thrown;
    server.index.forget(taskId, generation);
    return undefined;
  }
}

/** Without `includeArtifacts` the member is absent; with it, it is always present ([A2A 1.0] 3.1.4). */
function listedForm(task: Task, { historyLength, includeArtifacts }: ListTasksRequest): Task {
  const { artifacts = [], ...rest } = withHistory(task, historyLength);
  return includeArtifacts ? { ...rest, artifacts } : rest;
}

function positionOf({ id, status }: Task): IndexPosition {
  return { taskId: id, at: Date.parse(status.timestamp ?? '') };
}

/** Opaque to clients: the position at which the page ended. */
function tokenOf({ at, taskId }: IndexPosition): string {
  return Buffer.from(`${at}.${taskId}`).toString('base64url');
}

function positionOfToken(token: string): IndexPosition {
  const [, at, taskId] = /^(\d{1,15})\.(.+)$/.exec(Buffer.from(token, 'base64url').toString('latin1')) ?? [];
  if (at === undefined || taskId === undefined || !isTaskId(taskId)) {
    throw new A2AError('INVALID_PARAMS', { detail: 'params.pageToken must be the nextPageToken of an earlier response' });
  }
  return { at: Number(at), taskId };
}
