import type { JsonObject } from '@hopline/a2a';
import { isObject } from '@hopline/a2a/json-value';
import canonicalize from 'canonicalize';
import { CARD_MESSAGE, messageOf } from './card-messages.ts';

/**
 * What a signature of a card can cover, as text in the form of RFC 8785 (S4-5).
 * `whole`: the document as it is served, without its signatures; readers of plain JSON compute this one.
 * `message`: what [A2A 1.0] 8.4.1 asks for: the fields of the protobuf message, those with default values only where they are required or set.
 * `filled`: the same without anything empty, which is what the SDKs for Python and JavaScript compute: they also leave out a security requirement without scopes.
 */
export type SignedForm = 'whole' | 'message' | 'filled';

/** Throws Error for what JSON cannot be, e.g. half of a surrogate pair. */
export function signedForms(card: JsonObject): Record<SignedForm, string> {
  const { signatures: _, ...whole } = card;
  const message = messageOf(whole, CARD_MESSAGE, ({ presence }, value) => presence !== undefined || !isDefault(value));
  return { whole: canonical(whole), message: canonical(message), filled: canonical(filled(message) ?? {}) };
}

function canonical(value: unknown): string {
  return canonicalize(value) ?? '{}';
}

function isDefault(value: unknown): boolean {
  if (Array.isArray(value)) return value.length === 0;
  if (isObject(value)) return Object.keys(value).length === 0;
  return value === '' || value === false || value === 0;
}

/** Without empty texts, lists and objects, at any depth; undefined when nothing is left. */
function filled(value: unknown): unknown {
  if (value === '' || value === null) return undefined;
  if (Array.isArray(value)) {
    const items = value.map(filled).filter(item => item !== undefined);
    return items.length > 0 ? items : undefined;
  }
  if (!isObject(value)) return value;
  const members = Object.entries(value).flatMap(([name, item]) => {
    const kept = filled(item);
    return kept === undefined ? [] : [[name, kept] as const];
  });
  return members.length > 0 ? Object.fromEntries(members) : undefined;
}
