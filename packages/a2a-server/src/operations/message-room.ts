import { setImmediate } from 'node:timers/promises';
import type { NewPushConfig } from '@hopline/a2a';
import { TenantFull } from '@hopline/log';
import type { A2AServer, OperationContext } from '../a2a-server.ts';
import { fromLog } from '../log-faults.ts';
import { requirePushRoom } from './push-store.ts';

/**
 * Refuses a message that may begin a task while its caller, its tenant, the queue or the webhooks have no room for it. This runs before the response
 * begins, so that the client gets a status.
 */
export async function requireTaskRoom(
  server: A2AServer,
  context: OperationContext,
  taskId: string,
  push: NewPushConfig | undefined,
): Promise<void> {
  await server.quotas.requireTaskRoom(context.caller);
  await requireQueueRoom(server, context, taskId);
  if (push !== undefined) await requirePushRoom(server, context, taskId, push);
}

/** Results are cached for a moment. A cached refusal takes effect here; otherwise the result is read while the feed opens. */
export async function requireQueueRoom(server: A2AServer, context: OperationContext, taskId: string): Promise<void> {
  const room = requireRoom(server, context, taskId);
  room.catch(() => {});
  await Promise.race([room, setImmediate()]);
}

/** Refuses a message whose work would not fit into the queue, before any part of it is stored. */
export async function requireRoom({ log, role, quotas }: A2AServer, { caller }: OperationContext, taskId: string): Promise<void> {
  await log.work.requireRoom(role, caller).catch(thrown => {
    if (thrown instanceof TenantFull) quotas.countRefusal(caller, 'items');
    throw fromLog(thrown, taskId);
  });
}
