import { A2A_JSON_TYPE, DIALECTS, type DialectName } from '@hopline/a2a';
import type { PushConfigEntry } from '@hopline/log';
import type { Pending } from './pending.ts';

/**
 * What a webhook is told in each dialect.
 * 1.0: one StreamResponse, in its HTTP+JSON form ([A2A 1.0] 4.3.3). 0.3 and before: the whole task, as every 0.x SDK posts it. April 2025: the event, as S3 (TaskStatusUpdateEvent)
 * and S4-24 (status and artifacts) show it.
 */
export const FORMS: Readonly<Record<DialectName, { tells: 'event' | 'task'; type: string; needsHistory: boolean }>> = {
  '1.0': { tells: 'event', type: A2A_JSON_TYPE, needsHistory: false },
  '0.3': { tells: 'task', type: 'application/json', needsHistory: true },
  // The place of an artifact among the others is only known to who has seen them all.
  legacy: { tells: 'event', type: 'application/json', needsHistory: true },
};

/** Name of the header that says which events a body holds: everything after the cursor before, up to this one. A repeated delivery has the same cursor and the same body. */
export const CURSOR_HEADER = 'x-hopline-cursor';
const TOKEN_HEADER = 'x-a2a-notification-token';

/** JSON text of a notification. */
export function bodyOf(dialect: DialectName, { event, task, artifactIndex }: Pending): string {
  const codec = DIALECTS[dialect];
  return JSON.stringify(task === undefined ? codec.encodeEvent(event, artifactIndex) : codec.encodeTask(task));
}

/** Headers of every notification of a configuration. They hold its secrets: never log them. */
export function headersOf({ dialect, token, authentication }: PushConfigEntry): Record<string, string> {
  const credentials = credentialsOf(dialect, token, authentication);
  return {
    'content-type': FORMS[dialect].type,
    'user-agent': 'hopline',
    ...(token !== undefined && { [TOKEN_HEADER]: token }),
    ...(authentication && credentials !== undefined && { authorization: `${authentication.scheme} ${credentials}` }),
  };
}

/** Clients of April 2025 name the scheme and put what belongs to it into `token` (S4-22). */
function credentialsOf(
  dialect: DialectName,
  token: string | undefined,
  authentication: PushConfigEntry['authentication'],
): string | undefined {
  const inToken = dialect === 'legacy' && authentication?.scheme.toLowerCase() === 'bearer';
  return authentication?.credentials ?? (inToken ? token : undefined);
}
