import { type LiveAgents, type RegisteredAgent, sleepUnlessAborted } from '@hopline/log';

/** How long a task waits for a first agent if its supervisor started at least `waitMs` ago and has seen no agent since. */
export const FIRST_AGENT_WAIT_MS = 10_000;
/** Default of HOPLINE_AGENT_WAIT_MS: enough time for the pod of a drained node to be scheduled elsewhere and for its image to be pulled. */
export const AGENT_WAIT_MS = 60_000;
const POLL_MS = 100;

type AgentWait = {
  /** How long to wait. If no agent has been seen for at least this long since the supervisor started, it is `firstMs`. */
  waitMs: number;
  firstMs?: number;
};

/**
 * Resolves with the live agents, and those whose last heartbeat is younger than `waitMs`, because they may be restarting, and a question
 * for them must not go to another agent. Waits while there are none, and longer if the supervisor has just started.
 */
export async function atLeastOneAgent(
  agents: Pick<LiveAgents, 'seenWithin' | 'msSinceSeen'>,
  { waitMs, firstMs = FIRST_AGENT_WAIT_MS }: AgentWait,
  signal: AbortSignal,
): Promise<RegisteredAgent[]> {
  const until = performance.now() + (agents.msSinceSeen() < waitMs ? waitMs : Math.min(firstMs, waitMs));
  const isMissing = () => performance.now() < until && agents.seenWithin(waitMs).length === 0;
  while (isMissing() && !signal.aborted) await sleepUnlessAborted(POLL_MS, signal);
  return agents.seenWithin(waitMs);
}
