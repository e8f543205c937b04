import { A2AError, JSON_DEPTH_MAX, type JsonObject } from '@hopline/a2a';
import { isDeeperThan, isObject, list, text } from '@hopline/a2a/json-value';
import { base64url, type CryptoKey, decodeProtectedHeader, flattenedVerify, type JWK } from 'jose';
import { type SignedForm, signedForms } from './signed-forms.ts';

/** Signatures checked per card. */
export const SIGNATURES_MAX = 8;

/** Only asymmetric algorithms, because with a shared secret every reader could sign. */
const ALGORITHMS = ['ES256', 'ES384', 'ES512', 'EdDSA', 'Ed25519', 'RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512'];

/**
 * Finds the public key of a signature; undefined for an unknown key. `jku` is the address of the keys according to the card. The author
 * of the card chose it, so do not trust it.
 */
export type CardKeyOf = (kid: string, jku: string | undefined) => Promise<CryptoKey | JWK | undefined>;

export type VerifiedCard = {
  /** Exactly the members that the signature covers. Use this instead of the card. */
  signed: JsonObject;
  /**
   * True if the signature covers every member of the card. Otherwise it covers only the fields of A2A 1.0, and the members of 0.3 may be
   * forged.
   */
  whole: boolean;
  kid: string;
};

/** The forms of a signature, widest first. */
const FORMS: readonly SignedForm[] = ['whole', 'message', 'filled'];

/**
 * Verifies the signatures of a card by any signer. Runs in browsers. Throws INVALID_AGENT_RESPONSE when no signature is valid
 * under a key from `keyOf`.
 */
export async function verifyAgentCard(card: JsonObject, keyOf: CardKeyOf): Promise<VerifiedCard> {
  const signatures = list(card.signatures).filter(isObject).slice(0, SIGNATURES_MAX);
  if (signatures.length === 0) throw refusal('the agent card is not signed');
  const forms = formsOf(card);
  const found: (VerifiedCard & { form: SignedForm })[] = [];
  for (const signature of signatures) {
    const one = await formUnder(signature, forms, keyOf);
    if (one !== undefined) found.push({ ...one, signed: JSON.parse(forms[one.form]) as JsonObject, whole: one.form === 'whole' });
  }
  const best = FORMS.map(form => found.find(one => one.form === form)).find(one => one !== undefined);
  if (best === undefined) throw refusal('no signature of the agent card is valid');
  const { signed, whole, kid } = best;
  return { signed, whole, kid };
}

function formsOf(card: JsonObject): Record<SignedForm, string> {
  if (isDeeperThan(card, JSON_DEPTH_MAX)) throw refusal(`the agent card must not nest deeper than ${JSON_DEPTH_MAX} levels`);
  try {
    return signedForms(card);
  } catch (cause) {
    throw refusal('the agent card has no canonical form', cause);
  }
}

/** The widest form that the signature covers; undefined if it covers none, or if its key is unknown. */
async function formUnder(
  signature: JsonObject,
  forms: Record<SignedForm, string>,
  keyOf: CardKeyOf,
): Promise<{ form: SignedForm; kid: string } | undefined> {
  const jws = { protected: text(signature.protected) ?? '', signature: text(signature.signature) ?? '' };
  const header = headerOf(jws);
  const kid = text(header.kid);
  if (kid === undefined) return undefined;
  const key = await keyOf(kid, text(header.jku));
  if (key === undefined) return undefined;
  for (const form of FORMS) {
    const payload = base64url.encode(new TextEncoder().encode(forms[form]));
    const isValid = await flattenedVerify({ ...jws, payload }, key, { algorithms: ALGORITHMS }).then(
      () => true,
      () => false,
    );
    if (isValid) return { form, kid };
  }
  return undefined;
}

function headerOf(jws: { protected: string }): JsonObject {
  try {
    return { ...decodeProtectedHeader(jws) };
  } catch {
    return {};
  }
}

function refusal(detail: string, cause?: unknown): A2AError {
  return new A2AError('INVALID_AGENT_RESPONSE', { detail, retryable: false, cause });
}
