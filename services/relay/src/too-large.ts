import type { Fact, TaskControl } from '@hopline/events';
import { evolve, failTask } from '@hopline/task';

const TOO_LARGE = 'an event of this task is larger than the log takes';

/** An event that no record can hold ends its task, visibly; reading it again would end the same way for ever. `nowMs`: epoch milliseconds. */
export function failTooLarge(control: TaskControl, nowMs: number): { facts: Fact[]; control: TaskControl } {
  const { facts } = failTask(control, TOO_LARGE, Math.max(control.at, Math.round(nowMs)));
  return { facts, control: facts.reduce<TaskControl>(evolve, control) };
}

/** Whether the facts say so already: then even that is too large. */
export function isTooLargeNote(facts: readonly Fact[]): boolean {
  return facts.some(fact => fact.kind === 'status.changed' && fact.event.statusUpdate.metadata?.reason === TOO_LARGE);
}
