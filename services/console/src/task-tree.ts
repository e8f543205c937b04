import { A2AError } from '@hopline/a2a';
import type { agentTasks } from '@hopline/local-cluster';
import { type TaskBelow, tasksBelow } from '@hopline/task-audit';
import type { IngressConnection } from './ingress-connection.ts';

type Sources = {
  ingress: IngressConnection;
  auditBelow: ReturnType<typeof agentTasks>;
  /** Headers of the caller, for ingress only. */
  credentials: Record<string, string>;
  signal: AbortSignal;
};

/**
 * The tasks below a task that the caller may read. Ids of further tasks come from audits only, never from the caller, so no caller reads another task
 * of a cluster below through the console. Throws the refusal of ingress.
 */
export async function taskTree(taskId: string, { ingress, auditBelow, credentials, signal }: Sources): Promise<TaskBelow[]> {
  const { statusCode, body } = await ingress.request({
    method: 'GET',
    path: `/tasks/${encodeURIComponent(taskId)}/audit`,
    headers: credentials,
    signal,
  });
  if (statusCode !== 200) {
    await body.dump();
    if (statusCode === 401) throw new A2AError('UNAUTHENTICATED');
    if (statusCode === 403) throw new A2AError('PERMISSION_DENIED', { detail: 'ingress refuses these credentials' });
    throw new A2AError(statusCode === 404 ? 'TASK_NOT_FOUND' : 'UNAVAILABLE', { taskId });
  }
  const report = (await body.json()) as Parameters<typeof tasksBelow>[0];
  return tasksBelow(report, (agent, id) => auditBelow(agent, id, signal));
}
