import { A2AError, type Dialect } from '@hopline/a2a';
import { type Cursor, parseCursor } from '@hopline/events';
import { ATTR } from '@hopline/telemetry';
import type { A2AServer, OperationContext, OperationResult } from '../a2a-server.ts';
import type { TaskFeed } from '../feed/task-feed.ts';
import { openViewer } from '../stream/open-viewer.ts';
import { taskIdOf } from './client-task-id.ts';
import { acquireTask } from './resolve-message.ts';
import { dialectOf, nameState } from './task-response.ts';

/**
 * SubscribeToTask, tasks/resubscribe. With a cursor, the stream has exactly the events after it, even for a task that has ended. Without
 * one, it has the task as it is, then the events that follow. Without a cursor, an ended task causes UNSUPPORTED_OPERATION in 1.0 and in
 * the legacy form, as they require; in 0.3 the stream has the task and ends. The stream stays open while the task requires input.
 */
export async function tasksSubscribe(server: A2AServer, context: OperationContext): Promise<OperationResult> {
  const { taskId } = context.dialect.decodeSubscribe(context.params);
  const releaseSlot = server.streams.acquire(context.caller, 'stream');
  let releaseTask = () => {};
  try {
    const { feed, release } = await acquireTask(server, context, await taskIdOf(server, context, taskId));
    releaseTask = release;
    const after = await cursorFor(feed, context.cursor);
    nameState(context, feed.aggregate!);
    const dialect = dialectOf(context, feed.isLegacy);
    const refusal = refusalOf(dialect, feed, after);
    if (refusal !== undefined) throw refusal;
    if (context.reconnects && feed.ended && isBeyond(after, feed)) {
      release();
      releaseSlot();
      return null;
    }
    const viewer = openViewer(server, context, { dialect, isTurn: false }, () => {
      release();
      releaseSlot();
    });
    if (after === undefined) viewer.followFromSnapshot(feed);
    else if (after !== 'invalid') {
      server.metrics?.resumes.add(1);
      context.hop.set({ [ATTR.cursor]: context.cursor });
      viewer.follow(feed, after);
    }
    return 'streamed';
  } catch (thrown) {
    releaseTask();
    releaseSlot();
    throw thrown;
  }
}

/** Whether no event of the task follows the cursor. */
function isBeyond(after: Cursor | 'invalid' | undefined, { generation }: TaskFeed): boolean {
  return after !== undefined && after !== 'invalid' && after.generation >= generation;
}

function refusalOf(dialect: Dialect, feed: TaskFeed, after: Cursor | 'invalid' | undefined): A2AError | undefined {
  const { taskId } = feed;
  if (after === 'invalid') {
    const detail = 'cursor does not belong to this task: send the id of one of its events, or no cursor for a snapshot';
    return new A2AError('INVALID_PARAMS', { detail, taskId });
  }
  if (after === undefined && feed.ended && dialect.name !== '0.3') {
    const detail = 'the task has ended: get it, or subscribe after the id of one of its events';
    return new A2AError('UNSUPPORTED_OPERATION', { detail, taskId });
  }
  return undefined;
}

async function cursorFor(feed: TaskFeed, text: string | undefined): Promise<Cursor | 'invalid' | undefined> {
  if (text === undefined) return undefined;
  const cursor = parseCursor(text);
  return cursor !== undefined && (await feed.reaches(cursor.generation)) ? cursor : 'invalid';
}
