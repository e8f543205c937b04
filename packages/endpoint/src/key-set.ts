import { createLocalJWKSet, type JSONWebKeySet, type JWTVerifyGetKey } from 'jose';

/** Finds the key that signed a token. */
export type FindKey = JWTVerifyGetKey;

/** Maximum number of keys of one issuer. */
export const KEYS_MAX = 100;

/**
 * Parses a JSON Web Key Set (RFC 7517). Throws an Error of one sentence that quotes no content: it may contain private keys by
 * mistake.
 */
export function parseKeySet(text: string): FindKey {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw new Error('the key set must be JSON');
  }
  const keys = (value as Partial<JSONWebKeySet> | null)?.keys;
  if (!Array.isArray(keys) || keys.length === 0) throw new Error('the key set has no keys');
  if (keys.length > KEYS_MAX) throw new Error(`the key set has more than ${KEYS_MAX} keys`);
  if (keys.some(key => typeof key === 'object' && key !== null && ('d' in key || 'k' in key)))
    throw new Error('the key set contains private or secret keys');
  try {
    return createLocalJWKSet(value as JSONWebKeySet);
  } catch {
    throw new Error('the key set is malformed');
  }
}
