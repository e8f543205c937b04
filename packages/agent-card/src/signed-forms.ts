import type { JsonObject } from '@hopline/a2a';
import { isObject } from '@hopline/a2a/json-value';
import canonicalize from 'canonicalize';
import { CARD_MESSAGE, messageOf } from './card-messages.ts';

/**
 * The texts that a signature of a card may cover, canonical by RFC 8785. `whole`: the served document without its signatures; for clients
 * that read plain JSON. `message`: the form of [A2A 1.0] 8.4.1: the fields of the protobuf message, those with default values only where
 * required or set. `filled`: the same without empty values, as the SDKs for Python and JavaScript compute it: they also omit a security
 * requirement without scopes.
 */
export type SignedForm = 'whole' | 'message' | 'filled';

/** Throws Error for values that JSON cannot hold, e.g. a lone surrogate. */
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

/** Removes empty texts, lists and objects, at any depth; undefined when nothing is left. */
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
