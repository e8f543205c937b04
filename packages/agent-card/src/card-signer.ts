import { createPrivateKey, createPublicKey, type KeyObject } from 'node:crypto';
import type { JsonObject } from '@hopline/a2a';
import { isObject, text } from '@hopline/a2a/json-value';
import { calculateJwkThumbprint, FlattenedSign, type JWK } from 'jose';
import { signedForms } from './signed-forms.ts';

/** One entry of `signatures` ([A2A 1.0] 8.4.2): a JWS without its payload, which is the card. */
export type CardSignature = { protected: string; signature: string };

export type CardSignerSettings = {
  /** A private key, as JWK or PEM. */
  key: string;
  /** The key id; by default the `kid` of the JWK, else its RFC 7638 thumbprint. */
  keyId?: string | undefined;
  /** URL of the public key. */
  jku?: string | undefined;
};

/** Smallest secure RSA key (RFC 7518 3.3); bits. */
const RSA_BITS_MIN = 2048;
const EC_ALGORITHMS: Readonly<Record<string, string>> = { prime256v1: 'ES256', secp384r1: 'ES384', secp521r1: 'ES512' };
const RSA_ALGORITHMS = ['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512'];

/** Signs cards with one key. */
export class CardSigner {
  readonly kid: string;
  readonly alg: string;
  /** Changes whenever signatures would change: with the key, the key id or the URL. */
  readonly identity: string;
  /** The public key for clients (RFC 7517 4), derived from the public half, so no private member can leak into it. */
  readonly publicKey: JWK;
  readonly #key: KeyObject;
  readonly #jku: string | undefined;

  private constructor(key: KeyObject, names: { kid: string; alg: string; thumbprint: string; jku: string | undefined }) {
    this.#key = key;
    this.kid = names.kid;
    this.alg = names.alg;
    this.identity = JSON.stringify(names);
    this.#jku = names.jku;
    const jwk = createPublicKey(key).export({ format: 'jwk' }) as JWK;
    this.publicKey = { ...jwk, kid: names.kid, alg: names.alg, use: 'sig' };
  }

  /** Throws TypeError for a key that cannot sign, with one sentence that does not quote the key. */
  static async open({ key: content, keyId, jku }: CardSignerSettings): Promise<CardSigner> {
    const jwk = jwkOf(content);
    const key = privateKeyOf(jwk ?? content);
    const thumbprint = await calculateJwkThumbprint(key.export({ format: 'jwk' }) as JWK);
    return new CardSigner(key, {
      kid: keyId ?? text(jwk?.kid) ?? thumbprint,
      alg: algorithmOf(key, text(jwk?.alg)),
      thumbprint,
      jku,
    });
  }

  /** Creates one signature for each form in which clients verify the card (`SignedForm`). */
  async sign(card: JsonObject): Promise<CardSignature[]> {
    const { message, filled, whole } = signedForms(card);
    // The form of the specification comes first, because some clients try only one signature.
    const forms = [...new Set([message, filled, whole])];
    return Promise.all(forms.map(form => this.#signed(form)));
  }

  async #signed(form: string): Promise<CardSignature> {
    const header = { alg: this.alg, kid: this.kid, typ: 'JOSE', ...(this.#jku !== undefined && { jku: this.#jku }) };
    const jws = await new FlattenedSign(new TextEncoder().encode(form)).setProtectedHeader(header).sign(this.#key);
    return { protected: jws.protected!, signature: jws.signature };
  }
}

function jwkOf(content: string): JsonObject | undefined {
  if (!content.trimStart().startsWith('{')) return undefined;
  try {
    const parsed = JSON.parse(content) as unknown;
    return isObject(parsed) ? parsed : undefined;
  } catch {
    return undefined;
  }
}

function privateKeyOf(source: JsonObject | string): KeyObject {
  try {
    return typeof source === 'string' ? createPrivateKey(source) : createPrivateKey({ key: source, format: 'jwk' });
  } catch {
    // The parser error may quote the key.
    throw new TypeError('the key of the agent card must be a private key, as JWK or PEM');
  }
}

function algorithmOf(key: KeyObject, requested: string | undefined): string {
  const { asymmetricKeyType: type, asymmetricKeyDetails: details } = key;
  const curve = EC_ALGORITHMS[details?.namedCurve ?? ''];
  if (type === 'ec' && curve !== undefined) return curve;
  if (type === 'ed25519') return 'EdDSA';
  if (type === 'rsa' && (details?.modulusLength ?? 0) >= RSA_BITS_MIN) {
    return requested !== undefined && RSA_ALGORITHMS.includes(requested) ? requested : 'RS256';
  }
  throw new TypeError(
    `the key of the agent card must be EC P-256, P-384 or P-521, Ed25519, or RSA of at least ${RSA_BITS_MIN} bits`,
  );
}
