/** Number of code points, "\n" included. A lone half of a surrogate pair counts as one. `length` counts 🔧 twice. */
export function codePoints(text: string): number {
  let count = text.length;
  for (let index = 1; index < text.length; index += 1) {
    if (splitsPair(text, index)) {
      count -= 1;
      // The low half that was counted is not a high half.
      index += 1;
    }
  }
  return count;
}

/**
 * The last place at or before `index` where `text` can be cut without splitting a surrogate pair: half a pair does not survive
 * UTF-8.
 */
export function cutIndex(text: string, index: number): number {
  if (index >= text.length) return text.length;
  return splitsPair(text, index) ? index - 1 : index;
}

function splitsPair(text: string, index: number): boolean {
  return isHalf(text, index, 0xdc00) && isHalf(text, index - 1, 0xd800);
}

function isHalf(text: string, index: number, first: number): boolean {
  return (text.charCodeAt(index) & 0xfc00) === first;
}
