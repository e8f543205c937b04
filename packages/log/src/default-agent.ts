import type { AgentRegistration } from './log.ts';

/** Setting of the services that choose a default agent (`defaultAgentOf`). */
export const DEFAULT_AGENT_SETTINGS = {
  HOPLINE_DEFAULT_AGENT: {
    type: 'string',
    optional: true,
    min: 1,
    max: 32,
    doc: 'Agent that receives the messages that no skill matches. While it is away, no other agent receives them. Default: the agent whose entry in the agents file has `default: true`, else the only agent without skills. Ingress (`GET /agents`) and supervisor need the same value.',
  },
} as const;

/**
 * The agent for messages that fit no skill: the configured one, or no agent if that one is not among `agents`. If none is configured, the
 * first of these: an agent that its entry marks; the only agent; the only agent without skills, which is meant for any question. An agent
 * that is away (`isLive` false) is considered only if no agent is live, because it may have been removed or have a new name.
 */
export function defaultAgentOf<T extends AgentRegistration & { isLive?: boolean }>(
  agents: readonly T[],
  configured: string | undefined,
): T | undefined {
  if (configured !== undefined) return agents.find(({ name }) => name === configured);
  const marked = agents.find(agent => agent.default === true);
  if (marked !== undefined) return marked;
  const live = agents.filter(({ isLive }) => isLive !== false);
  const counted = live.length === 0 ? agents : live;
  if (counted.length === 1) return counted[0];
  const [agent, ...others] = counted.filter(({ skills }) => skills.length === 0);
  return others.length === 0 ? agent : undefined;
}
