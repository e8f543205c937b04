import { AGENT_CARD_PATHS, decodeAgentCard, type RemoteAgent } from '@hopline/agent-card';

/** An agent without a card is taken for one of 0.3 that streams: both can be found wrong by asking it, and then are (see `a2a-agent.ts`). */
export function withoutCard(url: string): RemoteAgent {
  return { name: '', description: '', dialect: '0.3', url, streaming: true, pushNotifications: false, skills: [] };
}

/** Where an agent's card may lie: under its URL, else at the root of its origin; the older path of 0.2 last (C-13). */
export function cardUrls(url: string): string[] {
  const base = new URL(url);
  base.search = '';
  base.hash = '';
  const under = AGENT_CARD_PATHS.map(path => `${base.href.replace(/\/+$/, '')}${path}`);
  const root = AGENT_CARD_PATHS.map(path => `${base.origin}${path}`);
  return [...new Set([...under, ...root])];
}

/**
 * The agent of a card, at an address that may be asked. A card names its own address as the agent sees it, often `http://0.0.0.0:9999/` or an inner host name;
 * and a card that names somebody else's must not send our requests, with the operator's headers, there. So the path is taken from the card when host and
 * port mean the same, and otherwise the configured URL stays as it is. Throws A2AError when the card has no interface we speak.
 */
export function agentOfCard(card: unknown, cardUrl: string, configured: string): RemoteAgent {
  const agent = decodeAgentCard(card, cardUrl);
  const said = new URL(agent.url);
  const own = new URL(configured);
  const sameHost = said.hostname === own.hostname || isLocal(said.hostname);
  if (!sameHost || said.port !== own.port) return { ...agent, url: configured };
  const url = new URL(own);
  url.pathname = said.pathname;
  url.search = said.search;
  return { ...agent, url: url.href };
}

/** Whether a card that cannot be used is one all the same: of an agent that is reached in another way than ours. */
export function namesInterfaces(card: unknown): boolean {
  if (typeof card !== 'object' || card === null) return false;
  const { url, supportedInterfaces } = card as { url?: unknown; supportedInterfaces?: unknown };
  return typeof url === 'string' || (Array.isArray(supportedInterfaces) && supportedInterfaces.length > 0);
}

function isLocal(host: string): boolean {
  return host === 'localhost' || host === '0.0.0.0' || host === '[::]' || host === '[::1]' || host.startsWith('127.');
}
