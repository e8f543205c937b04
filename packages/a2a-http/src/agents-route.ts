import { A2AError } from '@hopline/a2a';
import { type A2AServer, fromLog, report } from '@hopline/a2a-server';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { sendRestError } from './rest/rest-binding.ts';
import { bareJson } from './rest/rest-request.ts';

export const AGENTS_PATH = '/agents';

/** An agent as callers see it: never its address. */
export type ListedAgent = {
  name: string;
  description: string;
  skills: { id: string; name: string }[];
  /** `silent`: registered, and without heartbeat. */
  state: 'live' | 'silent';
  /** It takes messages that no skill fits. */
  default: boolean;
  /** ISO 8601, UTC. */
  lastSeenAt: string;
};

/** GET `/agents`: the agents that `metadata.agent` of a message may name, for callers that may use an operation of A2A. */
export function registerAgents(scope: FastifyInstance, server: A2AServer, agents: () => readonly ListedAgent[]): void {
  const answer = async (request: FastifyRequest, reply: FastifyReply) => {
    try {
      await server.authenticate({ headers: request.headers, tenant: undefined });
      // Without the log the registry is out of date: every agent would look silent.
      await server.log.check().catch(error => {
        throw fromLog(error);
      });
      return bareJson(reply, 'application/json', { agents: agents() });
    } catch (thrown) {
      const error = A2AError.from(thrown);
      report(server, error);
      return sendRestError(request, reply, error);
    }
  };
  scope.get(AGENTS_PATH, answer);
}
