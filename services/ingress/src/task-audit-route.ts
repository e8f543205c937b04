import { A2AError, type JsonObject } from '@hopline/a2a';
import { sendRestError } from '@hopline/a2a-http';
import { type A2AServer, report, requireOwnTask } from '@hopline/a2a-server';
import { LogUnavailable } from '@hopline/log';
import { reportTask, TaskTooLong } from '@hopline/task-audit';
import type { FastifyInstance } from 'fastify';

/** Records of facts and inputs that one audit reads: about 30,000 tokens that were sent one by one. */
export const AUDIT_RECORDS_MAX = 20_000;
/** Bytes of inputs that one audit reads. */
export const AUDIT_INPUT_BYTES_MAX = 32 * 1024 * 1024;
/** Audits that run at the same time in this process; further ones get 503 with Retry-After. */
export const AUDITS_AT_ONCE_MAX = 2;

const LIMITS = { recordsMax: AUDIT_RECORDS_MAX, inputBytesMax: AUDIT_INPUT_BYTES_MAX };

/**
 * GET `/tasks/{taskId}/audit`: where a task spent its time, and whether anything was lost, for the task's owner. Numbers and names,
 * never text. Errors have the form of HTTP+JSON.
 */
export function registerTaskAudit(app: FastifyInstance, server: A2AServer): void {
  let running = 0;
  app.get<{ Params: { taskId: string } }>('/tasks/:taskId/audit', async (request, reply) => {
    const { taskId } = request.params;
    try {
      await requireOwnTask(server, request.headers, taskId);
      if (running >= AUDITS_AT_ONCE_MAX)
        throw new A2AError('UNAVAILABLE', { detail: `${AUDITS_AT_ONCE_MAX} audits are running; retry later` });
      running += 1;
      const audited = await audit(server, taskId).finally(() => {
        running -= 1;
      });
      // Shared caches do not key on API key headers: they would serve one caller's task to another.
      return reply.header('cache-control', 'no-store').type('application/json').send(JSON.stringify(audited));
    } catch (thrown) {
      const error = A2AError.from(thrown);
      report(server, error);
      return sendRestError(request, reply, error);
    }
  });
}

async function audit({ log }: A2AServer, taskId: string) {
  try {
    const found = await reportTask(log, taskId, LIMITS);
    // Retention has removed the task since its owner was checked.
    if (found === undefined) throw new A2AError('TASK_NOT_FOUND');
    return found;
  } catch (thrown) {
    if (thrown instanceof LogUnavailable) throw new A2AError('UNAVAILABLE', { taskId, cause: thrown });
    if (thrown instanceof TaskTooLong)
      throw new A2AError('UNSUPPORTED_OPERATION', { taskId, detail: `${thrown.message}, too many to audit` });
    throw thrown;
  }
}

/** For `/openapi.json`. */
export const TASK_AUDIT_PATHS: JsonObject = {
  '/tasks/{taskId}/audit': {
    get: {
      operationId: 'AuditTask',
      summary:
        'Reports where a task spent its time and whether any input was lost: numbers and names, never text. Not part of A2A.',
      parameters: [{ name: 'taskId', in: 'path', required: true, schema: { type: 'string', pattern: '^[A-Za-z0-9_-]{1,128}$' } }],
      responses: {
        '200': {
          description: 'The time line of the task, and `audit`: received, accepted, rejected and lost inputs by kind.',
          content: {
            'application/json': { schema: { type: 'object', required: ['taskId', 'state', 'producers', 'events', 'audit'] } },
          },
        },
        '400': { description: 'The task has too many records for one audit.' },
        '401': { description: 'Credentials are missing, expired or invalid.' },
        '404': { description: 'The task does not exist, or it is not the caller’s.' },
        '503': { description: 'The log is away, or too many audits are running; retry after `Retry-After`.' },
      },
    },
  },
};
