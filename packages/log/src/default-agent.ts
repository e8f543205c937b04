import type { AgentRegistration } from './log.ts';

/** Setting of the services that choose a default agent (`defaultAgentOf`). */
export const DEFAULT_AGENT_SETTINGS = {
  HOPLINE_DEFAULT_AGENT: {
    type: 'string',
    optional: true,
    min: 1,
    max: 32,
    doc: 'Name of the agent for messages that no skill fits; no other agent takes its place while it is away. Default: the agent whose entry in the agents file has `default: true`, else the only agent without skills. Ingress (`GET /agents`) and supervisor need the same value.',
  },
} as const;

/**
 * The agent for messages that fit no skill: the configured one, and no other if it is not among `agents`. Without a configured one, in this order: the
 * only agent; the first one that its entry marks; the only one without skills, which is meant for any question.
 */
export function defaultAgentOf(
  agents: readonly AgentRegistration[],
  configured: string | undefined,
): AgentRegistration | undefined {
  if (configured !== undefined) return agents.find(({ name }) => name === configured);
  if (agents.length === 1) return agents[0];
  const marked = agents.find(agent => agent.default === true);
  if (marked !== undefined) return marked;
  const [agent, ...others] = agents.filter(({ skills }) => skills.length === 0);
  return others.length === 0 ? agent : undefined;
}
