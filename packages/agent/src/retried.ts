import { backoffMs, sleepUnlessAborted } from '@hopline/log';
import type { AgentEvent } from './agent.ts';
import { notice } from './event-constructors.ts';
import { RUN_RETRIES_MAX, RUN_RETRY_MS_BASE, RUN_RETRY_MS_MAX } from './limits.ts';
import { AgentMisuse, kindOf } from './misuse.ts';

/** Whether and how often a tool or a step runs again after it has thrown. */
export type RetryOptions = {
  /** How often a run that throws is repeated: 0, the default, to RUN_RETRIES_MAX. Use it only for effects that may happen twice. */
  retries?: number | undefined;
  /** Whether to try again after this error. Default: after every error. */
  retryIf?: ((error: unknown) => boolean) | undefined;
};

/**
 * Runs `run` until it succeeds or its retries are used up, with a notice before each retry. The wait doubles each time and has full jitter.
 */
export async function* retried<T>(
  name: string,
  run: () => T | Promise<T>,
  { retries = 0, retryIf = () => true }: RetryOptions,
  signal: AbortSignal,
): AsyncGenerator<AgentEvent, T, unknown> {
  if (!Number.isSafeInteger(retries) || retries < 0 || retries > RUN_RETRIES_MAX)
    throw new AgentMisuse(`retries must be a whole number from 0 to ${RUN_RETRIES_MAX}`);
  if (typeof retryIf !== 'function') throw new AgentMisuse(`retryIf is ${kindOf(retryIf)}, not a function`);
  for (let failures = 1; ; failures += 1) {
    signal.throwIfAborted();
    try {
      return await run();
    } catch (error) {
      if (signal.aborted || failures > retries || error instanceof AgentMisuse || !retryIf(error)) throw error;
    }
    yield notice(`${name} failed and runs again (${failures} of ${retries})`);
    await sleepUnlessAborted(backoffMs(failures, RUN_RETRY_MS_BASE, RUN_RETRY_MS_MAX), signal);
  }
}
