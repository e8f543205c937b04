import type { Role, TraceCarrier, Work } from '@hopline/events';
import type { WorkQueue } from './work-queue.ts';

/**
 * Queues an item again that the queue lacks. First under its own id: if the request of a relay that was stopped meanwhile still arrives, the queue
 * drops it as a duplicate, so that no attempt runs twice at once (simulator seed 1020004). If the queue knows the id and lacks the item, it has
 * lost it, and takes it under a second id.
 */
export async function requestLost(
  work: Pick<WorkQueue, 'request' | 'hasItem'>,
  role: Role,
  item: Work,
  options: { id: string; trace: TraceCarrier },
): Promise<void> {
  const { duplicate } = await work.request(role, item, options);
  if (!duplicate || (await work.hasItem(role, item.taskId))) return;
  await work.request(role, item, { ...options, id: `${options.id}:again` });
}
