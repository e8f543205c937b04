import { type AgentEntry, type LiveAgents, sleepUnlessAborted } from '@hopline/log';

/** How long a task waits for a first agent if its supervisor started at least `waitMs` ago and has seen none since. */
export const FIRST_AGENT_WAIT_MS = 10_000;
/** Default of HOPLINE_AGENT_WAIT_MS: enough time for a drained node's pod to be scheduled elsewhere and its image to be pulled. */
export const AGENT_WAIT_MS = 60_000;
const POLL_MS = 100;

export type AgentWait = {
  /** The wait, unless no agent has been seen for at least this long since the supervisor started: then it is `firstMs`. */
  waitMs: number;
  firstMs?: number;
};

/**
 * Resolves with the live agents. Waits while there are none, and longer if one was (or may have been) there a moment ago, because it may
 * return.
 */
export async function atLeastOneAgent(
  agents: Pick<LiveAgents, 'list' | 'msSinceSeen'>,
  { waitMs, firstMs = FIRST_AGENT_WAIT_MS }: AgentWait,
  signal: AbortSignal,
): Promise<AgentEntry[]> {
  const until = performance.now() + (agents.msSinceSeen() < waitMs ? waitMs : Math.min(firstMs, waitMs));
  while (agents.list().length === 0 && performance.now() < until && !signal.aborted) {
    await sleepUnlessAborted(POLL_MS, signal);
  }
  return agents.list();
}
