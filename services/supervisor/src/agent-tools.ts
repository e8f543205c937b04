import type { ChatTool } from '@hopline/chat-model';
import type { AgentEntry } from '@hopline/log';

/** Tool that the model calls when the agents' answers need no addition. No agent's name has an underscore. */
export const FINISH_TOOL = '_finish';
/** Most agents that are offered to a model, because providers accept 128 tools. */
export const AGENT_TOOLS_MAX = 120;
/** UTF-16 units of one tool's description; skills that do not fit are left out. */
const DESCRIPTION_UNITS_MAX = 4_096;

/**
 * Offers agents to a model as tools: one for each agent, not for each skill, because agents take a request in words instead of arguments.
 */
export function agentTools(agents: readonly AgentEntry[]): ChatTool[] {
  return agents.slice(0, AGENT_TOOLS_MAX).map(({ name, description, skills }) => {
    const properties: Record<string, unknown> = {
      request: {
        type: 'string',
        description: 'Complete instructions in plain language. The agent cannot see this conversation.',
      },
    };
    if (skills.length > 0)
      properties.skill = { type: 'string', enum: skills.map(({ id }) => id), description: 'Id of the skill to use.' };
    const parameters = { type: 'object', properties, required: ['request'], additionalProperties: false };
    return { name, description: described(description, skills), parameters };
  });
}

export const finishTool: ChatTool = {
  name: FINISH_TOOL,
  description: 'Ends your turn. Call it when the agents have answered the user and you have nothing to add.',
  parameters: { type: 'object', properties: {}, additionalProperties: false },
};

function described(description: string, skills: AgentEntry['skills']): string {
  let text = description;
  for (const { id, name, description: does } of skills) {
    const line = `\n- ${id}: ${does === '' ? name : does}`;
    if (text.length + line.length > DESCRIPTION_UNITS_MAX) break;
    text += line;
  }
  return text;
}
