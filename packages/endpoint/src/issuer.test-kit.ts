import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { createLogger, type Logger } from '@hopline/telemetry';
import { exportJWK, generateKeyPair, type JWTPayload, SignJWT } from 'jose';
import type { BearerRules } from './bearer-token.ts';

export const ISSUER = 'https://issuer.example';
export const AUDIENCE = 'hopline';
export const RULES: BearerRules = {
  issuer: ISSUER,
  audience: AUDIENCE,
  algorithms: ['RS256', 'ES256'],
  clockToleranceMs: 30_000,
  tenantClaim: 'tenant',
};

export type Claims = Readonly<Record<string, unknown>>;

export type Issuer = {
  /** Creates a token that is valid for a minute. `claims` override its claims; undefined removes one. */
  token(claims?: Claims, header?: { kid?: string }): Promise<string>;
  /** The public keys. */
  keySet: string;
};

export async function createIssuer(kid = 'k1', alg: 'ES256' | 'RS256' | 'ES384' = 'ES256'): Promise<Issuer> {
  const { publicKey, privateKey } = await generateKeyPair(alg);
  const now = Math.floor(Date.now() / 1000);
  return {
    token: (claims = {}, header = {}) =>
      new SignJWT({ iss: ISSUER, aud: AUDIENCE, sub: 'ann', iat: now, exp: now + 60, ...claims } as JWTPayload)
        .setProtectedHeader({ alg, kid, ...header })
        .sign(privateKey),
    keySet: JSON.stringify({ keys: [{ ...(await exportJWK(publicKey)), kid, alg, use: 'sig' }] }),
  };
}

/** Seconds since the epoch, `seconds` from now. */
export const inSeconds = (seconds: number): number => Math.floor(Date.now() / 1000) + seconds;

export async function folder(t: TestContext): Promise<(name: string) => string> {
  const path = await mkdtemp(join(tmpdir(), 'hopline-auth-'));
  t.after(() => rm(path, { recursive: true }));
  return name => join(path, name);
}

export function recordingLogger(): { logger: Logger; lines: string[] } {
  const lines: string[] = [];
  const destination = { write: (line: string) => lines.push(line) };
  return { logger: createLogger({ service: 'auth', instance: 'test', level: 'trace', destination }), lines };
}
