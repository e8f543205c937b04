import { type AgentEntry, type LiveAgents, sleepUnlessAborted } from '@hopline/log';

/** How long a task waits for a first agent of a supervisor that has seen none since it started, `waitMs` ago or longer. */
export const FIRST_AGENT_WAIT_MS = 10_000;
/** Default of HOPLINE_AGENT_WAIT_MS: within it a pod of a drained node is scheduled elsewhere and its image pulled. */
export const AGENT_WAIT_MS = 60_000;
const POLL_MS = 100;

export type AgentWait = {
  /** If no agent has been seen for this long, and the supervisor started earlier, the wait is `firstMs`; otherwise this time. */
  waitMs: number;
  firstMs?: number;
};

/** Live agents. Waits while there is none: longer if one was there a moment ago, or may have been, and may return. */
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
