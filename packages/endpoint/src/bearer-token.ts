import { A2AError } from '@hopline/a2a';
import { errors, jwtVerify } from 'jose';
import { isSubject, isTenant, NOT_VALID, type Verdict } from './caller.ts';
import type { FindKey } from './key-set.ts';

/** Longest token that is parsed. */
export const TOKEN_CHARS_MAX = 8_192;

/** Asymmetric signatures only: with a shared secret every verifier could also issue tokens. */
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
  /** Tolerated clock difference to the issuer. */
  clockToleranceMs: number;
  /** Claim with the caller's tenant. Absent: no tenant. */
  tenantClaim: string;
};

/**
 * Identifies the caller of a token (RFC 7519). The token must be signed by a known key of this issuer for this audience, must not have
 * expired, and must have a subject. Throws UNAVAILABLE while no keys are available.
 */
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
    // The signature is checked before the time, so only the holder of a genuine token learns that it has expired.
    return error instanceof errors.JWTExpired ? { refusal: 'expired' } : NOT_VALID;
  }
}
