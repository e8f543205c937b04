import type { Role } from '@hopline/events';
import type { Job, Log, WorkGate } from '@hopline/log';
import { within } from './log-under-test.ts';

let roles = 0;
export const newRole = (): Role => {
  roles += 1;
  return `agent.contract-${roles}`;
};

/** Takes items in the background until stopped. */
export function worker(log: Log, role: Role, slots: number, handler: (job: Job) => Promise<void>, gate?: WorkGate) {
  const abort = new AbortController();
  const ended = log.work.take(role, { slots, signal: abort.signal, gate }, handler);
  return {
    signal: abort.signal,
    stop() {
      abort.abort();
      return within(ended, 'the end of the worker');
    },
  };
}

/** Rejects when the signal aborts, like a handler that requeues its item. */
export function untilAborted(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    const stop = () => reject(new Error('stopped'));
    if (signal.aborted) stop();
    signal.addEventListener('abort', stop, { once: true });
  });
}

/** A job without its functions. */
export const dataOf = ({ leaveSlot: _leaveSlot, isTakenOver: _isTakenOver, ...data }: Job): Job => data;

export const brief = ({ work, attempt, exhausted }: Job) => ({ taskId: work.taskId, attempt, exhausted });
