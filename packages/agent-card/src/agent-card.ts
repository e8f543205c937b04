import type { AgentSkill } from '@hopline/a2a';
import { present } from '@hopline/a2a/json-value';

/** Cards are served at both well-known paths. */
export const AGENT_CARD_PATHS = ['/.well-known/agent-card.json', '/.well-known/agent.json'] as const;

/** Path of the keys that verify a card's signatures, as a JWK set. */
export const CARD_KEYS_PATH = '/.well-known/jwks.json';

/**
 * One interface of a binding in a version. `url`: its base address. `tenant`: the value that a 1.0 client sends with each request ([A2A
 * 1.0] 8.3.2).
 */
export type AgentInterface = {
  url: string;
  protocolBinding: 'JSONRPC' | 'HTTP+JSON' | 'GRPC';
  protocolVersion: '1.0' | '0.3';
  tenant?: string;
};

/** `params` is any JSON object. */
export type AgentExtension = { uri: string; description: string; required: boolean; params?: object };

/** Capabilities that clients may rely on: a flag is true only if the server supports it. */
export type AgentCapabilities = {
  streaming: boolean;
  pushNotifications: boolean;
  extendedAgentCard: boolean;
  /** 0.3 only; removed in 1.0. */
  stateTransitionHistory: boolean;
  extensions?: AgentExtension[];
};

export type AgentProvider = { organization: string; url: string };

/**
 * Security of a card for clients of every version. 0.3 and 1.0 name the requirements differently, so both are present. The
 * schemes share one name, so each has its kind twice: as the member of 1.0 (`httpAuthSecurityScheme`), and as `type` with the
 * members of 0.3. The SDK's client for 1.0 converts a card whose schemes lack `type` into its in-memory form, and then cannot
 * verify its signature.
 */
export type CardSecurity = {
  securitySchemes: Record<string, Record<string, unknown>>;
  securityRequirements: { schemes: Record<string, { list?: string[] }> }[];
  security: Record<string, string[]>[];
};

/**
 * A card that clients of every version can read. 1.0 reads `supportedInterfaces`, `securityRequirements` and
 * `capabilities.extendedAgentCard`; 0.3 and 0.2 read `url`, `preferredTransport`, `additionalInterfaces`, `protocolVersion`, `security` and
 * `supportsAuthenticatedExtendedCard`.
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
  /** The public base address: JSON-RPC is posted to it, the paths of HTTP+JSON start with it. */
  url: string;
  skills: readonly AgentSkill[];
  /** An absent flag is false. */
  capabilities: Partial<AgentCapabilities>;
  /** Interfaces besides JSON-RPC and HTTP+JSON of both versions: gRPC. */
  moreInterfaces?: readonly AgentInterface[];
  /** Each tenant gets every interface of 1.0, after those without a tenant. */
  tenants?: readonly string[];
  /** Absent: authentication is off. */
  security?: CardSecurity | undefined;
  provider?: AgentProvider;
  documentationUrl?: string;
  iconUrl?: string;
  /** Media types, at least one; MODES by default. */
  inputModes?: readonly string[];
  outputModes?: readonly string[];
};

export const MODES: readonly string[] = ['text/plain', 'application/json'];
/** Used when no other skill exists, because a card must have one ([A2A 1.0] 5.7). */
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
 * In order of preference: 1.0 before 0.3, JSON-RPC first, no tenant first. Clients should use the first interface of a binding ([A2A 1.0]
 * 8.3.2), but SDK 1.3.0 uses the last one of 1.0. So interfaces without a tenant are repeated after those with tenants, and no client ends
 * up in a tenant by accident.
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
