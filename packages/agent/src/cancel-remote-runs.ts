import type { TraceCarrier } from '@hopline/events';
import type { Job } from '@hopline/log';
import { LINE, type Logger } from '@hopline/telemetry';
import type { Agent } from './agent.ts';

type CancelDeps = { agent: Agent; name: string; logger: Logger };

/**
 * Cancels runs that attempts of an item began on a server. Rejects if the server neither answers nor refuses; the item is then delivered
 * again, and the next attempt goes on canceling. After the last attempt no further cancel is sent.
 */
export async function cancelRemoteRuns(
  { agent, name, logger }: CancelDeps,
  { exhausted, leaveSlot }: Pick<Job, 'exhausted' | 'leaveSlot'>,
  { runs, trace = {} }: { runs: readonly unknown[]; trace?: TraceCarrier | undefined },
): Promise<void> {
  if (agent.cancelRemoteRun === undefined || runs.length === 0) return;
  leaveSlot?.();
  const results = await Promise.allSettled(runs.map(run => agent.cancelRemoteRun?.(run, trace)));
  const left = results.filter(({ status }) => status === 'rejected').length;
  if (left === 0) return;
  logger.warn({ agent: name, count: left }, LINE.remoteRunLeft);
  if (!exhausted) throw new RemoteRunLeft();
}

/** A server did not answer a cancel. */
class RemoteRunLeft extends Error {
  override readonly name = 'RemoteRunLeft';

  constructor() {
    super('the server of the agent has not answered the cancel of a run');
  }
}
