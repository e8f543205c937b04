/** Shortest text, in UTF-16 units, whose copy counts as a repetition without further evidence: models emit "ha" and then "ha" again. */
export const REPEATED_UNITS_MIN = 12;
/** Minimum number of different units in it: models draw lines of dashes and indent with tokens of spaces. */
export const REPEATED_DISTINCT_MIN = 4;

/** Whether a copy of the text is a repetition rather than a token that follows an equal one. */
export function isRepetition(text: string): boolean {
  if (text.length < REPEATED_UNITS_MIN) return false;
  const different = new Set<number>();
  for (let index = 0; index < text.length; index += 1)
    if (different.add(text.charCodeAt(index)).size >= REPEATED_DISTINCT_MIN) return true;
  return false;
}
