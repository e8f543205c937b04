import { A2AError } from '@hopline/a2a';
import { errors, jwtVerify } from 'jose';
import { isSubject, isTenant } from './caller.ts';
import type { FindKey } from './key-set.ts';
import { NOT_VALID, type Verdict } from './refusal.ts';

/** Longest token that is looked at; characters. */
export const TOKEN_CHARS_MAX = 8_192;

/** Signatures by a private key alone: with a shared secret whoever checks a token could also make one. */
export const ALGORITHMS = [
  'RS256',
  'RS384',
  'RS512',
  'PS256',
  'PS384',
  'PS512',
  'ES256',
  'ES384',
  'ES512',
  'EdDSA',
  'Ed25519',
] as const;
export type Algorithm = (typeof ALGORITHMS)[number];

export type BearerRules = {
  issuer: string;
  audience: string;
  algorithms: readonly Algorithm[];
  /** How far the issuer's clock may be off; milliseconds. */
  clockToleranceMs: number;
  /** Claim with the caller's tenant. A token without it has none. */
  tenantClaim: string;
};

/** Whose token it is (RFC 7519): signed by a known key, of this issuer for this audience, not expired, with a subject. Throws UNAVAILABLE while no keys can be had. */
export async function verdictOnToken(token: string, rules: BearerRules, findKey: FindKey): Promise<Verdict> {
  if (token.length > TOKEN_CHARS_MAX) return NOT_VALID;
  try {
    const { payload } = await jwtVerify(token, findKey, {
      issuer: rules.issuer,
      audience: rules.audience,
      algorithms: [...rules.algorithms],
      clockTolerance: rules.clockToleranceMs / 1000,
      requiredClaims: ['exp', 'sub'],
    });
    const { sub: subject, [rules.tenantClaim]: tenant } = payload;
    if (!isSubject(subject) || (tenant !== undefined && !isTenant(tenant))) return NOT_VALID;
    return { caller: { subject, ...(tenant !== undefined && { tenant }) } };
  } catch (error) {
    if (error instanceof A2AError) throw error;
    // The signature is checked before the time: only who had a good token is told that it is over.
    return error instanceof errors.JWTExpired ? { refusal: 'expired' } : NOT_VALID;
  }
}
