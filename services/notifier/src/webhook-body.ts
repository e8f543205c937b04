import { A2A_JSON_TYPE, DIALECTS, type DialectName } from '@hopline/a2a';
import type { PushConfigEntry } from '@hopline/log';
import type { PendingDelivery } from './pending-delivery.ts';

type NotificationForm = { content: 'event' | 'task'; type: string; needsHistory: boolean };

/**
 * Forms of a notification by dialect. 1.0: one StreamResponse in its HTTP+JSON form ([A2A 1.0] 4.3.3). 0.3: the whole task, like the 0.x
 * SDKs. April 2025: the status or artifact event.
 */
export const NOTIFICATION_FORMS: Readonly<Record<DialectName, NotificationForm>> = {
  '1.0': { content: 'event', type: A2A_JSON_TYPE, needsHistory: false },
  '0.3': { content: 'task', type: 'application/json', needsHistory: true },
  // The index of an artifact depends on all earlier artifacts of its task.
  legacy: { content: 'event', type: 'application/json', needsHistory: true },
};

/** The bucket may hold dialects of a later version. */
export function isKnownDialect(name: string): name is DialectName {
  return Object.hasOwn(NOTIFICATION_FORMS, name);
}

/**
 * The body contains every event after the cursor in AFTER_HEADER up to the one in CURSOR_HEADER. A repeated delivery has the same cursors
 * and the same body, unless the log has lost the newest progress of the webhook.
 */
export const CURSOR_HEADER = 'x-hopline-cursor';
export const AFTER_HEADER = 'x-hopline-after';
const TOKEN_HEADER = 'x-a2a-notification-token';

/** JSON text of a notification. */
export function bodyOf(dialect: DialectName, { event, task, artifactIndex }: PendingDelivery): string {
  const codec = DIALECTS[dialect];
  return JSON.stringify(task === undefined ? codec.encodeEvent(event, artifactIndex) : codec.encodeTask(task));
}

/** Headers of every notification of a configuration. They hold its secrets and must never be logged. */
export function headersOf({ dialect, token, authentication }: PushConfigEntry): Record<string, string> {
  const credentials = credentialsOf(dialect, token, authentication);
  return {
    'content-type': NOTIFICATION_FORMS[dialect].type,
    'user-agent': 'hopline',
    ...(token !== undefined && { [TOKEN_HEADER]: token }),
    ...(authentication && credentials !== undefined && { authorization: `${authentication.scheme} ${credentials}` }),
  };
}

/** Clients of the April 2025 dialect name the scheme and send its credentials in `token` (S4-22). */
function credentialsOf(
  dialect: DialectName,
  token: string | undefined,
  authentication: PushConfigEntry['authentication'],
): string | undefined {
  const isInToken = dialect === 'legacy' && authentication?.scheme.toLowerCase() === 'bearer';
  return authentication?.credentials ?? (isInToken ? token : undefined);
}
