import type { Fact, TaskAggregate } from '@hopline/events';
import { evolve, failTask } from '@hopline/task';

const TOO_LARGE = 'an event of this task is larger than the log takes';

/** An event that no record can hold ends its task, visibly; reading it again would end the same way for ever. `nowMs`: epoch milliseconds. */
export function failTooLarge(aggregate: TaskAggregate, nowMs: number): { facts: Fact[]; aggregate: TaskAggregate } {
  const { facts } = failTask(aggregate, TOO_LARGE, Math.max(aggregate.at, Math.round(nowMs)));
  return { facts, aggregate: facts.reduce<TaskAggregate>(evolve, aggregate) };
}

/** Whether the facts say so already: then even that is too large. */
export function isTooLargeNote(facts: readonly Fact[]): boolean {
  return facts.some(fact => fact.kind === 'status.changed' && fact.event.statusUpdate.metadata?.reason === TOO_LARGE);
}
