import { hash, timingSafeEqual } from 'node:crypto';
import type { Owner } from '@hopline/events';
import { isSubject, isTenant, NOT_VALID, SUBJECT_CHARS_MAX, TENANT_CHARS_MAX, type Verdict } from './caller.ts';

/** Maximum number of keys in one file, because each request is compared with all of them (a thousand take 0.05 ms). */
export const API_KEYS_MAX = 1_000;
/** Minimum number of characters of a key, because a shorter one could be guessed from its hash. */
export const API_KEY_CHARS_MIN = 16;
export const API_KEY_CHARS_MAX = 512;

export type ApiKey = { sha256: Buffer; caller: Owner };

const FIELDS = ['key_sha256', 'subject', 'tenant'];
const SHA256_HEX = /^[0-9a-f]{64}$/;

/**
 * Parses `[{"key_sha256": "<hex>", "subject": "…", "tenant": "…"}]`. Throws an Error of one sentence that quotes no content.
 */
export function parseApiKeys(text: string): ApiKey[] {
  const entries = parseArray(text);
  if (entries.length > API_KEYS_MAX) throw new Error(`the file has more than ${API_KEYS_MAX} keys`);
  const keys = entries.map((entry, index) => parseEntry(entry, `key ${index + 1}`));
  // Two callers for one key would make the owner of its tasks ambiguous.
  if (new Set(keys.map(key => key.sha256.toString('hex'))).size < keys.length)
    throw new Error('the file contains the same key twice');
  return keys;
}

function parseArray(text: string): unknown[] {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw new Error('the file must be JSON');
  }
  if (!Array.isArray(value)) throw new Error('the file must be an array of keys');
  return value;
}

function parseEntry(entry: unknown, which: string): ApiKey {
  if (typeof entry !== 'object' || entry === null) throw new Error(`${which} must be an object`);
  const { key_sha256: sha256, subject, tenant } = entry as Record<string, unknown>;
  if (Object.keys(entry).some(name => !FIELDS.includes(name)))
    throw new Error(`${which} has an unknown field; allowed are ${FIELDS.join(', ')}`);
  if (typeof sha256 !== 'string' || !SHA256_HEX.test(sha256))
    throw new Error(`${which}: key_sha256 must be 64 lower-case hexadecimal digits`);
  if (!isSubject(subject)) throw new Error(`${which}: subject must be 1 to ${SUBJECT_CHARS_MAX} characters`);
  if (tenant !== undefined && !isTenant(tenant)) throw new Error(`${which}: tenant must be 1 to ${TENANT_CHARS_MAX} characters`);
  return { sha256: Buffer.from(sha256, 'hex'), caller: { subject, ...(tenant !== undefined && { tenant }) } };
}

/** Identifies the caller of a key. Takes the same time for every key of a permitted length. */
export function verdictOnKey(keys: readonly ApiKey[], presented: string): Verdict {
  if (presented.length < API_KEY_CHARS_MIN || presented.length > API_KEY_CHARS_MAX) return { refusal: 'key length' };
  const sha256 = hash('sha256', presented, 'buffer');
  let verdict = NOT_VALID;
  for (const key of keys) if (timingSafeEqual(key.sha256, sha256)) verdict = { caller: key.caller };
  return verdict;
}
