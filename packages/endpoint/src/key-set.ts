import { createLocalJWKSet, type JSONWebKeySet, type JWTVerifyGetKey } from 'jose';

/** Finds the key that a token says it was signed with. */
export type FindKey = JWTVerifyGetKey;

/** Keys of one issuer. */
export const KEYS_MAX = 100;

/** Reads a JSON Web Key Set (RFC 7517). Throws an Error of one sentence that quotes nothing: private keys may stand there by mistake. */
export function parseKeySet(text: string): FindKey {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw new Error('the key set is not JSON');
  }
  const keys = (value as Partial<JSONWebKeySet> | null)?.keys;
  if (!Array.isArray(keys) || keys.length === 0) throw new Error('the key set has no keys');
  if (keys.length > KEYS_MAX) throw new Error(`the key set has more than ${KEYS_MAX} keys`);
  if (keys.some(key => typeof key === 'object' && key !== null && ('d' in key || 'k' in key)))
    throw new Error('the key set has private or secret keys in it');
  try {
    return createLocalJWKSet(value as JSONWebKeySet);
  } catch {
    throw new Error('the key set is malformed');
  }
}
