import { A2AError, type JsonObject } from '@hopline/a2a';
import { isObject, list, text } from '@hopline/a2a/json-value';
import { decodeAgentCard, dialectOfVersion } from './decode-agent-card.ts';

/** Maximum number of findings. The last one then counts the others. */
export const FINDINGS_MAX = 16;

type Shape = 'a string' | 'true or false' | 'an object' | 'a list of strings' | 'a list of objects';
type Member = { is: Shape; isRequired?: true; members?: Members };
type Members = { readonly [name: string]: Member };

const string: Member = { is: 'a string' };
const flag: Member = { is: 'true or false' };
const strings: Member = { is: 'a list of strings' };
const objects: Member = { is: 'a list of objects' };
const anObject: Member = { is: 'an object' };
const required = (member: Member): Member => ({ ...member, isRequired: true });
const listOf = (members: Members): Member => ({ ...objects, members });

const EXTENSIONS = listOf({ uri: string, description: string, required: flag, params: anObject });

/** Members that all versions have. */
const COMMON: Members = {
  name: required(string),
  description: required(string),
  version: required(string),
  provider: { ...anObject, members: { organization: required(string), url: required(string) } },
  documentationUrl: string,
  iconUrl: string,
  defaultInputModes: required(strings),
  defaultOutputModes: required(strings),
  skills: required(
    listOf({
      id: required(string),
      name: required(string),
      description: required(string),
      tags: required(strings),
      examples: strings,
      inputModes: strings,
      outputModes: strings,
    }),
  ),
  securitySchemes: anObject,
  signatures: listOf({ protected: required(string), signature: required(string) }),
};

const ONLY_10: Members = {
  supportedInterfaces: required(
    listOf({
      url: required(string),
      protocolBinding: required(string),
      protocolVersion: required(string),
      tenant: string,
    }),
  ),
  capabilities: required({
    ...anObject,
    members: { streaming: flag, pushNotifications: flag, extendedAgentCard: flag, extensions: EXTENSIONS },
  }),
  securityRequirements: objects,
};

const ONLY_03: Members = {
  url: required(string),
  protocolVersion: required(string),
  preferredTransport: string,
  additionalInterfaces: listOf({ url: required(string), transport: required(string) }),
  capabilities: required({
    ...anObject,
    members: { streaming: flag, pushNotifications: flag, stateTransitionHistory: flag, extensions: EXTENSIONS },
  }),
  security: objects,
  supportsAuthenticatedExtendedCard: flag,
};

/**
 * Deviations of a card from A2A: required members that are missing or empty, members of the wrong type, versions that Hopline does not
 * support, and a card without a supported interface. A card with `supportedInterfaces` follows 1.0, any other card follows 0.3, and a card
 * may follow both. The sentences do not contain text of the card, which anyone may have written.
 */
export function cardFindings(card: unknown): string[] {
  if (!isObject(card)) return ['The agent card must be an object.'];
  const is10 = isSet(card.supportedInterfaces);
  const is03 = !is10 || isSet(card.url);
  const found = new Set([
    ...faultsOf(card, { ...COMMON, ...(is03 && ONLY_03), ...(is10 && ONLY_10) }, '', is10),
    ...versionFaults(card),
    ...interfaceFaults(card),
  ]);
  const findings = [...found];
  if (findings.length <= FINDINGS_MAX) return findings;
  const left = findings.length - FINDINGS_MAX + 1;
  return [...findings.slice(0, FINDINGS_MAX - 1), `${left} more findings are not listed.`];
}

/** `isFilled`: required lists must have an element ([A2A 1.0] 5.7). */
function* faultsOf(value: JsonObject, members: Members, path: string, isFilled: boolean): Generator<string> {
  for (const [name, { is, isRequired, members: inner }] of Object.entries(members)) {
    const at = path + name;
    const one = Object.hasOwn(value, name) ? value[name] : undefined;
    if (!isSet(one)) {
      if (isRequired) yield `${at} is missing.`;
    } else if (!hasShape(one, is)) yield `${at} must be ${is}.`;
    else if (isRequired && (one === '' || (isFilled && Array.isArray(one) && one.length === 0))) yield `${at} is empty.`;
    else if (inner !== undefined && isObject(one)) yield* faultsOf(one, inner, `${at}.`, isFilled);
    else if (inner !== undefined)
      for (const [index, item] of list(one).entries()) yield* faultsOf(item as JsonObject, inner, `${at}[${index}].`, isFilled);
  }
}

/** ProtoJSON reads null as absent. */
function isSet(value: unknown): boolean {
  return value !== undefined && value !== null;
}

function hasShape(value: unknown, shape: Shape): boolean {
  switch (shape) {
    case 'a string':
      return typeof value === 'string';
    case 'true or false':
      return typeof value === 'boolean';
    case 'an object':
      return isObject(value);
    case 'a list of strings':
      return Array.isArray(value) && value.every(item => typeof item === 'string');
    case 'a list of objects':
      return Array.isArray(value) && value.every(isObject);
  }
}

function versionFaults(card: JsonObject): string[] {
  const named = list(card.supportedInterfaces).map((one, index): [string, unknown] => [
    `supportedInterfaces[${index}].protocolVersion`,
    isObject(one) ? one.protocolVersion : undefined,
  ]);
  return [['protocolVersion', card.protocolVersion] as const, ...named].flatMap(([path, value]) => {
    const version = text(value);
    if (version === undefined || dialectOfVersion(version) !== undefined) return [];
    return [`${path} is not a version of A2A that Hopline supports: 0.2, 0.3 or 1.0.`];
  });
}

function interfaceFaults(card: JsonObject): string[] {
  try {
    decodeAgentCard(card, 'http://agent.example/');
    return [];
  } catch (error) {
    if (!(error instanceof A2AError)) throw error;
    const path = isSet(card.supportedInterfaces) ? 'supportedInterfaces' : 'url';
    return [`${path} has no interface that Hopline supports: JSON-RPC of A2A 0.2, 0.3 or 1.0.`];
  }
}
