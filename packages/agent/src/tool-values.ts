import { cutIndex, isDeeperThan } from '@hopline/a2a';
import { INPUT_DEPTH_MAX } from '@hopline/events';
import { TURN_TOOL_BYTES_MAX } from './limits.ts';

/**
 * The member that marks an argument or result that was cut. Its value is the number of JSON bytes of the uncut value.
 * @public
 */
export const CUT_KEY = 'hopline.cut';

/** Replaces a value that is too large or too deep: its size, and its beginning (of a string unchanged, otherwise of its JSON). */
export type CutValue = { [CUT_KEY]: number; text: string };

/** Levels of JSON in the arguments or result of a call. The surrounding input adds four more. */
const VALUE_DEPTH_MAX = INPUT_DEPTH_MAX - 8;

/** Bounds the arguments and results of the tool calls of one turn. */
export class ToolValues {
  #bytes = 0;

  /**
   * The value, cut to `bytesMax` and to what the turn has left; undefined for a value that cannot be written as JSON. Throws what
   * `JSON.stringify` throws.
   */
  bounded(value: unknown, bytesMax: number): unknown {
    const json = JSON.stringify(value) as string | undefined;
    if (json === undefined) return undefined;
    const bytes = Buffer.byteLength(json);
    const max = Math.min(bytesMax, TURN_TOOL_BYTES_MAX - this.#bytes);
    if (bytes <= max && !isDeeperThan(value, VALUE_DEPTH_MAX)) {
      this.#bytes += bytes;
      return value;
    }
    const text = beginning(typeof value === 'string' ? value : json, max);
    this.#bytes += Buffer.byteLength(JSON.stringify(text));
    return { [CUT_KEY]: bytes, text } satisfies CutValue;
  }
}

/** The longest prefix, within a factor of two, that takes at most `bytesMax` bytes as JSON. */
function beginning(text: string, bytesMax: number): string {
  let kept = text.slice(0, cutIndex(text, Math.max(0, bytesMax)));
  while (kept !== '' && Buffer.byteLength(JSON.stringify(kept)) > bytesMax)
    kept = kept.slice(0, cutIndex(kept, kept.length >> 1));
  return kept;
}
