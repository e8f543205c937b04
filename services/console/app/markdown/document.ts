import { BlockReader, type MarkdownBlock } from './blocks.ts';

/**
 * The blocks of a growing text, in one group for each of its segments. A group whose segment is complete stays the same object, so that the
 * page renders only the last group, however long the text is.
 */
export class MarkdownDocument {
  /** The complete segments that were read, the groups of their blocks, and the reader after each. */
  readonly #segments: string[] = [];
  readonly #groups: (readonly MarkdownBlock[])[] = [];
  readonly #readers: BlockReader[] = [new BlockReader()];

  groups(segments: readonly string[]): readonly (readonly MarkdownBlock[])[] {
    const complete = segments.slice(0, -1);
    const changed = this.#segments.findIndex((segment, index) => segment !== complete[index]);
    // A seek backwards continues with the reader of that place.
    if (changed >= 0) this.#forget(changed);
    for (const segment of complete.slice(this.#segments.length)) {
      const reader = this.#readers.at(-1)!.copy();
      readSegment(reader, segment);
      this.#groups.push(reader.take());
      this.#segments.push(segment);
      this.#readers.push(reader);
    }
    const last = this.#readers.at(-1)!.copy();
    readSegment(last, segments.at(-1) ?? '');
    return [...this.#groups, last.end()];
  }

  #forget(from: number): void {
    this.#segments.length = from;
    this.#groups.length = from;
    this.#readers.length = from + 1;
  }
}

/** A segment of a line without an end is a line. */
function readSegment(reader: BlockReader, segment: string): void {
  const lines = segment.split('\n');
  if (lines.at(-1) === '') lines.pop();
  for (const line of lines) reader.line(line);
}
