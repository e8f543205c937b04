import type { Role, TraceCarrier, Work } from '@hopline/events';
import type { WorkQueue } from './work-queue.ts';

/**
 * Queues an item again if the queue lacks it. First it uses the item's own id: if the request of a relay that has stopped since still
 * arrives, the queue drops it as a duplicate, so that no attempt runs twice at once (simulator seed 1020004). If the queue knows the id but
 * lacks the item, it has lost the item, which is then queued under a second id.
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
