import type { ViewItem } from './view-fold.ts';

/** Time of the status in an item of a stream; undefined for an item without one. */
export function statusTimeOf(item: ViewItem): string | undefined {
  if ('gap' in item) return undefined;
  if ('task' in item.event) return item.event.task.status.timestamp;
  return 'statusUpdate' in item.event ? item.event.statusUpdate.status.timestamp : undefined;
}
