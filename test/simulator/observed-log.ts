import { type FollowStart, HistoryLost, type Job, type Log, LogFull, LogUnavailable, Requeued, Superseded } from '@hopline/log';
import { SUPERVISOR } from '@hopline/task';
import type { Coverage } from './coverage.ts';
import type { Situations } from './situations.ts';

/** `process`: the name of the process that uses the log. */
type Observer = { coverage: Coverage; situations: Situations; process: string };

/**
 * The log of a process, which reports to the coverage. What the log returns is returned unchanged and at the same time, so that a run is the same with
 * it as without it.
 */
export function observedLog(log: Log, { coverage, situations, process }: Observer): Log {
  const { facts, inputs, leases, work } = log;
  return extended(log, {
    facts: extended(facts, {
      append: (record, options) =>
        observed(
          facts.append(record, options),
          () => {
            coverage.onFactsStored(record);
            situations.onFactsStored(record);
          },
          error => coverage.onFactsFailed(error),
        ),
      follow: (taskId, after, signal, owner) =>
        observed(
          facts.follow(taskId, after, signal, owner),
          records => {
            coverage.add('follower', `opened ${startOf(after)}`);
            observeRecords(records, signal, coverage);
          },
          () => coverage.add('follower', 'could not open'),
        ),
    }),
    inputs: extended(inputs, {
      append: (taskId, record, options) =>
        observed(
          inputs.append(taskId, record, options),
          ({ duplicate }) => coverage.add('writer', duplicate ? 'an input stored by an earlier try' : 'an input stored'),
          error => coverage.onInputFailed(error),
        ),
    }),
    leases: extended(leases, {
      put: (key, value) =>
        observed(
          leases.put(key, value),
          () => value.leaving && coverage.add('lease', 'a leaving process shows it'),
          () => {},
        ),
      create: (key, value) =>
        observed(
          leases.create(key, value),
          () => coverage.onLease(key, value.owner, true),
          error => coverage.onLease(key, value.owner, true, error),
        ),
      update: (key, value, revision) =>
        observed(
          leases.update(key, value, revision),
          () => coverage.onLease(key, value.owner, false),
          error => coverage.onLease(key, value.owner, false, error),
        ),
    }),
    work: extended(work, {
      request: (role, item, options) =>
        observed(
          work.request(role, item, options),
          () => coverage.add('work', 'an item is requested'),
          error => coverage.add('work', error instanceof LogFull ? 'a request is refused: no room' : 'a request has no answer'),
        ),
      take: (role, options, handler) =>
        work.take(role, options, job => {
          const handled = observedJob(job, handler, coverage);
          if (role === SUPERVISOR) situations.onSupervised(process, job, handled);
          return handled;
        }),
    }),
  });
}

/** An object with some members replaced. Methods of the others run on the object itself. */
function extended<T extends object>(object: T, members: Partial<T>): T {
  return new Proxy(object, {
    get: (target, name) => {
      if (Object.hasOwn(members, name)) return members[name as keyof T];
      const member = target[name as keyof T];
      return typeof member === 'function' ? member.bind(target) : member;
    },
  });
}

/** Reports how a promise ends, and returns it. */
function observed<T>(promise: Promise<T>, onDone: (result: T) => unknown, onFailed: (error: unknown) => void): Promise<T> {
  promise.then(onDone, onFailed);
  return promise;
}

function startOf(after: FollowStart): string {
  if (after === 'new') return 'for a new task';
  if (typeof after === 'number') return after === 0 ? 'from the beginning' : 'after a sequence';
  return after.skipsText ? 'after the newest record, without text' : 'after the newest record';
}

/** Replaces the iterator in place: the reader already waits for the promise of these records. */
function observeRecords<T>(records: AsyncIterable<T>, signal: AbortSignal, coverage: Coverage): void {
  const iterate = records[Symbol.asyncIterator].bind(records);
  const closed = () => coverage.add('follower', 'closed by its reader');
  const observedIterator = (): AsyncIterator<T> => {
    const iterator = iterate();
    return {
      next: () =>
        observed(
          iterator.next(),
          ({ done }) => done && signal.aborted && closed(),
          error => {
            if (error instanceof HistoryLost) coverage.add('follower', 'reset: the log has lost records');
            else if (error instanceof LogUnavailable) coverage.add('follower', 'ended: the log is unavailable');
          },
        ),
      return: value => {
        closed();
        return iterator.return?.(value) ?? Promise.resolve({ done: true, value });
      },
    };
  };
  Object.defineProperty(records, Symbol.asyncIterator, { value: observedIterator });
}

function observedJob(job: Job, handler: (job: Job) => Promise<void>, coverage: Coverage): Promise<void> {
  const { attempt, requeues, exhausted } = job;
  if (exhausted) coverage.add('work', 'delivered after the last attempt');
  else if (attempt === 1) coverage.add('work', 'delivered for the first time');
  else coverage.add('work', requeues > 0 ? 'delivered again after a requeue' : 'delivered again as another attempt');
  return observed(
    handler(job),
    () => coverage.add('work', 'acknowledged: done'),
    error => {
      if (error instanceof Requeued) coverage.add('work', 'requeued: the worker stops');
      else coverage.add('work', error instanceof Superseded ? 'left to a newer attempt' : 'returned: the handler failed');
    },
  );
}
