import { setTimeout as sleep } from 'node:timers/promises';
import type { AgentEntry, LiveAgents } from '@hopline/log';

/** How long a task waits for the first agent to appear before it fails, milliseconds: at a cold start agents announce themselves after the supervisor. */
const AGENT_WAIT_MS_MAX = 10_000;
const POLL_MS = 100;

/** The agents that live now; when there is none, waits for one to appear, at most AGENT_WAIT_MS_MAX. */
export async function atLeastOneAgent(agents: LiveAgents, signal: AbortSignal): Promise<AgentEntry[]> {
  const until = performance.now() + AGENT_WAIT_MS_MAX;
  while (agents.list().length === 0 && performance.now() < until && !signal.aborted) {
    await sleep(POLL_MS, undefined, { signal }).catch(() => {});
  }
  return agents.list();
}
