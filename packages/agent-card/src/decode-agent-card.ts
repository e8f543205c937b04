import { A2AError, type AgentSkill, type DialectName, type JsonObject } from '@hopline/a2a';
import { isObject, list, object, present, text, texts } from '@hopline/a2a/json-value';

/** The parts of a remote agent's card that Hopline needs. */
export type RemoteAgent = {
  name: string;
  description: string;
  /** The dialect of `url`; agents of 0.2 are called in 0.3. */
  dialect: DialectName;
  url: string;
  /** The tenant to send in every request ([A2A 1.0] AgentInterface.tenant). */
  tenant?: string;
  /** False only if the card has false. */
  streaming: boolean;
  /** True only if the card states it: the agent calls a webhook when a task changes. */
  pushNotifications: boolean;
  skills: AgentSkill[];
  /** URIs of the extensions that the card offers. Absent: none. */
  extensions?: string[];
};

type Interface = { url: string; dialect: DialectName; tenant?: string };

/**
 * Decodes the card of an agent of A2A 0.2, 0.3 or 1.0. Relative URLs resolve against `cardUrl`. Throws INVALID_AGENT_RESPONSE
 * when the card has no JSON-RPC interface of a supported version.
 */
export function decodeAgentCard(card: unknown, cardUrl: string): RemoteAgent {
  if (!isObject(card)) throw new A2AError('INVALID_AGENT_RESPONSE', { detail: 'the agent card must be an object' });
  const found = [...interfacesOf10(card), ...interfacesOf03(card)];
  const chosen = found.find(one => one.dialect === '1.0') ?? found[0];
  if (chosen === undefined || !URL.canParse(chosen.url, cardUrl)) {
    throw new A2AError('INVALID_AGENT_RESPONSE', { detail: 'the agent card has no JSON-RPC interface of A2A 0.2, 0.3 or 1.0' });
  }
  const capabilities = object(card.capabilities);
  const extensions = list(capabilities?.extensions)
    .filter(isObject)
    .flatMap(({ uri }) => text(uri) ?? []);
  return {
    ...chosen,
    url: new URL(chosen.url, cardUrl).href,
    name: text(card.name) ?? '',
    description: text(card.description) ?? '',
    streaming: capabilities?.streaming !== false,
    pushNotifications: capabilities?.pushNotifications === true,
    skills: list(card.skills).filter(isObject).map(decodeSkill),
    ...(extensions.length > 0 && { extensions }),
  };
}

function interfacesOf10(card: JsonObject): Interface[] {
  return list(card.supportedInterfaces)
    .filter(isObject)
    .flatMap(one => {
      const url = text(one.url);
      const dialect = dialectOfVersion(interfaceVersion(one.protocolVersion));
      if (url === undefined || dialect === undefined || !isJsonRpc(one.protocolBinding)) return [];
      return [{ url, dialect, ...present({ tenant: text(one.tenant) }) } satisfies Interface];
    });
}

/** The version of an element of `supportedInterfaces`, whose default is 1.0. */
export function interfaceVersion(version: unknown): string {
  return text(version) ?? '1.0';
}

/** The dialect that Hopline uses for a version of A2A; undefined for an unknown version. */
export function dialectOfVersion(version: string): DialectName | undefined {
  if (version.startsWith('1.')) return '1.0';
  return version.startsWith('0.3') || version.startsWith('0.2') ? '0.3' : undefined;
}

/** 0.3 names its transports; 0.2 has only JSON-RPC, at `url`. */
function interfacesOf03(card: JsonObject): Interface[] {
  const main = { url: card.url, transport: card.preferredTransport };
  return [main, ...list(card.additionalInterfaces).filter(isObject)].flatMap(one => {
    const url = text(one.url);
    return url !== undefined && isJsonRpc(one.transport) ? [{ url, dialect: '0.3' } satisfies Interface] : [];
  });
}

function isJsonRpc(binding: unknown): boolean {
  return (text(binding) ?? 'JSONRPC').toUpperCase() === 'JSONRPC';
}

function decodeSkill(skill: JsonObject): AgentSkill {
  const id = text(skill.id) ?? text(skill.name) ?? 'skill';
  return {
    id,
    name: text(skill.name) ?? id,
    description: text(skill.description) ?? '',
    tags: texts(skill.tags) ?? [],
    ...present({ examples: texts(skill.examples), inputModes: texts(skill.inputModes), outputModes: texts(skill.outputModes) }),
  };
}
