import { type Log, sleepUnlessAborted } from '@hopline/log';
import { LINE, type Logger } from '@hopline/telemetry';
import { NO_CHANGE } from './lost-inputs.ts';
import type { TurnContext } from './turn-runner.ts';

/** Interval at which the agents of open calls are checked. */
const LIVENESS_CHECK_MS = 1_000;
/** If an interval was longer than this, the process was suspended or the log stored nothing, so heartbeats are missing. */
const SUSPENDED_MS = 5_000;

type GoneAgentsOptions = Pick<TurnContext, 'view' | 'writer' | 'isLive' | 'signal'> & {
  log: Pick<Log, 'check'>;
  logger: Pick<Logger, 'warn'>;
  /** A call is abandoned when its agent has been out of the registry for this long and the log was storing writes during that time. */
  agentGoneMs: number;
};

/**
 * Ends the calls of agents that have left the registry, whatever the planner and profile. Otherwise their tasks would stay open for as long
 * as the log keeps them. An agent that returns in time continues with a new attempt. Resolves when `signal` aborts; rejects when the writer
 * has failed.
 */
export async function abandonGoneAgents({
  view,
  writer,
  isLive,
  signal,
  log,
  logger,
  agentGoneMs,
}: GoneAgentsOptions): Promise<void> {
  const lastLiveAt = new Map<string, number>();
  const abandoned = new Set<string>();
  let checkedAt = performance.now();
  const isDue = (call: string) => performance.now() - (lastLiveAt.get(call) ?? Number.POSITIVE_INFINITY) >= agentGoneMs;
  while (!signal.aborted) {
    await sleepUnlessAborted(LIVENESS_CHECK_MS, signal);
    if (signal.aborted) return;
    const open = view.calls.filter(call => view.ended(call) === undefined && !abandoned.has(call));
    const missing = new Set(open.filter(call => !isLive(view.agentOf(call))));
    // While the log is unavailable, an agent cannot show that it is alive.
    const isAway = missing.size > 0 && (await isUnavailable(log));
    // A server with a full disk answers but stores nothing, neither the heartbeats of agents nor this input. The wait for this input then
    // counts as a suspension.
    const hasNews = [...missing].some(call => lastLiveAt.get(call) === checkedAt || isDue(call));
    if (!isAway && hasNews && !signal.aborted) {
      writer.add(NO_CHANGE);
      await writer.flush();
    }
    if (signal.aborted) return;
    const now = performance.now();
    const wasSuspended = now - checkedAt > SUSPENDED_MS;
    checkedAt = now;
    for (const call of open) {
      if (!missing.has(call) || isAway || wasSuspended || !lastLiveAt.has(call)) lastLiveAt.set(call, now);
      else if (isDue(call)) {
        abandoned.add(call);
        logger.warn({ agent: view.agentOf(call), call_id: call, reason: AGENT_GONE }, LINE.callAbandoned);
        // Also ends the task's wait for credentials.
        if (view.needsCredentials(call)) writer.add({ kind: 'status', state: 'TASK_STATE_WORKING' });
        writer.add({ kind: 'ended', call, state: 'TASK_STATE_FAILED', reason: AGENT_GONE, retryable: true });
      }
    }
  }
}

/** Reason of the failure of a call whose agent has left the registry. */
export const AGENT_GONE = 'the agent is gone';

async function isUnavailable(log: Pick<Log, 'check'>): Promise<boolean> {
  try {
    await log.check();
    return false;
  } catch {
    return true;
  }
}
