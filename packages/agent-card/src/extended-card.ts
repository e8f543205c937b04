import type { JsonObject } from '@hopline/a2a';
import type { AgentCard, AgentExtension } from './agent-card.ts';
import { CARD_MESSAGE, messageOf } from './card-messages.ts';
import type { CardAgent } from './merged-skills.ts';
import { mergedSkills } from './merged-skills.ts';

/** Names the agents behind the door. Only extended cards have it. */
export const AGENTS_EXTENSION_URI = 'https://hopline.dev/extensions/agents/v1';

/** An agent, and whether it said lately that it lives. */
export type ExtendedAgent = CardAgent & { isLive: boolean };

/** What an authenticated caller is told beyond the public card: every skill of every agent, and which agents there are, also those that are silent now. */
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
 * The card for a reader who has said that it reads 1.0: without the members of 0.3. The public card has them for readers of whom nothing is known; the SDK for Java refuses them in the answer of
 * an operation, and a security scheme with more than one member.
 */
export function cardOfMessage(card: AgentCard): JsonObject {
  return messageOf(card, CARD_MESSAGE);
}

function agentsExtension(agents: readonly ExtendedAgent[]): AgentExtension {
  return {
    uri: AGENTS_EXTENSION_URI,
    description: 'The agents behind this door.',
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
