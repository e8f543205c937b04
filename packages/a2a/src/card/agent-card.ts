import { present } from '../json-value.ts';

/** Cards are served at both well-known paths (C-13). */
export const AGENT_CARD_PATHS = ['/.well-known/agent-card.json', '/.well-known/agent.json'] as const;

export type AgentSkill = {
  id: string;
  name: string;
  description: string;
  tags: string[];
  examples?: string[];
  inputModes?: string[];
  outputModes?: string[];
};

/**
 * Part of an agent card. One document serves clients of every version: each scheme has the members of A2A 1.0 (`httpAuthSecurityScheme`, …) and, beside them, those of 0.3 (OpenAPI's);
 * 1.0 reads `securityRequirements`, 0.3 reads `security`. Several requirements are alternatives.
 */
export type CardSecurity = {
  securitySchemes: Record<string, Record<string, unknown>>;
  securityRequirements: { schemes: Record<string, { list: string[] }> }[];
  security: Record<string, string[]>[];
};

/** One card for clients of every version: `supportedInterfaces` is what 1.0 reads; `url`, `preferredTransport` and `protocolVersion` are what 0.3 and 0.2 read. */
export type AgentCard = {
  name: string;
  description: string;
  version: string;
  supportedInterfaces: { url: string; protocolBinding: string; protocolVersion: string }[];
  url: string;
  preferredTransport: string;
  protocolVersion: string;
  additionalInterfaces: { url: string; transport: string }[];
  capabilities: { streaming: boolean; pushNotifications: boolean; stateTransitionHistory: boolean; extendedAgentCard: boolean };
  defaultInputModes: string[];
  defaultOutputModes: string[];
  skills: AgentSkill[];
  provider?: { organization: string; url: string };
  documentationUrl?: string;
} & Partial<CardSecurity>;

export type AgentCardSettings = {
  name: string;
  description: string;
  version: string;
  /** Where the door is, as clients reach it: JSON-RPC is posted to it, the paths of HTTP+JSON begin with it. */
  url: string;
  skills: AgentSkill[];
  provider?: { organization: string; url: string };
  documentationUrl?: string;
  /** Absent: nobody is asked who they are. */
  security?: CardSecurity | undefined;
};

const MODES = ['text/plain', 'application/json'];

/** A flag is true only for what works (S4-2). A card must have a skill ([A2A 1.0] 5.7), so one without any says so in words. */
export function agentCard(settings: AgentCardSettings): AgentCard {
  const { name, description, version, url, skills, provider, documentationUrl, security } = settings;
  const chat: AgentSkill = { id: 'chat', name: 'Chat', description: 'Answers a message', tags: ['chat'] };
  return {
    name,
    description,
    version,
    supportedInterfaces: [
      { url, protocolBinding: 'JSONRPC', protocolVersion: '1.0' },
      { url: url.replace(/\/+$/, ''), protocolBinding: 'HTTP+JSON', protocolVersion: '1.0' },
      { url, protocolBinding: 'JSONRPC', protocolVersion: '0.3' },
    ],
    url,
    preferredTransport: 'JSONRPC',
    protocolVersion: '0.3.0',
    additionalInterfaces: [{ url, transport: 'JSONRPC' }],
    capabilities: { streaming: true, pushNotifications: false, stateTransitionHistory: false, extendedAgentCard: false },
    defaultInputModes: MODES,
    defaultOutputModes: MODES,
    skills: skills.length > 0 ? skills : [chat],
    ...present({ provider, documentationUrl }),
    ...security,
  };
}
