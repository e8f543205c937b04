import type { Producer, TaskAggregate } from '@hopline/events';
import { Superseded } from './errors.ts';

/**
 * Throws Superseded if a newer attempt of a producer has written. The relay rejects the inputs of a superseded attempt. If the newer attempt has died, this
 * worker must not hold on to the item: the next attempt needs it.
 */
export function requireNewest({ producers }: TaskAggregate, { id, attempt }: Pick<Producer, 'id' | 'attempt'>): void {
  if ((producers[id]?.attempt ?? 0) > attempt) throw new Superseded();
}
