/** A text of a source file, and the text that takes its place. `file`: path from the root of the checkout. The text must occur once. */
export type SourceEdit = { file: string; from: string; to: string };

/** The source after the edits, which all belong to it. Throws if a text does not occur exactly once, because the edit would prove nothing. */
export function editedSource(source: string, edits: readonly SourceEdit[]): string {
  let edited = source;
  for (const { file, from, to } of edits) {
    if (from === to) throw new Error(`${file}: the edit changes nothing: ${from}`);
    if (edited.split(from).length !== 2) throw new Error(`${file} does not have this text once: ${from}`);
    edited = edited.replace(from, () => to);
  }
  return edited;
}
