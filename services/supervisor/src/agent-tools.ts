import type { ChatTool } from '@hopline/chat-model';
import type { AgentRegistration } from '@hopline/log';

/** Tool that the model calls when the agents' answers need no addition. It cannot be an agent's name, which has no underscore. */
export const FINISH_TOOL = '_finish';
/** Maximum number of agents that are offered to a model, because providers accept 128 tools. */
export const AGENT_TOOLS_MAX = 120;
/** UTF-16 units of one tool's description; skills that do not fit are left out. */
const DESCRIPTION_UNITS_MAX = 4_096;
/**
 * UTF-16 units of the descriptions of all tools: some 16,000 tokens, which the model reads in each step. If there are many agents, each
 * gets an equal part.
 */
export const TOOLS_UNITS_MAX = 64 * 1024;
/** Number of UTF-16 units of a request that are compared with the descriptions of agents. */
const REQUEST_UNITS_MAX = 16 * 1024;

/**
 * Offers agents to a model as tools: one tool for each agent, not for each skill, because an agent takes a request in words instead of
 * arguments.
 */
export function agentTools(agents: readonly AgentRegistration[], request = ''): ChatTool[] {
  const offered = agents.length > AGENT_TOOLS_MAX ? fittingBest(agents, request) : agents;
  const unitsMax = Math.min(DESCRIPTION_UNITS_MAX, Math.floor(TOOLS_UNITS_MAX / Math.max(1, offered.length)));
  return offered.map(({ name, description, skills }) => {
    const properties: Record<string, unknown> = {
      request: {
        type: 'string',
        description: 'Complete instructions in plain language. The agent cannot see this conversation.',
      },
    };
    const { text, ids } = described(description, skills, unitsMax);
    if (ids.length > 0) properties.skill = { type: 'string', enum: ids, description: 'Id of the skill to use.' };
    const parameters = { type: 'object', properties, required: ['request'], additionalProperties: false };
    return { name, description: text, parameters };
  });
}

export const finishTool: ChatTool = {
  name: FINISH_TOOL,
  description: 'Ends your turn. Call it when the agents have answered the user and you have nothing to add.',
  parameters: { type: 'object', properties: {}, additionalProperties: false },
};

/** The agents whose names, descriptions and skills share the most words with the request, in the order of the registry. */
function fittingBest(agents: readonly AgentRegistration[], request: string): readonly AgentRegistration[] {
  const words = new Set(wordsOf(request.slice(-REQUEST_UNITS_MAX)));
  const shared = ({ name, description, skills }: AgentRegistration) => {
    const labels = skills.flatMap(({ id, name, description, tags }) => [id, name, description, ...tags]);
    return new Set(wordsOf([name, description, ...labels].join(' ')).filter(word => words.has(word))).size;
  };
  const ranked = agents.map((agent, index) => ({ agent, index, isDefault: agent.default === true, score: shared(agent) }));
  ranked.sort((a, b) => Number(b.isDefault) - Number(a.isDefault) || b.score - a.score || a.index - b.index);
  const best = ranked.slice(0, AGENT_TOOLS_MAX).sort((a, b) => a.index - b.index);
  return best.map(({ agent }) => agent);
}

function wordsOf(text: string): string[] {
  return text.toLowerCase().match(/[\p{L}\p{N}]{3,}/gu) ?? [];
}

/** The description of an agent with as many of its skills as fit, and the ids of those skills. */
function described(description: string, skills: AgentRegistration['skills'], unitsMax: number): { text: string; ids: string[] } {
  let text = description.slice(0, unitsMax);
  const ids: string[] = [];
  for (const { id, name, description: does } of skills) {
    const line = `\n- ${id}: ${does === '' ? name : does}`;
    if (text.length + line.length > unitsMax) break;
    text += line;
    ids.push(id);
  }
  return { text, ids };
}
