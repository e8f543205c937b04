import { AGENT_CARD_PATHS, decodeAgentCard, type RemoteAgent } from '@hopline/agent-card';

/** Without a card the agent is assumed to speak 0.3 and to stream; a rejected request corrects both assumptions (see `remote-turn.ts`). */
export function withoutCard(url: string): RemoteAgent {
  return { name: '', description: '', dialect: '0.3', url, streaming: true, pushNotifications: false, skills: [] };
}

/** URLs at which to look for the card, in order: below the agent's URL, then at the root of its origin. The path of 0.2 comes last. */
export function cardUrls(url: string): string[] {
  const base = new URL(url);
  base.search = '';
  base.hash = '';
  const under = AGENT_CARD_PATHS.map(path => `${base.href.replace(/\/+$/, '')}${path}`);
  const root = AGENT_CARD_PATHS.map(path => `${base.origin}${path}`);
  return [...new Set([...under, ...root])];
}

/**
 * Reads a card and determines the agent's URL. The path comes from the card when host and port match the configured URL; otherwise the
 * configured URL stays. Cards often contain `http://0.0.0.0:9999/` or an internal host name, and a card must not redirect requests, which
 * have the operator's headers, to another server. Throws A2AError when the card has no supported interface.
 */
export function agentOfCard(card: unknown, cardUrl: string, configured: string): RemoteAgent {
  const agent = decodeAgentCard(card, cardUrl);
  const fromCard = new URL(agent.url);
  const configuredUrl = new URL(configured);
  const sameHost = fromCard.hostname === configuredUrl.hostname || isLocal(fromCard.hostname);
  if (!sameHost || fromCard.port !== configuredUrl.port) return { ...agent, url: configured };
  const url = new URL(configuredUrl);
  url.pathname = fromCard.pathname;
  url.search = fromCard.search;
  return { ...agent, url: url.href };
}

/** Whether an unusable card belongs to an agent that has only other bindings. */
export function namesInterfaces(card: unknown): boolean {
  if (typeof card !== 'object' || card === null) return false;
  const { url, supportedInterfaces } = card as { url?: unknown; supportedInterfaces?: unknown };
  return typeof url === 'string' || (Array.isArray(supportedInterfaces) && supportedInterfaces.length > 0);
}

function isLocal(host: string): boolean {
  return host === 'localhost' || host === '0.0.0.0' || host === '[::]' || host === '[::1]' || host.startsWith('127.');
}
