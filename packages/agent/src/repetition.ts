/** Shortest text, in UTF-16 units, of which a copy counts as a repetition without further evidence. Models may emit "ha" twice. */
export const REPEATED_UNITS_MIN = 12;
/** Minimum number of different units in it, because models draw lines of dashes and indent with tokens of spaces. */
export const REPEATED_DISTINCT_MIN = 4;

/** Whether a copy of the text is a repetition, rather than a second token that happens to be equal. */
export function isRepetition(text: string): boolean {
  if (text.length < REPEATED_UNITS_MIN) return false;
  const different = new Set<number>();
  for (let index = 0; index < text.length; index += 1)
    if (different.add(text.charCodeAt(index)).size >= REPEATED_DISTINCT_MIN) return true;
  return false;
}
