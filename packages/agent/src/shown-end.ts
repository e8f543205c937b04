import { foldedOrdinal } from '@hopline/events';
import { type Job, type Log, Requeued, Superseded, sleepUnlessAborted } from '@hopline/log';
import { ROOT_AGENT } from '@hopline/task';
import { AttemptFailed } from './attempt-failed.ts';
import { overBecause } from './task-watch.ts';

/**
 * Milliseconds after which a relay has nearly always stored the end of a turn as a fact. One read then confirms it, without a subscription.
 */
const FIRST_LOOK_MS = 20;
/**
 * If no relay shows a stored end for this long, the end is abandoned and another attempt runs. The time is as long as a writer retries one
 * append, and far longer than a takeover of a shard, so that turns that ended shortly before an outage of all relays are not repeated.
 */
export const END_SHOWN_MS_MAX = 5 * 60_000;

/** Interval in milliseconds at which a worker that waits for its end to be shown checks whether another worker has begun the item. */
const TAKEOVER_CHECK_MS = 10_000;

type ShownEndOptions = {
  /** Ordinal of the last input of the turn, or of the request for credentials. */
  lastN: number;
  /** Aborts when the process stops. */
  signal: AbortSignal;
  /** Default: END_SHOWN_MS_MAX. */
  waitMs?: number | undefined;
  /** The error if no relay has shown the input in time. Default: that of an end. */
  failure?: () => AttemptFailed;
};

const endNotShown = () => new AttemptFailed('no relay has shown the end of the turn', 'end_not_shown');

/**
 * Resolves when the log shows that the stored end of a turn was accepted, or that the task no longer needs it. Only then is the work item
 * done, because a stored end proves nothing. A newer attempt may have written before it, on a path to the log that was not frozen, and then
 * relays reject the end. If the worker of that attempt is dead, only the item can bring the task to its end.
 *
 * Rejects when the item must stay: with Superseded, with Requeued at a shutdown, with AttemptFailed after `waitMs`, or the error of the log.
 */
export async function requireShownEnd(
  log: Pick<Log, 'facts'>,
  job: Pick<Job, 'work' | 'item' | 'attempt' | 'isTakenOver'>,
  { lastN, signal, waitMs = END_SHOWN_MS_MAX, failure = endNotShown }: ShownEndOptions,
): Promise<void> {
  const { work, item, attempt } = job;
  const producer = { id: work.call?.id ?? ROOT_AGENT, item, attempt };
  await sleepUnlessAborted(FIRST_LOOK_MS, signal);
  const newest = await log.facts.last(work.taskId);
  if (newest === undefined) throw new Error('the log does not contain the task of this work item');
  const isShown = ({ record: { aggregate } }: typeof newest) => {
    const over = overBecause(aggregate, job);
    if (over === 'superseded') throw new Superseded();
    // If the next turn takes over the wait for credentials, this turn ends while its task continues.
    return over !== undefined || foldedOrdinal(aggregate, producer) >= lastN;
  };
  if (isShown(newest)) return;
  const takenOver = new AbortController();
  const late = new AbortController();
  // Not AbortSignal.timeout, which is kept until its time is over, however early the turn ends.
  const timer = setTimeout(() => late.abort(), waitMs);
  const ended = AbortSignal.any([signal, takenOver.signal, late.signal]);
  const check = setInterval(() => {
    // If the log is away, the next check tries again.
    job.isTakenOver?.().then(
      isTakenOver => isTakenOver && takenOver.abort(),
      () => {},
    );
  }, TAKEOVER_CHECK_MS);
  try {
    const after = { newest: newest.seq, id: newest.id };
    for await (const stored of await log.facts.follow(work.taskId, after, ended)) if (isShown(stored)) return;
  } finally {
    clearInterval(check);
    clearTimeout(timer);
  }
  if (signal.aborted) throw new Requeued('shutdown');
  if (takenOver.signal.aborted) throw new Superseded();
  throw failure();
}
