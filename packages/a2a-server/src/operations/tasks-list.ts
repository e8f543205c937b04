import { A2AError, decodeListTasks, type ListTasksRequest, type Task } from '@hopline/a2a';
import { isSameOwner, isTaskId } from '@hopline/events';
import type { A2AServer, OperationContext, OperationResult } from '../a2a-server.ts';
import { comparePositions, type IndexedTask, type IndexPosition } from '../task-index.ts';
import { withHistory } from './history.ts';
import { hasFacts, READS_AT_ONCE_MAX, refreshOpenTasks } from './open-tasks.ts';

/** Tasks of the index that one page may find gone, or changed so that they match no more; then it ends early, which a page may. */
const MISSES_MAX = 100;
/** Characters of JSON after which a page ends early. One task may be larger. */
const PAGE_CHARS_MAX = 4 * 1024 * 1024;

/**
 * ListTasks: newest status first, by the index of tasks; only those of the page, and open ones, are read from the log. What a client was told of a task at any replica it finds in the next list. A task whose status changes while a client pages moves to the front, and may be met again
 * on the first page: none is missed without having been there.
 */
export async function tasksList(server: A2AServer, context: OperationContext): Promise<OperationResult> {
  const request = decodeListTasks(context.params);
  const after = request.pageToken === undefined ? undefined : placeOf(request.pageToken);
  await server.index.ready();
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
  const { tasks, next, gone } = await readPage(server, context, request, from < 0 ? [] : matching.slice(from));
  return {
    tasks: tasks.map(task => context.dialect.encodeTask(task)),
    nextPageToken: next === undefined ? '' : tokenOf(next),
    pageSize: request.pageSize,
    totalSize: matching.length - gone,
  };
}

type Page = {
  tasks: Task[] /** The last one that was looked at, when others follow it. */;
  next: IndexPosition | undefined;
  gone: number;
};

async function readPage(
  server: A2AServer,
  context: OperationContext,
  request: ListTasksRequest,
  candidates: IndexedTask[],
): Promise<Page> {
  const tasks: Task[] = [];
  let [at, chars, gone] = [0, 0, 0];
  while (at < candidates.length && tasks.length < request.pageSize && chars < PAGE_CHARS_MAX && at - tasks.length < MISSES_MAX) {
    if (context.leaving.aborted) throw new A2AError('UNAVAILABLE');
    const batch = candidates.slice(at, at + Math.min(READS_AT_ONCE_MAX, request.pageSize - tasks.length));
    const read = await Promise.all(batch.map(task => readTask(server, context, task)));
    for (const task of read) {
      if (chars >= PAGE_CHARS_MAX) break;
      at += 1;
      if (task === undefined) gone += 1;
      if (task === undefined || !stillMatches(task, request)) continue;
      const shown = shownOf(task, request);
      chars += JSON.stringify(shown).length;
      tasks.push(shown);
    }
  }
  // The log may know more than the index did.
  tasks.sort((a, b) => comparePositions(placeIn(b), placeIn(a)));
  return { tasks, next: at < candidates.length ? candidates[at - 1] : undefined, gone };
}

/** undefined when retention has removed it. */
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

function stillMatches({ status }: Task, { state, statusSinceMs }: ListTasksRequest): boolean {
  if (state !== undefined && status.state !== state) return false;
  return statusSinceMs === undefined || Date.parse(status.timestamp ?? '') >= statusSinceMs;
}

/** Without `includeArtifacts` the member is absent, with it it is always there ([A2A 1.0] 3.1.4). */
function shownOf(task: Task, { historyLength, includeArtifacts }: ListTasksRequest): Task {
  const { artifacts = [], ...rest } = withHistory(task, historyLength);
  return includeArtifacts ? { ...rest, artifacts } : rest;
}

function placeIn({ id, status }: Task): IndexPosition {
  return { taskId: id, at: Date.parse(status.timestamp ?? '') };
}

/** Opaque to clients: where the page ended. */
function tokenOf({ at, taskId }: IndexPosition): string {
  return Buffer.from(`${at}.${taskId}`).toString('base64url');
}

function placeOf(token: string): IndexPosition {
  const [, at, taskId] = /^(\d{1,15})\.(.+)$/.exec(Buffer.from(token, 'base64url').toString('latin1')) ?? [];
  if (at === undefined || taskId === undefined || !isTaskId(taskId)) {
    throw new A2AError('INVALID_PARAMS', { detail: 'params.pageToken is none that was given out' });
  }
  return { at: Number(at), taskId };
}
