import { type DialectName, type JsonObject, outputModesOf } from '@hopline/a2a';
import type { A2AServerOptions } from '@hopline/a2a-server';
import {
  type AgentCard,
  type AgentCardSettings,
  type AgentInterface,
  agentCard,
  type CardSecurity,
  cardOfMessage,
  type ExtendedAgent,
  extendedAgentCard,
  mergedSkills,
  resumeExtension,
} from '@hopline/agent-card';
import { type CardSigner, PublishedCard } from '@hopline/agent-card/signing';

type CardText = 'name' | 'description' | 'version' | 'provider' | 'documentationUrl' | 'iconUrl' | 'inputModes' | 'outputModes';

export type IngressCardOptions = Pick<AgentCardSettings, CardText> & {
  streaming: boolean;
  /** Clients may name webhooks. */
  push: boolean;
  /** Whether the public card has the skills of the agents, or the extended one alone. */
  skills: 'public' | 'callers';
  /** There is an extended card, where callers are asked who they are. */
  extended: boolean;
  signer?: CardSigner;
};

/** Tenants on one card: each has every interface for itself, and a card is read often. Others can be named as well. */
export const CARD_TENANTS_MAX = 16;

/** What the cards are made of that changes while the process runs, or is decided elsewhere. */
export type CardSources = {
  url: () => string;
  /** Doors beside HTTP. */
  moreInterfaces: () => readonly AgentInterface[];
  agents: () => readonly ExtendedAgent[];
  /** How callers prove who they are; undefined: nobody is asked. */
  security: CardSecurity | undefined;
  /** Named where nobody is asked, the first CARD_TENANTS_MAX. */
  tenants: readonly string[];
};

/** What the card says that the door does. */
type Declared = Pick<A2AServerOptions, 'streaming' | 'extensions' | 'push' | 'outputModes' | 'extendedCard'>;

/** The public card, and what the door behind it offers: of one making, so that neither says more than the other. */
export function ingressCard(options: IngressCardOptions, sources: CardSources): { card: PublishedCard; declared: Declared } {
  const { streaming, push, skills, extended, signer, ...texts } = options;
  const { url, moreInterfaces, agents, security, tenants } = sources;
  const isExtended = extended && security !== undefined;
  const extensions = streaming ? [resumeExtension] : [];
  const capabilities = {
    streaming,
    pushNotifications: push,
    extendedAgentCard: isExtended,
    ...(extensions.length > 0 && { extensions }),
  };
  const build = (): AgentCard => {
    const shown = skills === 'public' ? agents().filter(({ isLive }) => isLive) : [];
    const who = security === undefined ? { tenants: tenants.slice(0, CARD_TENANTS_MAX) } : { security };
    const addresses = { url: url(), moreInterfaces: moreInterfaces() };
    return agentCard({ ...texts, ...addresses, skills: mergedSkills(shown), capabilities, ...who });
  };
  const full = new PublishedCard(() => extendedAgentCard(build(), agents()), signer);
  // Signed for itself: a signature of the whole document covers what is served.
  const fullOf1 = new PublishedCard(() => cardOfMessage(extendedAgentCard(build(), agents())), signer);
  const extendedCard = async (_caller: unknown, version: DialectName): Promise<JsonObject> =>
    (await (version === '1.0' ? fullOf1 : full).current()).card;
  return {
    card: new PublishedCard(build, signer),
    declared: { streaming, extensions, push, outputModes: () => outputModesOf(build()), ...(isExtended && { extendedCard }) },
  };
}
