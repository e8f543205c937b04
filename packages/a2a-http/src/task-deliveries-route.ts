import { type A2AServer, type PushDeliveries, pushDeliveriesOf } from '@hopline/a2a-server';
import type { FastifyInstance } from 'fastify';
import { registerHoplineRoute } from './hopline-route.ts';

export const TASK_DELIVERIES_PATH = '/tasks/{taskId}/deliveries';

/** A webhook of a task. Times are ISO 8601 in UTC. */
type ListedWebhook = Omit<PushDeliveries, 'failingSince' | 'retryAt'> & { failingSince?: string; retryAt?: string };

/** GET `/tasks/{taskId}/deliveries` reports to the task's owner how far each webhook has got. A2A has only the configurations. */
export function registerTaskDeliveries(scope: FastifyInstance, server: A2AServer): void {
  registerHoplineRoute(
    scope,
    server,
    { path: TASK_DELIVERIES_PATH, method: 'list_deliveries' },
    async (caller, { taskId = '' }) => ({
      webhooks: (await pushDeliveriesOf(server, caller, taskId)).map(listed),
    }),
  );
}

function listed({ failingSince, retryAt, ...webhook }: PushDeliveries): ListedWebhook {
  return {
    ...webhook,
    ...(failingSince !== undefined && { failingSince: new Date(failingSince).toISOString() }),
    ...(retryAt !== undefined && { retryAt: new Date(retryAt).toISOString() }),
  };
}
