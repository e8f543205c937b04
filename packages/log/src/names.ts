/*
 * Names that become subject tokens or headers, checked here for every log. An invalid one is a bug of the caller, not a fault of the log,
 * so it throws TypeError before anything is sent. The longest key is that of a push configuration: a task id, and a configuration id of 128
 * characters in base64url of its UTF-8. Keys use the characters of a NATS key-value bucket (ADR-8), so that `nats kv` reads every bucket.
 */

import { AGENT_NAME_RULE, isAgentName, isRole, isTaskId, isWriter, type Role, type Writer } from '@hopline/events';

export const KEY_CHARS_MAX = 1024;
/** A SHA-256 in base64url has 43 characters. */
const WAKE_KEY_CHARS_MAX = 64;
const WAKE_KEY = /^[-\w]+$/;
const KEY = /^[-/=\w]+(\.[-/=\w]+)*$/;
/**
 * Servers drop white space around a header value, and UTF-8 maps every lone surrogate to one character. Both would make two different ids
 * equal.
 */
const RECORD_ID = /^[\x21-\x7e]+$/;

export function requireTaskId(taskId: string): void {
  if (!isTaskId(taskId)) throw new TypeError('a task id must be 1 to 128 letters, digits, "_" or "-"');
}

export function requireAgent(name: string): void {
  if (!isAgentName(name)) throw new TypeError(`an agent name must be ${AGENT_NAME_RULE}`);
}

export function isWakeKey(key: string): boolean {
  return key.length <= WAKE_KEY_CHARS_MAX && WAKE_KEY.test(key);
}

export function requireWakeKey(key: string): void {
  if (!isWakeKey(key)) throw new TypeError(`a wake-up key must be 1 to ${WAKE_KEY_CHARS_MAX} letters, digits, "_" or "-"`);
}

export function requireRole(role: string): asserts role is Role {
  if (!isRole(role)) throw new TypeError(`a role must be "supervisor" or "agent.<name>" with a name of ${AGENT_NAME_RULE}`);
}

/** Also throws if the writer is an agent whose name is invalid. */
export function requireWriter(writer: string): asserts writer is Writer {
  if (!isWriter(writer)) throw new TypeError(`the agent of a record must have a name of ${AGENT_NAME_RULE}`);
}

export function requireRecordId(id: string): void {
  if (!RECORD_ID.test(id)) throw new TypeError('the id of a record or of work must be 1 or more visible ASCII characters');
}

/** Id of the `n`-th append of a relay. `relay`: a name that is unique to this run of the process. */
export function factsId(taskId: string, relay: string, n: number): string {
  return `${taskId}:${relay}:${n}`;
}

/** Replaces the relay's identity in the ids of appends that an import makes. */
export const IMPORTER = 'import';

/** `{ relay }` or `{}`, for spreading into a record. */
export function relayOfFactsId(id: string): { relay?: string } {
  const relay = /^[^:]+:(.+):\d+$/.exec(id)?.[1];
  return relay === undefined ? {} : { relay };
}

/** The task of a record, from the id of its append. */
export function taskOfFactsId(id: string): string {
  return id.slice(0, id.indexOf(':'));
}

export function isKey(key: unknown): key is string {
  return typeof key === 'string' && key.length <= KEY_CHARS_MAX && KEY.test(key);
}

export function requireKey(key: string): void {
  if (!isKey(key)) {
    throw new TypeError(`a key must be 1 to ${KEY_CHARS_MAX} letters, digits, "_", "-", "/", "=", with single "." between them`);
  }
}
