import type { Connection } from './connection.ts';

/**
 * Runs `check` every `ms` until the log is closed, never twice at the same time. Returns a function that runs it now. A check that rejects is repeated by
 * the next one.
 */
export function checkPeriodically({ closed }: Pick<Connection, 'closed'>, ms: number, check: () => Promise<void>): () => void {
  let isChecking = false;
  const run = () => {
    if (isChecking || closed.aborted) return;
    isChecking = true;
    check()
      .catch(() => {})
      .finally(() => {
        isChecking = false;
      });
  };
  const timer = setInterval(run, ms).unref();
  closed.addEventListener('abort', () => clearInterval(timer), { once: true });
  return run;
}
