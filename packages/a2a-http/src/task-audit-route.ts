import { A2AError } from '@hopline/a2a';
import { type A2AServer, fromLog, requireOwnTask } from '@hopline/a2a-server';
import type { FastifyInstance } from 'fastify';
import { registerOwnRoute } from './own-route.ts';

export const TASK_AUDIT_PATH = '/tasks/{taskId}/audit';

/** Audits that run at the same time in this process; further ones get 503 with Retry-After. */
const AUDITS_AT_ONCE_MAX = 2;

/** Resolves with undefined for an unknown task. May throw A2AError and errors of the log. */
export type AuditTask = (taskId: string) => Promise<object | undefined>;

/** GET `/tasks/{taskId}/audit`: where a task spent its time, and whether anything was lost, for the task's owner. */
export function registerTaskAudit(scope: FastifyInstance, server: A2AServer, auditTask: AuditTask): void {
  let running = 0;
  const audit = async (taskId: string): Promise<object> => {
    if (running >= AUDITS_AT_ONCE_MAX)
      throw new A2AError('UNAVAILABLE', { detail: `${AUDITS_AT_ONCE_MAX} audits are running; retry later` });
    running += 1;
    try {
      const found = await auditTask(taskId);
      // Retention has removed the task since its owner was checked.
      if (found === undefined) throw new A2AError('TASK_NOT_FOUND');
      return found;
    } catch (thrown) {
      throw fromLog(thrown, taskId);
    } finally {
      running -= 1;
    }
  };
  registerOwnRoute(scope, server, TASK_AUDIT_PATH, async ({ headers, params: { taskId = '' } }) => {
    await requireOwnTask(server, headers, taskId);
    return audit(taskId);
  });
}
