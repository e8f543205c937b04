import { type AgentRegistration, type LiveAgents, sleepUnlessAborted } from '@hopline/log';

/** How long a task waits for a first agent if its supervisor started at least `waitMs` ago and has seen none since. */
export const FIRST_AGENT_WAIT_MS = 10_000;
/** Default of HOPLINE_AGENT_WAIT_MS: enough time for a drained node's pod to be scheduled elsewhere and its image to be pulled. */
export const AGENT_WAIT_MS = 60_000;
const POLL_MS = 100;

type AgentWait = {
  /** The wait, unless no agent has been seen for at least this long since the supervisor started: then it is `firstMs`. */
  waitMs: number;
  firstMs?: number;
};

/**
 * Resolves with the live agents. Waits while there are none, and longer if one was (or may have been) there a moment ago, because it may
 * return. Also waits for the agent that the client names (`named`) until its last heartbeat is `waitMs` old: it may be restarting, and after an
 * outage of the registry the agents come back one by one. An agent that this supervisor has never seen is not waited for.
 */
export async function atLeastOneAgent(
  agents: Pick<LiveAgents, 'list' | 'msSinceSeen' | 'msSinceSeenOf'>,
  { waitMs, firstMs = FIRST_AGENT_WAIT_MS }: AgentWait,
  signal: AbortSignal,
  named?: string,
): Promise<AgentRegistration[]> {
  const until = performance.now() + (agents.msSinceSeen() < waitMs ? waitMs : Math.min(firstMs, waitMs));
  const isMissing = () => {
    const live = agents.list();
    if (live.length === 0) return performance.now() < until;
    if (named === undefined || live.some(({ name }) => name === named)) return false;
    return agents.msSinceSeenOf(named) < waitMs;
  };
  while (isMissing() && !signal.aborted) await sleepUnlessAborted(POLL_MS, signal);
  return agents.list();
}
