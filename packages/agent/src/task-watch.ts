import { isTerminal } from '@hopline/a2a';
import { isSameItem, type TaskAggregate } from '@hopline/events';
import type { Job, Log } from '@hopline/log';
import { ROOT_AGENT } from '@hopline/task';
import { TASK_ENDED } from './agent.ts';

/**
 * Why the task no longer needs a turn. `superseded`: a newer attempt of the same work runs. `other item`: another stored item of
 * the same work has written first, and the relay rejects the inputs of this one.
 */
export type Over = typeof TASK_ENDED | 'later turn' | 'superseded' | 'other item';

type RunningJob = Pick<Job, 'work' | 'item' | 'attempt'>;

export function overBecause(aggregate: TaskAggregate, { work, item, attempt }: RunningJob): Over | undefined {
  if (isTerminal(aggregate.state)) return TASK_ENDED;
  if (aggregate.turn > work.turn) return 'later turn';
  // A stale read: the log does not show this turn yet.
  if (aggregate.turn < work.turn) return undefined;
  const { call } = work;
  // An agent that waits for credentials still works.
  const waitsForInput = aggregate.state === 'TASK_STATE_INPUT_REQUIRED';
  if (call !== undefined ? aggregate.calls[call.id]?.state !== undefined : waitsForInput) return TASK_ENDED;
  const producer = aggregate.producers[call?.id ?? ROOT_AGENT];
  if (producer === undefined) return undefined;
  if (!isSameItem(producer, { item })) return 'other item';
  return producer.attempt > attempt ? 'superseded' : undefined;
}

/** Follows the task after log sequence `after`. Resolves when the turn is over, with undefined when `signal` aborts; rejects when the log fails. */
export async function watchTask(log: Log, job: RunningJob, after: number, signal: AbortSignal): Promise<Over | undefined> {
  for await (const { record } of await log.facts.follow(job.work.taskId, after, signal)) {
    const over = overBecause(record.aggregate, job);
    if (over !== undefined) return over;
  }
  return undefined;
}
