import { hash } from 'node:crypto';
import type { Turn } from '@hopline/agent';

/** The thread of a turn is its context. With authentication it includes the owner, since two callers may choose the same context id. */
export function threadOf({ contextId, owner }: Pick<Turn, 'contextId' | 'owner'>): string {
  const { tenant, subject } = owner ?? {};
  return tenant === undefined && subject === undefined
    ? contextId
    : uuidOf(JSON.stringify([tenant ?? null, subject ?? null, contextId]));
}

/** A UUID (version 8, RFC 9562) derived from a text: thread ids of a LangGraph server are UUIDs. */
export function uuidOf(text: string): string {
  const hex = hash('sha256', text);
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-8${hex.slice(13, 16)}-8${hex.slice(17, 20)}-${hex.slice(20, 32)}`;
}
