import type { Connection } from './connection.ts';
import { isOutage } from './retry.ts';

type CheckConnection = Pick<Connection, 'closed' | 'onEvent'>;

/**
 * Runs `check` every `ms` until the log is closed, never twice at the same time. Returns a function that runs it now. A check that rejects is repeated by
 * the next one; `what` names it in the event that reports a defect.
 */
export function checkPeriodically(connection: CheckConnection, ms: number, what: string, check: () => Promise<void>): () => void {
  const { closed } = connection;
  let isChecking = false;
  const run = () => {
    if (isChecking || closed.aborted) return;
    isChecking = true;
    check()
      .catch(error => reportFailedCheck(connection, what, error))
      .finally(() => {
        isChecking = false;
      });
  };
  const timer = setInterval(run, ms).unref();
  closed.addEventListener('abort', () => clearInterval(timer), { once: true });
  return run;
}

/**
 * Reports a failed check unless an outage explains it: outages pass, and the next check does the work of this one. Any other error is a
 * defect that would otherwise repeat unseen.
 */
export function reportFailedCheck({ closed, onEvent }: CheckConnection, what: string, error: unknown): void {
  if (!closed.aborted && !isOutage(error)) onEvent({ type: 'check-failed', what, error });
}
