export type TextDifference = { lost: number; doubled: number };

/** Characters of `expected` that `text` lacks, and characters of `text` that are not expected there, by their longest common subsequence. */
export function textDifference(expected: string, text: string): TextDifference {
  let row = new Uint32Array(text.length + 1);
  for (const unit of expected) {
    const next = new Uint32Array(text.length + 1);
    for (let at = 0; at < text.length; at += 1)
      next[at + 1] = text.startsWith(unit, at) ? row[at]! + 1 : Math.max(row[at + 1]!, next[at]!);
    row = next;
  }
  const shared = row[text.length]!;
  return { lost: [...expected].length - shared, doubled: text.length - shared };
}
