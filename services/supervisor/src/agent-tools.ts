import type { ChatTool } from '@hopline/chat-model';
import type { AgentEntry } from '@hopline/log';

/** The model calls it when the agents' answers are all there is to say. No agent's name has an underscore. */
export const FINISH_TOOL = '_finish';
/** Agents a model is told of: providers take 128 tools. */
export const AGENT_TOOLS_MAX = 120;
/** Of one tool's description, UTF-16 units; skills that do not fit are left out. */
const DESCRIPTION_UNITS_MAX = 4_096;

/** Agents as a model sees them: one tool each, with its skills, because agents are called with words and not with arguments. */
export function agentTools(agents: readonly AgentEntry[]): ChatTool[] {
  return agents.slice(0, AGENT_TOOLS_MAX).map(({ name, description, skills }) => {
    const properties: Record<string, unknown> = {
      request: { type: 'string', description: 'What the agent shall do, in words; it does not see this conversation.' },
    };
    if (skills.length > 0)
      properties.skill = { type: 'string', enum: skills.map(({ id }) => id), description: 'The skill that is meant.' };
    const parameters = { type: 'object', properties, required: ['request'], additionalProperties: false };
    return { name, description: described(description, skills), parameters };
  });
}

export const finishTool: ChatTool = {
  name: FINISH_TOOL,
  description: "Ends the conversation when the agents' answers are the answer and nothing is to be added.",
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
