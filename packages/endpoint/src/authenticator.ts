import { A2AError } from '@hopline/a2a';
import type { CardSecurity } from '@hopline/agent-card';
import type { Owner } from '@hopline/events';
import { type ReadyCheck, WatchedFile } from '@hopline/lifecycle';
import type { Logger } from '@hopline/telemetry';
import { API_KEY_CHARS_MAX, API_KEY_CHARS_MIN, parseApiKeys, verdictOnKey } from './api-keys.ts';
import { type BearerRules, verdictOnToken } from './bearer-token.ts';
import { type Refusal, tenantByCredentials, tenantByList, type Verdict } from './caller.ts';
import { cardSecurity, challengeOf, type RequiredCredentials } from './card-security.ts';
import { type FindKey, parseKeySet } from './key-set.ts';
import { RemoteKeySet } from './remote-key-set.ts';

export type AuthOptions = {
  /** Accepts tokens of an issuer (RFC 6750). */
  bearer?: BearerRules & { keys: { url: string; staleMsMax: number } | { file: string } };
  /** Accepts API keys in a request header, whose name is in lower case. */
  apiKeys?: { file: string; header: string };
  /** Tenants that requests may name while authentication is off. */
  tenants: readonly string[];
  logger: Logger;
};

/** Headers of a request, or metadata of a gRPC call, with lower-case names. */
export type Headers = Readonly<Record<string, string | string[] | undefined>>;

export type Authenticator = {
  /**
   * Identifies the caller and its tenant from the request's headers and the tenant it names. Rejects with UNAUTHENTICATED and
   * its challenge, with UNAVAILABLE while credentials cannot be checked, and with TASK_NOT_FOUND for a tenant that is not the
   * caller's. While authentication is off the caller has no subject.
   */
  authenticate(request: { headers: Headers; tenant: string | undefined }): Promise<Owner>;
  /** For the agent card; undefined while authentication is off. */
  readonly card: CardSecurity | undefined;
  /** Checks that fail while a changed file of credentials cannot be used, because a key that was removed from it is still accepted. */
  readonly checks: readonly ReadyCheck[];
  close(): void;
};

/** Rejects with an Error of one sentence when a file cannot be used. */
export async function createAuthenticator(options: AuthOptions): Promise<Authenticator> {
  const { bearer, apiKeys, tenants, logger } = options;
  const required: RequiredCredentials = { bearer: bearer !== undefined, apiKeyHeader: apiKeys?.header };
  const card = cardSecurity(required);
  if (card === undefined) {
    const resolveTenant = tenantByList(tenants);
    return { authenticate: async ({ tenant }) => resolveTenant({}, tenant), card, checks: [], close: () => {} };
  }
  const tokens = bearer && (await tokenCheck(bearer, logger));
  const keys = apiKeys && (await keyCheck(apiKeys.file, logger));
  return {
    authenticate: async ({ headers, tenant }) => {
      const token = bearerTokenOf(headers.authorization);
      if (tokens !== undefined && token !== undefined)
        return tenantByCredentials(callerOf(await tokens.check(token), required), tenant);
      const key = apiKeys && headers[apiKeys.header];
      if (keys !== undefined && key !== undefined)
        return tenantByCredentials(callerOf(await keys.verdict(String(key)), required), tenant);
      throw unauthenticated('credentials are missing', required, false);
    },
    card,
    checks: [
      ...(keys === undefined ? [] : [{ name: 'api_keys', optional: true, check: keys.check } as const]),
      ...(tokens?.checkFile === undefined ? [] : [{ name: 'jwks', optional: true, check: tokens.checkFile } as const]),
    ],
    close: () => tokens?.close(),
  };
}

const REASONS: Readonly<Record<Refusal, string>> = {
  expired: 'the token has expired',
  'key length': `an API key has ${API_KEY_CHARS_MIN} to ${API_KEY_CHARS_MAX} characters`,
  'not valid': 'the credentials are not valid',
};

function callerOf(verdict: Verdict, required: RequiredCredentials): Owner {
  if ('caller' in verdict) return verdict.caller;
  throw unauthenticated(REASONS[verdict.refusal], required, true);
}

function unauthenticated(detail: string, required: RequiredCredentials, refused: boolean): A2AError {
  return new A2AError('UNAUTHENTICATED', { detail, challenge: challengeOf(required, refused) });
}

/** The scheme's name is case-insensitive (RFC 9110 11.1). Several headers do not count as a token. */
function bearerTokenOf(header: string | string[] | undefined): string | undefined {
  return header === undefined ? undefined : /^bearer +(.*)$/i.exec(String(header))?.[1]?.trim();
}

async function tokenCheck({ keys, ...rules }: NonNullable<AuthOptions['bearer']>, logger: Logger) {
  const { find, checkFile, close } = 'url' in keys ? remoteKeys(keys, logger) : await keysOfFile(keys.file, logger);
  return { check: (token: string) => verdictOnToken(token, rules, find), checkFile, close };
}

type IssuerKeys = { find: FindKey; checkFile?: () => Promise<void>; close: () => void };

function remoteKeys(keys: { url: string; staleMsMax: number }, logger: Logger): IssuerKeys {
  const remote = new RemoteKeySet({ ...keys, logger });
  // Fetches the keys for the first caller without waiting: the server starts even when the issuer is down.
  void remote.refresh();
  return { find: remote.find, close: () => remote.close() };
}

async function keysOfFile(path: string, logger: Logger): Promise<IssuerKeys> {
  const file = await openFile(path, 'HOPLINE_AUTH_JWKS_FILE', parseKeySet, logger);
  return {
    find: async (header, token) => (await file.current())(header, token),
    checkFile: () => file.check(),
    close: () => {},
  };
}

async function keyCheck(path: string, logger: Logger) {
  const file = await openFile(path, 'HOPLINE_AUTH_API_KEYS_FILE', parseApiKeys, logger);
  return { verdict: async (key: string) => verdictOnKey(await file.current(), key), check: () => file.check() };
}

function openFile<T>(path: string, setting: string, parse: (text: string) => T, logger: Logger): Promise<WatchedFile<T>> {
  const onFault = (reason: string) =>
    logger.error({ reason }, `${setting} changed and cannot be used; the previous content stays in use`);
  return WatchedFile.open({ path, parse, onFault }).catch(error => {
    throw new Error(`${setting}: ${error instanceof Error ? error.message : 'cannot be used'}`);
  });
}
