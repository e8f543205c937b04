import type { AgentScript } from '../../../support/agents/scripted-agent.ts';

/** Decodes the message id and the scripts from the text of a client's message, for agents that receive only the text. */
export function requestOf(text: string): { messageId: string; scripts: Record<string, AgentScript> } {
  return JSON.parse(text.slice(text.indexOf('{')));
}
