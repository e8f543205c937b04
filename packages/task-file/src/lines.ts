import { TaskFileError } from './format.ts';

/** A line without its line feed. `end`: bytes of the input up to and including the line feed. */
export type Line = { text: string; number: number; end: number; terminated: boolean };

const LINE_FEED = 0x0a;

/**
 * The lines of a byte stream, at most one of them in memory. Throws TaskFileError for a line above `lineBytesMax` and for bytes that are
 * not UTF-8. Text after the last line feed is a line with `terminated: false`.
 */
export async function* linesOf(
  chunks: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
  lineBytesMax: number,
): AsyncGenerator<Line, void> {
  const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
  let pending: Uint8Array[] = [];
  let pendingBytes = 0;
  let number = 1;
  let end = 0;
  const take = (last: Uint8Array, terminated: boolean): Line => {
    const bytes = pending.length === 0 ? last : joined([...pending, last], pendingBytes + last.length);
    pending = [];
    pendingBytes = 0;
    end += bytes.length + (terminated ? 1 : 0);
    try {
      // Uses `stream` for the last line of a truncated file, which may end within a character.
      return { text: decoder.decode(bytes, { stream: !terminated }), number: number++, end, terminated };
    } catch {
      throw new TaskFileError('malformed', number, 'this is not UTF-8');
    }
  };
  for await (const chunk of chunks) {
    let from = 0;
    for (let at = chunk.indexOf(LINE_FEED); ; at = chunk.indexOf(LINE_FEED, from)) {
      const to = at === -1 ? chunk.length : at;
      if (pendingBytes + to - from > lineBytesMax) {
        throw new TaskFileError('too long', number, `the line has more than ${lineBytesMax} bytes`);
      }
      if (at === -1) break;
      yield take(chunk.subarray(from, at), true);
      from = at + 1;
    }
    if (from < chunk.length) {
      // Copied, because the source may reuse its buffer.
      pending.push(chunk.slice(from));
      pendingBytes += chunk.length - from;
    }
  }
  if (pendingBytes > 0) yield take(new Uint8Array(0), false);
}

/** Like `Buffer.concat`, which a browser lacks. */
function joined(parts: readonly Uint8Array[], length: number): Uint8Array {
  const whole = new Uint8Array(length);
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}
