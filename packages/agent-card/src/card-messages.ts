import type { JsonObject } from '@hopline/a2a';
import { isObject, list } from '@hopline/a2a/json-value';

/** `required`: present even if empty. `optional`: present if set, whatever the value. Absent: left out if it has its default. */
type Presence = 'required' | 'optional';
type Field = { presence?: Presence; of?: CardMessage; each?: CardMessage; values?: CardMessage };

/**
 * A message of a2a.proto by the JSON names of its fields. `of` is a message, `each` a list of them, `values` a map to them; any
 * other field is a plain value.
 */
type CardMessage = { readonly [field: string]: Field };

const required = { presence: 'required' } as const;
const optional = { presence: 'optional' } as const;
const plain = {};

const interfaceMessage: CardMessage = { url: required, protocolBinding: required, tenant: plain, protocolVersion: required };
const extension: CardMessage = { uri: plain, description: plain, required: plain, params: plain };
const scopes: CardMessage = { list: plain };
const requirement: CardMessage = { schemes: { values: scopes } };

const capabilities: CardMessage = {
  streaming: optional,
  pushNotifications: optional,
  extensions: { each: extension },
  extendedAgentCard: optional,
};

const skill: CardMessage = {
  id: required,
  name: required,
  description: required,
  tags: required,
  examples: plain,
  inputModes: plain,
  outputModes: plain,
  securityRequirements: { each: requirement },
};

const flow: CardMessage = {
  authorizationUrl: plain,
  deviceAuthorizationUrl: plain,
  tokenUrl: plain,
  refreshUrl: plain,
  scopes: required,
  pkceRequired: plain,
};
const flows: CardMessage = {
  authorizationCode: { of: flow },
  clientCredentials: { of: flow },
  implicit: { of: flow },
  password: { of: flow },
  deviceCode: { of: flow },
};

const securityScheme: CardMessage = {
  apiKeySecurityScheme: { of: { description: plain, location: required, name: required } },
  httpAuthSecurityScheme: { of: { description: plain, scheme: required, bearerFormat: plain } },
  oauth2SecurityScheme: { of: { description: plain, flows: { of: flows }, oauth2MetadataUrl: plain } },
  openIdConnectSecurityScheme: { of: { description: plain, openIdConnectUrl: required } },
  mtlsSecurityScheme: { of: { description: plain } },
};

/** AgentCard of A2A 1.0 without its signatures: the fields of a2a.proto, with their presence as field_behavior and `optional` define it. */
export const CARD_MESSAGE: CardMessage = {
  name: required,
  description: required,
  supportedInterfaces: { ...required, each: interfaceMessage },
  provider: { of: { url: required, organization: required } },
  version: required,
  documentationUrl: optional,
  capabilities: { of: capabilities },
  securitySchemes: { values: securityScheme },
  securityRequirements: { each: requirement },
  defaultInputModes: required,
  defaultOutputModes: required,
  skills: { ...required, each: skill },
  iconUrl: optional,
};

/** The known fields of a message that `keeps` accepts, at every depth. `keeps` is not called for nested messages. */
export function messageOf(
  value: JsonObject,
  message: CardMessage,
  keeps: (field: Field, value: unknown) => boolean = () => true,
): JsonObject {
  const inner = (one: unknown, of: CardMessage): unknown => (isObject(one) ? messageOf(one, of, keeps) : one);
  const kept: [string, unknown][] = [];
  for (const [name, field] of Object.entries(message)) {
    const one = Object.hasOwn(value, name) ? value[name] : undefined;
    if (one === undefined || one === null) continue;
    const { of, each, values } = field;
    if (of !== undefined) kept.push([name, inner(one, of)]);
    else if (!keeps(field, one)) continue;
    else if (each !== undefined) kept.push([name, list(one).map(item => inner(item, each))]);
    else if (values !== undefined && isObject(one))
      kept.push([name, Object.fromEntries(Object.entries(one).map(([key, item]) => [key, inner(item, values)]))]);
    else kept.push([name, one]);
  }
  return Object.fromEntries(kept);
}
