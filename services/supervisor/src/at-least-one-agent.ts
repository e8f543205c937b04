import { type AgentEntry, type LiveAgents, sleepUnlessAborted } from '@hopline/log';

/** How long a task waits for the first agent, milliseconds: at a cold start agents register after the supervisor. */
const AGENT_WAIT_MS_MAX = 10_000;
const POLL_MS = 100;

/** Live agents; waits up to AGENT_WAIT_MS_MAX while there is none. */
export async function atLeastOneAgent(agents: LiveAgents, signal: AbortSignal): Promise<AgentEntry[]> {
  const until = performance.now() + AGENT_WAIT_MS_MAX;
  while (agents.list().length === 0 && performance.now() < until && !signal.aborted) {
    await sleepUnlessAborted(POLL_MS, signal);
  }
  return agents.list();
}
