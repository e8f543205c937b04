import { isDeepStrictEqual } from 'node:util';

/** Whether a decided value equals the stored one as JSON. The order of members does not matter. */
export function isSameFact(stored: unknown, decided: unknown): boolean {
  const json = JSON.stringify(decided);
  if (JSON.stringify(stored) === json) return true;
  return stored !== undefined && json !== undefined && isDeepStrictEqual(stored, JSON.parse(json));
}
