/*
 * Clients of April 2025 choose the ids of their tasks, and two callers may choose the same. In the log such an id is
 * `own-<hash of the caller>-<id of the client>`, so that each caller has its own ids.
 */

/** Only an id of this form shows the client's part. */
const STORED = /^own-[\w-]{22}-(.+)$/;

/** Characters that `storedTaskId` adds to the id of a client. */
const ADDED_CHARS = 'own-'.length + 22 + '-'.length;

/**
 * The id in the log for a client's own id. `callerHash`: 22 characters of base64url (132 bits) that are unique to the caller. Without
 * authentication it is absent, and an id is stored unchanged unless `clientTaskId` would shorten it.
 */
export function storedTaskId(id: string, callerHash: string | undefined): string {
  if (callerHash === undefined && !STORED.test(id)) return id;
  return `own-${callerHash ?? 'x'.repeat(22)}-${id}`;
}

/** The id by which a client of this form knows a task: the id that it chose or, if it did not name the task, the id in the log. */
export function clientTaskId(storedId: string): string {
  return STORED.exec(storedId)?.[1] ?? storedId;
}

/** Maximum length of a client's own id if ids in the log have at most `storedCharsMax` characters. */
export function clientTaskIdCharsMax(storedCharsMax: number, callerHash: string | undefined): number {
  return callerHash === undefined ? storedCharsMax : storedCharsMax - ADDED_CHARS;
}
