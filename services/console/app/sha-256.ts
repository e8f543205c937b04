import { sha256 } from '@noble/hashes/sha2.js';
import { bytesToHex } from '@noble/hashes/utils.js';

type Encoding = 'hex' | 'base64url';

/**
 * SHA-256 in the form of `node:crypto`, which vite.config.ts replaces by this module. The browser's own `crypto.subtle` is asynchronous, and absent
 * from pages without TLS.
 * @public
 */
export function createHash(algorithm: 'sha256') {
  const hashing = create(algorithm);
  return {
    update(text: string) {
      hashing.update(new TextEncoder().encode(text));
      return this;
    },
    digest: (encoding: Encoding) => encoded(hashing.digest(), encoding),
  };
}

/** @public */
export function hash(algorithm: 'sha256', text: string, encoding: Encoding = 'hex'): string {
  return createHash(algorithm).update(text).digest(encoding);
}

function create(algorithm: 'sha256') {
  if (algorithm !== 'sha256') throw new TypeError(`only sha256 is known, not ${algorithm}`);
  return sha256.create();
}

function encoded(digest: Uint8Array, encoding: Encoding): string {
  if (encoding === 'hex') return bytesToHex(digest);
  return btoa(String.fromCharCode(...digest))
    .replaceAll('+', '-')
    .replaceAll('/', '_')
    .replace(/=+$/, '');
}
