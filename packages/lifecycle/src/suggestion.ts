import { closest, distance } from 'fastest-levenshtein';

/** A word that differs in more than a third of its characters is another word. */
const DIFFERENCE_MAX = 1 / 3;

/** `; did you mean X?` for an unknown name that resembles a known one, else "". */
export function suggestion(unknown: string, known: readonly string[]): string {
  if (known.length === 0) return '';
  const word = closest(unknown, known);
  const changes = distance(unknown.toLowerCase(), word.toLowerCase());
  return changes <= Math.max(1, Math.floor(unknown.length * DIFFERENCE_MAX)) ? `; did you mean ${word}?` : '';
}
