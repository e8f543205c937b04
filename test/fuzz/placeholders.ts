import { randomUUID } from 'node:crypto';

/**
 * Placeholders for the ids of a run. Requests are generated before their tasks exist, so that a seed leads to the same requests in each
 * run.
 */
export const WAITING = 'TASK-WAITING';
export const ENDED = 'TASK-ENDED';
export const FRESH = 'FRESH-ID';

/** Sent as text, token and credentials; must not be in any error or log line. */
export const PLANTED = 'PLANTED-SECRET';

export type Known = { waiting: string; ended: string };

export function filled(text: string, { waiting, ended }: Known): string {
  return text
    .replaceAll(WAITING, waiting)
    .replaceAll(ENDED, ended)
    .replaceAll(FRESH, () => randomUUID());
}

/** Replaces placeholders in bytes, which may be invalid UTF-8. */
export function filledBytes(bytes: Uint8Array, known: Known): Uint8Array {
  return Buffer.from(filled(Buffer.from(bytes).toString('latin1'), known), 'latin1');
}
