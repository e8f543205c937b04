import type { AgentScript } from '../../../support/agents/scripted-agent.ts';

/** What the text of a client's message holds for agents that see no more than the text. */
export function requestOf(text: string): { messageId: string; scripts: Record<string, AgentScript> } {
  return JSON.parse(text.slice(text.indexOf('{')));
}
