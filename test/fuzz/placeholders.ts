import { randomUUID } from 'node:crypto';

/**
 * Requests are generated before the tasks they are about exist, so that a seed means the same requests on every run. These words stand for what only a run knows.
 */
export const WAITING = 'TASK-WAITING';
export const ENDED = 'TASK-ENDED';
export const FRESH = 'FRESH-ID';

/** Said as text, token and credentials: may be in no error, in no line of a log. */
export const PLANTED = 'PLANTED-SECRET';

export type Known = { waiting: string; ended: string };

export function filled(text: string, { waiting, ended }: Known): string {
  return text
    .replaceAll(WAITING, waiting)
    .replaceAll(ENDED, ended)
    .replaceAll(FRESH, () => randomUUID());
}

/** The same in bytes, which need not be UTF-8. */
export function filledBytes(bytes: Uint8Array, known: Known): Uint8Array {
  return Buffer.from(filled(Buffer.from(bytes).toString('latin1'), known), 'latin1');
}
