/** Characters as logs and spans count them: code points, "\n" included (S2-38). A lone half of a surrogate pair is one. `length` counts 🔧 twice. */
export function codePoints(text: string): number {
  let count = text.length;
  for (let index = 1; index < text.length; index += 1) {
    if (isHalf(text, index, 0xdc00) && isHalf(text, index - 1, 0xd800)) {
      count -= 1;
      // The low half that was used is no high half, so that it needs no look.
      index += 1;
    }
  }
  return count;
}

function isHalf(text: string, index: number, first: number): boolean {
  return (text.charCodeAt(index) & 0xfc00) === first;
}
