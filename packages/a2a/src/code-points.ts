/** Number of code points, "\n" included. A lone half of a surrogate pair counts as one. `length` counts 🔧 twice. */
export function codePoints(text: string): number {
  let count = text.length;
  for (let index = 1; index < text.length; index += 1) {
    if (splitsPair(text, index)) {
      count -= 1;
      // The low half of this pair cannot begin another pair.
      index += 1;
    }
  }
  return count;
}

/**
 * The last place at or before `index` where `text` can be cut without splitting a surrogate pair, because half a pair does not survive
 * UTF-8.
 */
export function cutIndex(text: string, index: number): number {
  if (index >= text.length) return text.length;
  return splitsPair(text, index) ? index - 1 : index;
}

/** The range in which two texts differ: they are equal before `start`, and after `aEnd` and `bEnd`. Never splits a surrogate pair. */
export function differingSpan(a: string, b: string): { start: number; aEnd: number; bEnd: number } {
  const shorter = Math.min(a.length, b.length);
  let start = 0;
  while (start < shorter && a[start] === b[start]) start += 1;
  start = Math.min(cutIndex(a, start), cutIndex(b, start));
  let same = 0;
  while (same < shorter - start && a[a.length - 1 - same] === b[b.length - 1 - same]) same += 1;
  // Both halves of a pair belong to the same side of the boundary.
  while (same > 0 && (cutIndex(a, a.length - same) < a.length - same || cutIndex(b, b.length - same) < b.length - same))
    same -= 1;
  return { start, aEnd: a.length - same, bEnd: b.length - same };
}

function splitsPair(text: string, index: number): boolean {
  return isHalf(text, index, 0xdc00) && isHalf(text, index - 1, 0xd800);
}

function isHalf(text: string, index: number, first: number): boolean {
  return (text.charCodeAt(index) & 0xfc00) === first;
}
