import type { Progress } from '@modelcontextprotocol/client';
import { PROGRESS_PENDING_MAX } from './limits.ts';

/** Yields the progress of a call and returns its result. A slow reader loses old progress, never the result. */
export async function* withProgress<T>(
  start: (onprogress: (progress: Progress) => void) => Promise<T>,
): AsyncGenerator<Progress, T> {
  const pending: Progress[] = [];
  let settled = false;
  let wake = Promise.withResolvers<void>();
  const result = start(progress => {
    if (pending.length === PROGRESS_PENDING_MAX) pending.shift();
    pending.push(progress);
    wake.resolve();
  });
  const onSettled = () => {
    settled = true;
    wake.resolve();
  };
  result.then(onSettled, onSettled);
  while (true) {
    await wake.promise;
    wake = Promise.withResolvers();
    for (let next = pending.shift(); next !== undefined; next = pending.shift()) yield next;
    if (settled) return await result;
  }
}
