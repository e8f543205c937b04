import { isTerminal } from '@hopline/a2a';
import type { TaskAggregate, Work } from '@hopline/events';
import type { Log } from '@hopline/log';
import { ROOT_AGENT } from '@hopline/task';
import { TASK_ENDED } from './agent.ts';

/** Why the task no longer needs a turn. `superseded`: a newer attempt of the same work runs. */
export type Over = typeof TASK_ENDED | 'later turn' | 'superseded';

export function overBecause(aggregate: TaskAggregate, work: Work, attempt: number): Over | undefined {
  if (isTerminal(aggregate.state)) return TASK_ENDED;
  if (aggregate.turn > work.turn) return 'later turn';
  const { call } = work;
  // An agent that waits for credentials still works.
  const waitsForInput = aggregate.state === 'TASK_STATE_INPUT_REQUIRED';
  if (call !== undefined ? aggregate.calls[call.id]?.state !== undefined : waitsForInput) return TASK_ENDED;
  const producer = aggregate.producers[call?.id ?? ROOT_AGENT];
  return producer !== undefined && producer.attempt > attempt ? 'superseded' : undefined;
}

/** Follows the task after log sequence `after`. Resolves when the turn is over, with undefined when `signal` aborts; rejects when the log fails. */
export async function watchTask(
  log: Log,
  { work, attempt }: { work: Work; attempt: number },
  after: number,
  signal: AbortSignal,
): Promise<Over | undefined> {
  for await (const { record } of await log.facts.follow(work.taskId, after, signal)) {
    const over = overBecause(record.aggregate, work, attempt);
    if (over !== undefined) return over;
  }
  return undefined;
}
