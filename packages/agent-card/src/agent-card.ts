import { present } from '@hopline/a2a/json-value';
import type { CardSecurity } from './security.ts';

/** Cards are served at both well-known paths (C-13). */
export const AGENT_CARD_PATHS = ['/.well-known/agent-card.json', '/.well-known/agent.json'] as const;

/** The keys that verify a card's signatures, as a JWK set. */
export const CARD_KEYS_PATH = '/.well-known/jwks.json';

export type AgentSkill = {
  id: string;
  name: string;
  description: string;
  tags: string[];
  examples?: string[];
  inputModes?: string[];
  outputModes?: string[];
};

/** One door in one binding and one version. `url`: where it begins. `tenant`: what a client of 1.0 sends with each request ([A2A 1.0] 8.3.2). */
export type AgentInterface = {
  url: string;
  protocolBinding: 'JSONRPC' | 'HTTP+JSON' | 'GRPC';
  protocolVersion: '1.0' | '0.3';
  tenant?: string;
};

/** `params` is any JSON object. */
export type AgentExtension = { uri: string; description: string; required: boolean; params?: object };

/** What a client may rely on. Each flag is true only for what works (S4-2). */
export type AgentCapabilities = {
  streaming: boolean;
  pushNotifications: boolean;
  extendedAgentCard: boolean;
  /** Known to 0.3 alone: 1.0 has removed it. */
  stateTransitionHistory: boolean;
  extensions?: AgentExtension[];
};

export type AgentProvider = { organization: string; url: string };

/**
 * One card for clients of every version: `supportedInterfaces`, `securityRequirements` and `capabilities.extendedAgentCard` are what 1.0 reads; `url`,
 * `preferredTransport`, `additionalInterfaces`, `protocolVersion`, `security` and `supportsAuthenticatedExtendedCard` are what 0.3 and 0.2 read.
 */
export type AgentCard = {
  name: string;
  description: string;
  version: string;
  supportedInterfaces: AgentInterface[];
  url: string;
  preferredTransport: string;
  protocolVersion: string;
  additionalInterfaces: { url: string; transport: string }[];
  capabilities: AgentCapabilities;
  supportsAuthenticatedExtendedCard?: true;
  defaultInputModes: string[];
  defaultOutputModes: string[];
  skills: AgentSkill[];
  provider?: AgentProvider;
  documentationUrl?: string;
  iconUrl?: string;
} & Partial<CardSecurity>;

export type AgentCardSettings = {
  name: string;
  description: string;
  version: string;
  /** Where the door is, as clients reach it: JSON-RPC is posted to it, the paths of HTTP+JSON begin with it. */
  url: string;
  skills: readonly AgentSkill[];
  /** A flag that is absent is false. */
  capabilities: Partial<AgentCapabilities>;
  /** Doors beside JSON-RPC and HTTP+JSON of both versions: gRPC. */
  moreInterfaces?: readonly AgentInterface[];
  /** Each gets every interface of 1.0 for itself, after those that name no tenant. */
  tenants?: readonly string[];
  /** Absent: nobody is asked who they are. */
  security?: CardSecurity | undefined;
  provider?: AgentProvider;
  documentationUrl?: string;
  iconUrl?: string;
  /** Media types, at least one; MODES by default. */
  inputModes?: readonly string[];
  outputModes?: readonly string[];
};

export const MODES: readonly string[] = ['text/plain', 'application/json'];
/** A card must have a skill ([A2A 1.0] 5.7), so one without any says so in words. */
const CHAT: AgentSkill = { id: 'chat', name: 'Chat', description: 'Answers a message', tags: ['chat'] };

const NONE: AgentCapabilities = {
  streaming: false,
  pushNotifications: false,
  stateTransitionHistory: false,
  extendedAgentCard: false,
};

export function agentCard(settings: AgentCardSettings): AgentCard {
  const { name, description, version, skills, provider, documentationUrl, iconUrl } = settings;
  const { inputModes = MODES, outputModes = MODES, security } = settings;
  const interfaces = interfacesOf(settings);
  const capabilities = { ...NONE, ...settings.capabilities };
  return {
    name,
    description,
    version,
    supportedInterfaces: interfaces,
    ...legacyInterfaces(interfaces),
    capabilities,
    ...(capabilities.extendedAgentCard && { supportsAuthenticatedExtendedCard: true }),
    defaultInputModes: [...inputModes],
    defaultOutputModes: [...outputModes],
    skills: skills.length > 0 ? [...skills] : [CHAT],
    ...security,
    ...present({ provider, documentationUrl, iconUrl }),
  };
}

/**
 * In order of preference: 1.0 before 0.3, JSON-RPC before the others, without a tenant before any. The first of a binding is what a client should take ([A2A 1.0] 8.3.2); the SDK 1.3.0
 * takes the last one of 1.0, so those without a tenant come again behind the tenants: nobody is in one by accident.
 */
function interfacesOf({ url, moreInterfaces = [], tenants = [] }: AgentCardSettings): AgentInterface[] {
  const base = url.replace(/\/+$/, '');
  const all: AgentInterface[] = [
    { url, protocolBinding: 'JSONRPC', protocolVersion: '1.0' },
    { url: base, protocolBinding: 'HTTP+JSON', protocolVersion: '1.0' },
    { url, protocolBinding: 'JSONRPC', protocolVersion: '0.3' },
    { url: base, protocolBinding: 'HTTP+JSON', protocolVersion: '0.3' },
    ...moreInterfaces,
  ];
  const of = (version: string) => all.filter(({ protocolVersion }) => protocolVersion === version);
  const newest = of('1.0');
  const forTenants = tenants.flatMap(tenant => newest.map(one => ({ ...one, tenant })));
  return [...newest, ...forTenants, ...(tenants.length > 0 ? newest : []), ...of('0.3')];
}

function legacyInterfaces(interfaces: readonly AgentInterface[]) {
  const old = interfaces.filter(one => one.protocolVersion === '0.3');
  const { url, protocolBinding } = old[0]!;
  return {
    url,
    preferredTransport: protocolBinding,
    protocolVersion: '0.3.0',
    additionalInterfaces: old.map(one => ({ url: one.url, transport: one.protocolBinding })),
  };
}
