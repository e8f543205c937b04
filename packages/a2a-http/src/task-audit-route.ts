import { A2AError } from '@hopline/a2a';
import { type A2AServer, fromLog, requireOwnTask } from '@hopline/a2a-server';
import { type Cursor, parseCursor } from '@hopline/events';
import type { FastifyInstance } from 'fastify';
import { registerHoplineRoute } from './hopline-route.ts';

export const TASK_AUDIT_PATH = '/tasks/{taskId}/audit';
export const EVENT_AUDIT_PATH = '/tasks/{taskId}/audit/{cursor}';

/** Audits that run at the same time in this process; further ones get 503 with Retry-After. */
const AUDITS_AT_ONCE_MAX = 2;

/** Reads audits from the log. Both methods may throw A2AError and errors of the log. */
export type TaskAudits = {
  /** Resolves with undefined for an unknown task. */
  report: (taskId: string) => Promise<object | undefined>;
  /** Explains where the event of a cursor comes from. Resolves with undefined when the task has no such event. */
  explain: (taskId: string, cursor: Cursor) => Promise<object | undefined>;
};

/**
 * Two routes for the task's owner: GET `/tasks/{taskId}/audit` reports where a task spent its time and whether anything was lost, and GET
 * `/tasks/{taskId}/audit/{cursor}` reports where one event comes from.
 */
export function registerTaskAudit(scope: FastifyInstance, server: A2AServer, audits: TaskAudits): void {
  let running = 0;
  const run = async (taskId: string, read: () => Promise<object>): Promise<object> => {
    if (running >= AUDITS_AT_ONCE_MAX)
      throw new A2AError('UNAVAILABLE', { detail: `${AUDITS_AT_ONCE_MAX} audits are running; retry later` });
    running += 1;
    try {
      return await read();
    } catch (thrown) {
      throw fromLog(thrown, taskId);
    } finally {
      running -= 1;
    }
  };
  registerHoplineRoute(scope, server, { path: TASK_AUDIT_PATH, method: 'audit_task' }, async (caller, { taskId = '' }) => {
    await requireOwnTask(server, caller, taskId);
    return run(taskId, async () => {
      const found = await audits.report(taskId);
      // Retention has removed the task since its owner was checked.
      if (found === undefined) throw new A2AError('TASK_NOT_FOUND');
      return found;
    });
  });
  registerHoplineRoute(
    scope,
    server,
    { path: EVENT_AUDIT_PATH, method: 'explain_event' },
    async (caller, { taskId = '', cursor: text = '' }) => {
      await requireOwnTask(server, caller, taskId);
      const cursor = parseCursor(text);
      if (cursor === undefined)
        throw new A2AError('INVALID_PARAMS', { taskId, detail: 'the cursor is not of the form GENERATION.SEQUENCE' });
      return run(taskId, async () => {
        const found = await audits.explain(taskId, cursor);
        if (found === undefined)
          throw new A2AError('INVALID_PARAMS', { taskId, detail: `the task has no event of generation ${cursor.generation}` });
        return found;
      });
    },
  );
}
