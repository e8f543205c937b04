import type { JsonObject } from '@hopline/a2a';
import type { AgentCard, AgentExtension } from './agent-card.ts';
import { CARD_MESSAGE, messageOf } from './card-messages.ts';
import type { CardAgent } from './merged-skills.ts';
import { mergedSkills } from './merged-skills.ts';

/** Skill that lists the agents of the server. Only extended cards have it. */
export const AGENTS_EXTENSION_URI = 'https://hopline.dev/extensions/agents/v1';

/** An agent, and whether its registration is current. */
export type ExtendedAgent = CardAgent & { isLive: boolean };

/** The card for authenticated callers: every skill of every live agent, and all agents with their health. */
export function extendedAgentCard(card: AgentCard, agents: readonly ExtendedAgent[]): AgentCard {
  const skills = mergedSkills(agents.filter(({ isLive }) => isLive));
  const { extensions = [] } = card.capabilities;
  return {
    ...card,
    capabilities: { ...card.capabilities, extensions: [...extensions, agentsExtension(agents)] },
    skills: skills.length > 0 ? skills : card.skills,
  };
}

/**
 * The card for a client of 1.0, without the members of 0.3. The public card has them for unknown readers. In the result of an operation,
 * the Java SDK refuses them, and also a security scheme with more than one member.
 */
export function cardOfMessage(card: AgentCard): JsonObject {
  return messageOf(card, CARD_MESSAGE);
}

function agentsExtension(agents: readonly ExtendedAgent[]): AgentExtension {
  return {
    uri: AGENTS_EXTENSION_URI,
    description: 'The agents of this server.',
    required: false,
    params: {
      agents: agents.map(({ name, description, skills, isLive }) => ({
        name,
        description,
        health: isLive ? 'live' : 'silent',
        skills: skills.map(({ id }) => id),
      })),
    },
  };
}
