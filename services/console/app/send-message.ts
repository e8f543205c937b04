import type { Message, Part, Task } from '@hopline/a2a';
import { messageOf } from '@hopline/client/outgoing';
import type { Connection } from './connection.ts';

/** Metadata of a request that continues an earlier task from one of its events. */
const FORK_KEY = 'hopline.fork';

/** Where a message goes. A new task without a context begins a conversation. */
export type Target =
  | { kind: 'new'; contextId?: string }
  | { kind: 'answer'; task: Pick<Task, 'id' | 'contextId'> }
  /** The agents receive what they and the client wrote up to the event of the cursor. */
  | { kind: 'fork'; taskId: string; cursor: string }
  /** The question of a task again. */
  | { kind: 'rerun'; taskId: string };

/** `agent`: its name; absent: the skills decide. */
export type Draft = { parts: readonly Part[]; target: Target; agent?: string | undefined };

/** The body of the request. The task continues without it. */
export function requestOf({ parts, target, agent }: Draft) {
  const origin = target.kind === 'fork' || target.kind === 'rerun' ? target.taskId : undefined;
  // Does not use crypto.randomUUID, which a page without TLS has only on localhost.
  const message: Message = messageOf({
    parts: [...parts],
    ...(target.kind === 'answer' && { taskId: target.task.id, contextId: target.task.contextId }),
    ...(target.kind === 'new' && target.contextId !== undefined && { contextId: target.contextId }),
    ...(origin !== undefined && { referenceTaskIds: [origin] }),
    ...(agent !== undefined && { metadata: { agent } }),
  });
  const metadata = target.kind === 'fork' && { [FORK_KEY]: { taskId: target.taskId, cursor: target.cursor } };
  return { message, configuration: { returnImmediately: true }, ...(metadata && { metadata }) };
}

/** The newest request of each connection without a successful answer. */
const unanswered = new WeakMap<Pick<Connection, 'post'>, { draft: string; request: ReturnType<typeof requestOf> }>();

/**
 * Sends a message. Resolves with the id of its task. The same draft again, after an answer that was lost, is the same message: if the server has it,
 * no second task begins.
 */
export async function send(connection: Pick<Connection, 'post'>, draft: Draft): Promise<string | undefined> {
  const text = JSON.stringify(draft);
  const before = unanswered.get(connection);
  const request = before?.draft === text ? before.request : requestOf(draft);
  unanswered.set(connection, { draft: text, request });
  const { task } = await connection.post<{ task?: { id: string } }>('/api/message:send', request);
  unanswered.delete(connection);
  return task?.id;
}
