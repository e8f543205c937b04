import type { CardSecurity } from '@hopline/agent-card';

/** Names of the schemes on the card. */
const BEARER = 'bearer';
const API_KEY = 'apiKey';

/** The credentials that a server requires. */
export type RequiredCredentials = { bearer: boolean; apiKeyHeader: string | undefined };

/** Undefined while authentication is off. */
export function cardSecurity({ bearer, apiKeyHeader }: RequiredCredentials): CardSecurity | undefined {
  const schemes: CardSecurity['securitySchemes'] = {};
  if (bearer) {
    const scheme = { scheme: BEARER, bearerFormat: 'JWT' };
    schemes[BEARER] = { type: 'http', ...scheme, httpAuthSecurityScheme: scheme };
  }
  if (apiKeyHeader !== undefined) {
    const apiKeySecurityScheme = { location: 'header', name: apiKeyHeader };
    schemes[API_KEY] = { type: 'apiKey', in: 'header', name: apiKeyHeader, apiKeySecurityScheme };
  }
  const names = Object.keys(schemes);
  if (names.length === 0) return undefined;
  return {
    securitySchemes: schemes,
    securityRequirements: names.map(name => ({ schemes: { [name]: { list: [] } } })),
    security: names.map(name => ({ [name]: [] })),
  };
}

/**
 * Value of `WWW-Authenticate`: accepted credentials (RFC 9110 11.6.1, RFC 6750 3). No scheme is registered for API keys in
 * headers.
 */
export function challengeOf({ bearer, apiKeyHeader }: RequiredCredentials, refused: boolean): string {
  const error = refused ? ', error="invalid_token"' : '';
  const challenges = [
    ...(bearer ? [`Bearer realm="hopline"${error}`] : []),
    ...(apiKeyHeader === undefined ? [] : [`ApiKey realm="hopline", header="${apiKeyHeader}"`]),
  ];
  return challenges.join(', ');
}
