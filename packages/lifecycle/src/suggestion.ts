import { closest, distance } from 'fastest-levenshtein';

/** Names that differ in more than a third of their characters are unrelated. */
const DIFFERENCE_MAX = 1 / 3;

/** `; did you mean X?` for an unknown name that resembles a known one, else "". */
export function suggestion(unknown: string, known: readonly string[]): string {
  if (known.length === 0) return '';
  const word = closest(unknown, known);
  const changes = distance(unknown.toLowerCase(), word.toLowerCase());
  const isClose = changes <= Math.max(1, Math.floor(unknown.length * DIFFERENCE_MAX)) || lettersOf(unknown) === lettersOf(word);
  return isClose ? `; did you mean ${word}?` : '';
}

/** Equal for two names whose letters only changed places, which count as two changes. */
function lettersOf(name: string): string {
  return [...name.toLowerCase()].sort().join('');
}
