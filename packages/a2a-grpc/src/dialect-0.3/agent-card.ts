import { isObject, type JsonObject, present } from '@hopline/a2a';

/**
 * Converts a card to the ProtoJSON of 0.3. `security` is a list of maps in JSON but a list of messages in the definition. All other members
 * have the same names.
 */
export function protoCard(card: JsonObject): JsonObject {
  const { security, securitySchemes, skills, ...same } = card;
  return {
    ...same,
    ...present({ security: protoSecurity(security), securitySchemes: protoSchemes(securitySchemes) }),
    skills: (Array.isArray(skills) ? skills : []).map(skill => ({
      ...skill,
      ...present({ security: protoSecurity(skill.security) }),
    })),
  };
}

function protoSecurity(security: unknown): JsonObject[] | undefined {
  if (!Array.isArray(security)) return undefined;
  return security.filter(isObject).map(one => ({
    schemes: Object.fromEntries(
      Object.entries(one).map(([name, scopes]) => [name, { list: Array.isArray(scopes) ? scopes : [] }]),
    ),
  }));
}

function protoSchemes(schemes: unknown): JsonObject | undefined {
  if (!isObject(schemes)) return undefined;
  return Object.fromEntries(Object.entries(schemes).map(([name, scheme]) => [name, protoScheme(scheme as JsonObject)]));
}

/** A card for clients of all versions may already have a scheme in the 1.0 form, which the 0.3 definition shares. */
function protoScheme(scheme: JsonObject): JsonObject {
  const { type, in: location, flows, ...rest } = scheme;
  switch (type) {
    case 'apiKey':
      return { apiKeySecurityScheme: { ...rest, location } };
    case 'http':
      return { httpAuthSecurityScheme: rest };
    case 'oauth2':
      return { oauth2SecurityScheme: { ...rest, flows: protoFlow(flows) } };
    case 'openIdConnect':
      return { openIdConnectSecurityScheme: rest };
    case 'mutualTLS':
      return { mtlsSecurityScheme: rest };
    default:
      return scheme;
  }
}

/** The definition has room for one flow; the first is used. */
function protoFlow(flows: unknown): JsonObject {
  const [first] = Object.entries(isObject(flows) ? flows : {});
  return first === undefined ? {} : { [first[0]]: first[1] };
}
