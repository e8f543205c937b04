import { type DialectName, type JsonObject, outputModesOf } from '@hopline/a2a';
import type { A2AServerOptions } from '@hopline/a2a-server';
import {
  type AgentCard,
  type AgentCardSettings,
  type AgentInterface,
  agentCard,
  type CardSecurity,
  cardOfMessage,
  draftExtension,
  type ExtendedAgent,
  extendedAgentCard,
  mergedSkills,
  resumeExtension,
} from '@hopline/agent-card';
import { type CardSigner, PublishedCard } from '@hopline/agent-card/signing';

type CardText = 'name' | 'description' | 'version' | 'provider' | 'documentationUrl' | 'iconUrl' | 'inputModes' | 'outputModes';

export type IngressCardOptions = Pick<AgentCardSettings, CardText> & {
  streaming: boolean;
  /** True if clients may set webhooks. */
  push: boolean;
  /** The card that lists the skills of the agents: the public one, or only the extended one. */
  skills: 'public' | 'callers';
  /** True if authenticated callers get an extended card. */
  extended: boolean;
  signer?: CardSigner;
};

/**
 * Maximum number of tenants on the card, because each repeats every interface, and cards are read often. Further tenants can be used
 * without being listed.
 */
export const CARD_TENANTS_MAX = 16;

/** Inputs of the cards that change at run time or are configured elsewhere. */
type CardSources = {
  url: () => string;
  /** Interfaces besides HTTP. */
  moreInterfaces: () => readonly AgentInterface[];
  agents: () => readonly ExtendedAgent[];
  /** How callers authenticate; undefined while authentication is off. */
  security: CardSecurity | undefined;
  /** Listed while authentication is off, the first CARD_TENANTS_MAX. */
  tenants: readonly string[];
};

/** The server capabilities that the card declares. */
type DeclaredCapabilities = Pick<A2AServerOptions, 'streaming' | 'extensions' | 'push' | 'outputModes' | 'extendedCard'>;

/** Builds the public card and the matching server capabilities from the same values, so that they cannot differ. */
export function ingressCard(
  options: IngressCardOptions,
  sources: CardSources,
): { card: PublishedCard; declared: DeclaredCapabilities } {
  const { streaming, push, skills, extended, signer, ...texts } = options;
  const { url, moreInterfaces, agents, security, tenants } = sources;
  const isExtended = extended && security !== undefined;
  const extensions = streaming ? [resumeExtension, draftExtension] : [draftExtension];
  const capabilities = {
    streaming,
    pushNotifications: push,
    stateTransitionHistory: true,
    extendedAgentCard: isExtended,
    extensions,
  };
  const build = (): AgentCard => {
    const visible = skills === 'public' ? agents().filter(({ isLive }) => isLive) : [];
    const callers = security === undefined ? { tenants: tenants.slice(0, CARD_TENANTS_MAX) } : { security };
    const addresses = { url: url(), moreInterfaces: moreInterfaces() };
    return agentCard({ ...texts, ...addresses, skills: mergedSkills(visible), capabilities, ...callers });
  };
  const extendedCard03 = new PublishedCard(() => extendedAgentCard(build(), agents()), signer);
  // Signed separately, because the signature of a whole document covers exactly the served text.
  const extendedCard10 = new PublishedCard(() => cardOfMessage(extendedAgentCard(build(), agents())), signer);
  const extendedCard = async (_caller: unknown, version: DialectName): Promise<JsonObject> =>
    (await (version === '1.0' ? extendedCard10 : extendedCard03).current()).card;
  return {
    card: new PublishedCard(build, signer),
    declared: { streaming, extensions, push, outputModes: () => outputModesOf(build()), ...(isExtended && { extendedCard }) },
  };
}
