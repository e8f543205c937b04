import type { CardReport } from '@hopline/a2a';
import { type A2AServer, fromLog } from '@hopline/a2a-server';
import type { FastifyInstance } from 'fastify';
import { registerHoplineRoute } from './hopline-route.ts';

export const AGENTS_PATH = '/agents';

/** An agent as callers see it, without its address. */
export type ListedAgent = {
  name: string;
  description: string;
  skills: { id: string; name: string }[];
  /** `silent`: registered, but its heartbeats have stopped. */
  state: 'live' | 'silent';
  /** Why a live agent does not answer its sub-agent, such as `ECONNREFUSED`. Absent while it answers. */
  fault?: string;
  /** Cause of the newest failed turn, such as `http_500`, while the last turns of a live agent have all failed. */
  failing?: string;
  /** The card of the agent's own server. Absent: it has none, or its sub-agent is of an earlier version. */
  card?: CardReport;
  /** Whether the agent takes messages that fit no skill. */
  default: boolean;
  /** ISO 8601, UTC. */
  lastSeenAt: string;
};

/** GET `/agents`: the agents that `metadata.agent` of a message may name. */
export function registerAgents(scope: FastifyInstance, server: A2AServer, agents: () => readonly ListedAgent[]): void {
  registerHoplineRoute(scope, server, { path: AGENTS_PATH, method: 'list_agents' }, async () => {
    // If the log is unavailable, the registry is out of date and every agent would look silent.
    await server.log.check().catch(error => {
      throw fromLog(error);
    });
    return { agents: agents() };
  });
}
