import { isTerminal } from '@hopline/a2a';
import { isSameItem, type TaskAggregate } from '@hopline/events';
import { type Job, type Log, sleepUnlessAborted } from '@hopline/log';
import { ROOT_AGENT } from '@hopline/task';
import { TASK_ENDED } from './agent.ts';

/**
 * Why the task no longer needs a turn. `superseded`: a newer attempt of the same work runs. `other item`: another stored item of the same
 * work has written first, so the relay rejects the inputs of this item.
 */
export type Over = typeof TASK_ENDED | 'later turn' | 'superseded' | 'other item';

type RunningJob = Pick<Job, 'work' | 'item' | 'attempt'>;

export function overBecause(aggregate: TaskAggregate, { work, item, attempt }: RunningJob): Over | undefined {
  if (isTerminal(aggregate.state)) return TASK_ENDED;
  if (aggregate.turn > work.turn) return 'later turn';
  const { call } = work;
  // An agent that waits for credentials still works.
  const waitsForInput = aggregate.state === 'TASK_STATE_INPUT_REQUIRED';
  if (call !== undefined ? aggregate.calls[call.id]?.state !== undefined : waitsForInput) return TASK_ENDED;
  const producer = aggregate.producers[call?.id ?? ROOT_AGENT];
  if (producer === undefined) return undefined;
  if (!isSameItem(producer, { item })) return 'other item';
  return producer.attempt > attempt ? 'superseded' : undefined;
}

/**
 * Milliseconds after which a turn's task is followed. A shorter turn needs no subscription and receives no records, but a cancellation may
 * reach its agent this much later.
 */
export const WATCH_AFTER_MS = 250;

/**
 * After a while, begins to follow the task. Resolves with the reason when the turn is over, or with undefined when `signal` aborts. Rejects
 * when the log fails.
 */
export async function watchTask(log: Log, job: RunningJob, signal: AbortSignal): Promise<Over | undefined> {
  await sleepUnlessAborted(WATCH_AFTER_MS, signal);
  if (signal.aborted) return undefined;
  const newest = await log.facts.last(job.work.taskId);
  if (newest === undefined) throw new Error('the log does not contain the task of this work item');
  const over = overBecause(newest.record.aggregate, job);
  if (over !== undefined) return over;
  const after = { newest: newest.seq, id: newest.id, skipsText: true };
  for await (const { record } of await log.facts.follow(job.work.taskId, after, signal)) {
    const over = overBecause(record.aggregate, job);
    if (over !== undefined) return over;
  }
  return undefined;
}
