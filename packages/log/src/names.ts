import { isAgentName, isRole, isTaskId, type Role } from '@hopline/events';

/**
 * Names that become subject tokens. A bad one is a bug of the caller, not a fault of the log: TypeError, before anything is sent.
 * The longest key is that of a push configuration: a task id, and its own id of 128 characters, in base64url of their UTF-8. The characters of a key are those of a NATS key-value bucket (ADR-8), so that every bucket can be read with `nats kv`.
 */
export const KEY_CHARS_MAX = 1024;
/** A SHA-256 in base64url is 43. */
const WAKE_KEY_CHARS_MAX = 64;
const WAKE_KEY = /^[-\w]+$/;
const KEY = /^[-/=\w]+(\.[-/=\w]+)*$/;

export function requireTaskId(taskId: string): void {
  if (!isTaskId(taskId)) throw new TypeError('a task id is 1 to 128 of letters, digits, "_" and "-"');
}

export function requireAgent(name: string): void {
  if (!isAgentName(name)) throw new TypeError('an agent is named by 1 to 32 of a-z, 0-9 and "-"');
}

export function isWakeKey(key: string): boolean {
  return key.length <= WAKE_KEY_CHARS_MAX && WAKE_KEY.test(key);
}

export function requireWakeKey(key: string): void {
  if (!isWakeKey(key))
    throw new TypeError(`a key to wake somebody up is 1 to ${WAKE_KEY_CHARS_MAX} of letters, digits, "_" and "-"`);
}

export function requireRole(role: string): asserts role is Role {
  if (!isRole(role)) throw new TypeError('a role is "supervisor" or "agent.<name>", the name 1 to 32 of a-z, 0-9 and "-"');
}

export function requireKey(key: string): void {
  if (key.length > KEY_CHARS_MAX || !KEY.test(key)) {
    throw new TypeError(`a key is 1 to ${KEY_CHARS_MAX} of letters, digits, "_", "-", "/", "=" and single "." between them`);
  }
}
