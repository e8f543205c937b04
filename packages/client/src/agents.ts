import { isObject } from '@hopline/a2a/client';
import { notA2A } from './transport.ts';

/** An agent as a Hopline server lists it. */
export type ListedAgent = {
  name: string;
  description: string;
  skills: { id: string; name: string }[];
  /** `silent`: its heartbeat is overdue. */
  state: 'live' | 'silent';
  /** Why a live agent does not answer, such as `ECONNREFUSED`. Absent while it answers. */
  fault?: string;
  /** Cause of the newest failed turn, such as `http_500`, while the last turns of a live agent have all failed. */
  failing?: string;
  /** Whether the agent takes messages that fit no skill. */
  default: boolean;
  /** ISO 8601. Absent if the server does not know it. */
  lastSeenAt?: string;
};

/** Path of the list on the server's origin. */
export const AGENTS_PATH = '/agents';

/** Decodes a list of agents; entries without a name are skipped. Throws INVALID_AGENT_RESPONSE for anything else. */
export function decodeAgents(json: unknown): ListedAgent[] {
  if (!isObject(json) || !Array.isArray(json.agents)) throw notA2A('the response is not a list of agents').error;
  return json.agents.filter(isObject).flatMap(agent => {
    const { name, description, skills, state, fault, failing, lastSeenAt } = agent;
    if (typeof name !== 'string' || name === '') return [];
    return [
      {
        name,
        description: typeof description === 'string' ? description : '',
        skills: Array.isArray(skills) ? skills.filter(isObject).flatMap(skillOf) : [],
        state: state === 'silent' ? 'silent' : 'live',
        ...(typeof fault === 'string' && { fault }),
        ...(typeof failing === 'string' && { failing }),
        default: agent.default === true,
        ...(typeof lastSeenAt === 'string' && { lastSeenAt }),
      },
    ];
  });
}

function skillOf({ id, name }: { [member: string]: unknown }): { id: string; name: string }[] {
  if (typeof id !== 'string') return [];
  return [{ id, name: typeof name === 'string' ? name : id }];
}
