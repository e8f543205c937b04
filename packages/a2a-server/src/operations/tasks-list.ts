import {
  A2AError,
  decodeListTasks,
  invalidMember,
  isInProgress,
  isTerminal,
  type ListTasksRequest,
  type Task,
} from '@hopline/a2a';
import { isTaskId, timeOfTaskId } from '@hopline/events';
import { agentsOf, hasText, type ListedTask, listedTaskOf, taskOfRow } from '@hopline/log';
import type { TaskView } from '@hopline/task';
import { ATTR } from '@hopline/telemetry';
import type { A2AServer, OperationContext, OperationResult } from '../a2a-server.ts';
import { fromLog } from '../log-faults.ts';
import { showsTimeline, taskWithDraftGeneration } from '../stream/generation-form.ts';
import { withHistory } from '../stream/history-length.ts';
import { comparePositions, type IndexedTask, type IndexPosition } from '../task-index.ts';
import type { OwnedTasks } from '../task-lists.ts';
import { hasFacts, READS_AT_ONCE_MAX, refreshOpenTasks } from './open-tasks.ts';

/** Number of index entries per page whose task turns out to be gone or no longer to match. After that many, the page ends early. */
const MISSES_MAX = 100;
/**
 * Bytes of JSON of one page. A task that would make the page larger begins the next page; a single task may be larger. Clients of gRPC
 * accept messages of 4 MiB by default; text is shorter there than in JSON, but numbers are longer.
 */
const PAGE_BYTES_MAX = 3.5 * 1024 * 1024;

/** The first of all task ids in the order of lists. */
const FIRST_ID = '-';

/**
 * ListTasks: newest status first. The caller's lists contain what a page shows of ended tasks. Open tasks are read from the log. So are
 * ended tasks whose row lacks something that the request asks for: artifacts, agents, a history that is longer than the row has room for,
 * or members that earlier versions did not write. A task whose status changes during paging moves to the front: it may appear twice, or
 * only in the next list. `totalSize` is true or absent: with a filter it is known only if every task of the caller was read.
 */
export async function tasksList(server: A2AServer, context: OperationContext): Promise<OperationResult> {
  const request = decodeListTasks(context.params);
  const after = request.pageToken === undefined ? undefined : positionOfToken(request.pageToken);
  context.hop.set({ [ATTR.genAiConversation]: request.contextId });
  const { contextId, state, statusSinceMs: sinceMs = Number.NEGATIVE_INFINITY, pageSize } = request;
  const nowMs = Date.now();
  const owned = await server.lists.of(context.caller);
  const matches = (task: IndexedTask) =>
    hasFacts(task) &&
    task.at >= sinceMs &&
    (contextId === undefined || task.contextId === contextId) &&
    (state === undefined || task.state === state) &&
    isLongEnough(task, request, nowMs) &&
    // A task whose row lacks the searched members is read, and may turn out not to match.
    isFound(task.listed, request) !== false;
  const select = () => {
    const bounds = { count: pageSize + 1, tasksMax: server.limits.listedTasksPerPageMax };
    return owned.select(matches, { after, sinceMs }, bounds).catch(thrown => {
      throw fromLog(thrown);
    });
  };
  // The open tasks and those that will probably be shown are read in one request.
  const likely = (await select()).found.slice(0, pageSize).filter(task => !isShown(task, request));
  await refreshOpenTasks(server, context, owned, { contextId, likely });
  const { found, unreadTo } = await select();
  const { tasks, next, removed } = await readPage(server, context, request, owned, found, nowMs);
  const later = unreadTo === undefined ? undefined : { at: unreadTo + 1, taskId: FIRST_ID };
  const position = next ?? later;
  const isFiltered = contextId !== undefined || state !== undefined || request.statusSinceMs !== undefined;
  const isSearch = request.text !== undefined || request.agent !== undefined || request.minDurationMs !== undefined;
  const isTotalKnown = !isSearch && (!isFiltered || owned.isWhole);
  const total = isTotalKnown ? owned.total(matches) : undefined;
  return {
    tasks: tasks.map(task => context.dialect.encodeTask(task)),
    nextPageToken: position === undefined ? '' : tokenOf(position),
    pageSize,
    ...(total !== undefined && { totalSize: total - removed }),
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
  owned: OwnedTasks,
  candidates: IndexedTask[],
  nowMs: number,
): Promise<Page> {
  const tasks: Task[] = [];
  let [at, bytes, removed] = [0, 0, 0];
  let isFull = false;
  while (at < candidates.length && tasks.length < request.pageSize && !isFull && at - tasks.length < MISSES_MAX) {
    const rest = candidates.slice(at, at + request.pageSize - tasks.length);
    await owned.readRecords(rest.filter(task => !isShown(task, request)));
    for (let first = 0; first < rest.length && !isFull; first += READS_AT_ONCE_MAX) {
      if (context.signal.aborted) throw new A2AError('UNAVAILABLE');
      const batch = rest.slice(first, first + READS_AT_ONCE_MAX);
      const read = await Promise.all(
        batch.map(task =>
          isShown(task, request)
            ? { task: taskOfRow(task), generation: task.generation }
            : readTask(server, context, owned, task),
        ),
      );
      for (const [index, view] of read.entries()) {
        if (isFull) break;
        at += 1;
        if (view === undefined) {
          removed += 1;
          continue;
        }
        const { task, generation } = view;
        // The log may be newer than the index.
        if (request.state !== undefined && task.status.state !== request.state) continue;
        if (!isLongEnough({ ...positionOf(task), state: task.status.state }, request, nowMs)) continue;
        if (isFound(batch[index]!.listed, request) === undefined && !isFoundIn(task, request)) continue;
        const shown = listedForm(task, request);
        const listed = showsTimeline(context.extensions) ? taskWithDraftGeneration(shown, generation) : shown;
        const size = Buffer.byteLength(JSON.stringify(listed));
        isFull = bytes + size >= PAGE_BYTES_MAX;
        if (isFull && tasks.length > 0) {
          at -= 1;
          break;
        }
        bytes += size;
        tasks.push(listed);
      }
    }
  }
  tasks.sort((a, b) => comparePositions(positionOf(b), positionOf(a)));
  return { tasks, next: at < candidates.length ? candidates[at - 1] : undefined, removed };
}

/** Whether a task took at least as long as the request asks, up to its last status or, if it is in progress, until now. */
function isLongEnough(
  { taskId, at, state }: Pick<IndexedTask, 'taskId' | 'at' | 'state'>,
  { minDurationMs }: ListTasksRequest,
  nowMs: number,
): boolean {
  if (minDurationMs === undefined) return true;
  const from = timeOfTaskId(taskId);
  return from !== undefined && (isInProgress(state) ? nowMs : at) - from >= minDurationMs;
}

/** Whether the row of a task has the text and the agent that the request asks for; undefined if only the task itself shows that. */
function isFound(listed: ListedTask | undefined, { text, agent }: ListTasksRequest): boolean | undefined {
  if (text === undefined && agent === undefined) return true;
  if (listed === undefined) return undefined;
  if (text !== undefined && !hasText(listed, text)) return false;
  return agent === undefined ? true : listed.agents?.includes(agent);
}

function isFoundIn(task: Task, { text, agent }: ListTasksRequest): boolean {
  return (text === undefined || hasText(listedTaskOf(task), text)) && (agent === undefined || agentsOf(task).includes(agent));
}

/**
 * Whether the row of a task has everything that the request asks for. Without `historyLength` it asks for as many of the newest messages as
 * a row has room for.
 */
function isShown(task: IndexedTask, request: ListTasksRequest): task is IndexedTask & { listed: ListedTask } {
  const { listed, state } = task;
  const { historyLength, includeArtifacts } = request;
  if (isFound(listed, request) === undefined) return false;
  if (listed === undefined || listed.cut === true || includeArtifacts || !isTerminal(state)) return false;
  const { history = [], messages } = listed;
  return historyLength === undefined || historyLength <= history.length || history.length === messages;
}

/** undefined when retention has removed the task. */
async function readTask(
  server: A2AServer,
  { caller }: OperationContext,
  owned: OwnedTasks,
  { taskId }: IndexedTask,
): Promise<TaskView | undefined> {
  const record = owned.records.get(taskId);
  if (record === undefined) {
    server.lists.forget(taskId);
    return undefined;
  }
  try {
    return await server.feeds.view(taskId, caller, record);
  } catch (thrown) {
    if (!(thrown instanceof A2AError) || thrown.code !== 'TASK_NOT_FOUND') throw thrown;
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
    throw invalidMember('pageToken', 'must be the nextPageToken of an earlier response');
  }
  return { at: Number(at), taskId };
}
