import type { Setting, Settings } from '@hopline/lifecycle';
import type { Logger } from '@hopline/telemetry';
import { type Authenticator, type AuthOptions, createAuthenticator } from './authenticator.ts';
import { ALGORITHMS, type Algorithm } from './bearer-token.ts';
import { isTenant, TENANT_CHARS_MAX } from './caller.ts';
import { isLoopback } from './loopback.ts';

const HOUR_MS = 60 * 60 * 1000;
/** Maximum number of names in HOPLINE_TENANTS. */
const TENANTS_MAX = 1_000;
const HEADER_NAME = /^[a-z0-9-]+$/;

/** Settings for the authentication of callers. */
export const AUTH_SETTINGS = {
  HOPLINE_AUTH_ISSUER: {
    type: 'string',
    optional: true,
    min: 1,
    max: 1_024,
    doc: 'Require JWTs whose `iss` equals this value. Needs HOPLINE_AUTH_AUDIENCE and one of HOPLINE_AUTH_JWKS_URL, HOPLINE_AUTH_JWKS_FILE.',
  },
  HOPLINE_AUTH_AUDIENCE: {
    type: 'string',
    optional: true,
    min: 1,
    max: 1_024,
    doc: 'The `aud` that tokens must contain: the name of this server.',
  },
  HOPLINE_AUTH_JWKS_URL: {
    type: 'url',
    optional: true,
    schemes: ['https', 'http'],
    doc: 'JWK set of the issuer: https, or http on loopback. Fetched every 10 minutes.',
  },
  HOPLINE_AUTH_JWKS_FILE: {
    type: 'string',
    optional: true,
    min: 1,
    max: 4_096,
    doc: 'JWK set of the issuer as a file, reloaded when it changes.',
  },
  HOPLINE_AUTH_JWKS_STALE_MS: {
    type: 'integer',
    default: HOUR_MS,
    min: 0,
    max: 7 * 24 * HOUR_MS,
    unit: 'ms',
    doc: 'How long keys that are due for a refetch stay in use while HOPLINE_AUTH_JWKS_URL is unreachable. After that, requests with tokens get 503.',
  },
  HOPLINE_AUTH_ALGORITHMS: {
    type: 'string',
    default: 'RS256,PS256,ES256,EdDSA,Ed25519',
    min: 1,
    max: 128,
    doc: `Accepted signature algorithms, separated by commas, out of ${ALGORITHMS.join(', ')}.`,
  },
  HOPLINE_AUTH_CLOCK_TOLERANCE_MS: {
    type: 'integer',
    default: 30_000,
    min: 0,
    max: 300_000,
    unit: 'ms',
    doc: 'Tolerated clock skew from the issuer.',
  },
  HOPLINE_AUTH_TENANT_CLAIM: {
    type: 'string',
    default: 'tenant',
    min: 1,
    max: 256,
    doc: "Claim of a token that holds the caller's tenant.",
  },
  HOPLINE_AUTH_API_KEYS_FILE: {
    type: 'string',
    optional: true,
    min: 1,
    max: 4_096,
    doc: 'Accept the API keys of this JSON file, `[{"key_sha256": "<hex>", "subject": "…", "tenant": "…"}]`; reloaded when it changes.',
  },
  HOPLINE_AUTH_API_KEY_HEADER: {
    type: 'string',
    default: 'x-api-key',
    min: 1,
    max: 64,
    doc: 'Request header of API keys, in lower case.',
  },
  HOPLINE_AUTH_NONE_ON_PUBLIC: {
    type: 'boolean',
    default: false,
    doc: 'Allow listening on an address other than loopback without authentication. Anyone who can reach the address then has access.',
  },
  HOPLINE_TENANTS: {
    type: 'string',
    optional: true,
    max: 65_536,
    doc: 'Tenants that requests may name while authentication is off, separated by commas. With tokens or API keys, only these determine the tenant.',
  },
} as const satisfies Readonly<Record<string, Setting>>;

type AuthSettings = Settings<typeof AUTH_SETTINGS>;

/** Contradictions in the settings of a server listening on `host`, including public access without authentication. */
export function authFaults(settings: AuthSettings, host: string): string[] {
  return [...bearerFaults(settings), ...keyFaults(settings), ...tenantFaults(settings), ...publicFaults(settings, host)];
}

function bearerFaults(settings: AuthSettings): string[] {
  const { HOPLINE_AUTH_ISSUER: issuer, HOPLINE_AUTH_AUDIENCE: audience } = settings;
  const { HOPLINE_AUTH_JWKS_URL: url, HOPLINE_AUTH_JWKS_FILE: file } = settings;
  const set = [issuer, audience, url ?? file].filter(value => value !== undefined).length;
  const faults: string[] = [];
  if (set > 0 && set < 3)
    faults.push(
      'HOPLINE_AUTH_ISSUER, HOPLINE_AUTH_AUDIENCE and one of HOPLINE_AUTH_JWKS_URL, HOPLINE_AUTH_JWKS_FILE must be set together',
    );
  if (url !== undefined && file !== undefined)
    faults.push('HOPLINE_AUTH_JWKS_URL and HOPLINE_AUTH_JWKS_FILE must not both be set');
  if (url?.startsWith('http:') && !isLoopback(new URL(url).hostname))
    faults.push('HOPLINE_AUTH_JWKS_URL must start with https: keys fetched over http can be forged');
  if (url !== undefined && new URL(url).username !== '') faults.push('HOPLINE_AUTH_JWKS_URL must not contain a user name');
  const known: readonly string[] = ALGORITHMS;
  const algorithms = listOf(settings.HOPLINE_AUTH_ALGORITHMS);
  if (algorithms.length === 0 || !algorithms.every(name => known.includes(name)))
    faults.push(`HOPLINE_AUTH_ALGORITHMS must be one or more of ${ALGORITHMS.join(', ')}`);
  return faults;
}

function keyFaults({ HOPLINE_AUTH_API_KEY_HEADER: header }: AuthSettings): string[] {
  const usable = HEADER_NAME.test(header) && header !== 'authorization';
  return usable ? [] : ['HOPLINE_AUTH_API_KEY_HEADER must consist of a-z, 0-9 and -, and must not be authorization'];
}

function tenantFaults(settings: AuthSettings): string[] {
  const tenants = listOf(settings.HOPLINE_TENANTS);
  if (tenants.length > TENANTS_MAX) return [`HOPLINE_TENANTS has more than ${TENANTS_MAX} names`];
  if (!tenants.every(isTenant)) return [`HOPLINE_TENANTS must contain names of up to ${TENANT_CHARS_MAX} characters`];
  return tenants.length > 0 && requiresCredentials(settings)
    ? ['HOPLINE_TENANTS must not be set together with HOPLINE_AUTH_ISSUER or HOPLINE_AUTH_API_KEYS_FILE']
    : [];
}

function publicFaults(settings: AuthSettings, host: string): string[] {
  if (isLoopback(host) || requiresCredentials(settings) || settings.HOPLINE_AUTH_NONE_ON_PUBLIC) return [];
  return [
    'HOPLINE_HOST is not loopback and authentication is off: set HOPLINE_AUTH_ISSUER or HOPLINE_AUTH_API_KEYS_FILE, or HOPLINE_AUTH_NONE_ON_PUBLIC=true to allow anyone who can reach the address',
  ];
}

function requiresCredentials({ HOPLINE_AUTH_ISSUER: issuer, HOPLINE_AUTH_API_KEYS_FILE: keys }: AuthSettings): boolean {
  return issuer !== undefined || keys !== undefined;
}

/** Creates the authenticator. Rejects with an Error of one sentence when a file cannot be used. */
export function authFromSettings(settings: AuthSettings, { logger }: { logger: Logger }): Promise<Authenticator> {
  const bearer = bearerOf(settings);
  const { HOPLINE_AUTH_API_KEYS_FILE: file, HOPLINE_AUTH_API_KEY_HEADER: header } = settings;
  return createAuthenticator({
    ...(bearer && { bearer }),
    ...(file !== undefined && { apiKeys: { file, header } }),
    tenants: listOf(settings.HOPLINE_TENANTS),
    logger,
  });
}

function bearerOf(settings: AuthSettings): AuthOptions['bearer'] {
  const { HOPLINE_AUTH_ISSUER: issuer, HOPLINE_AUTH_AUDIENCE: audience } = settings;
  const { HOPLINE_AUTH_JWKS_URL: url, HOPLINE_AUTH_JWKS_FILE: file = '' } = settings;
  if (issuer === undefined || audience === undefined) return undefined;
  return {
    issuer,
    audience,
    algorithms: listOf(settings.HOPLINE_AUTH_ALGORITHMS) as Algorithm[],
    clockToleranceMs: settings.HOPLINE_AUTH_CLOCK_TOLERANCE_MS,
    tenantClaim: settings.HOPLINE_AUTH_TENANT_CLAIM,
    keys: url === undefined ? { file } : { url, staleMsMax: settings.HOPLINE_AUTH_JWKS_STALE_MS },
  };
}

function listOf(text = ''): string[] {
  return text
    .split(',')
    .map(name => name.trim())
    .filter(name => name !== '');
}
