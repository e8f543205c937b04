/**
 * Where text may be cut:
 * - never inside a surrogate pair, because half a pair does not survive UTF-8;
 * - not inside a grapheme cluster, as far as the text at hand shows it.
 *
 * A hand-written subset of UAX #29 (marks, joiners, variation selectors, skin tones, tags, Hangul jamo, flags, CRLF) instead of
 * Intl.Segmenter: the same text must be cut in the same places on every ICU version, and every flush checks the end of a chunk.
 */

const ZERO_WIDTH_JOINER = 0x200d;
const CARRIAGE_RETURN = 0x0d;
const LINE_FEED = 0x0a;
const CONTINUES = /^(?:\p{M}|\u200c|\u200d|[\u1160-\u11ff]|[\u{1f3fb}-\u{1f3ff}]|[\u{e0020}-\u{e007f}])/u;
/** UTF-16 units that are searched backwards from a size limit for a cluster boundary. The longest emoji sequences in use have 15 to 28. */
export const CLUSTER_LOOKBACK_UNITS = 64;

function isHighSurrogate(unit: number): boolean {
  return unit >= 0xd800 && unit <= 0xdbff;
}

function isLowSurrogate(unit: number): boolean {
  return unit >= 0xdc00 && unit <= 0xdfff;
}

function isRegionalIndicator(codePoint: number): boolean {
  return codePoint >= 0x1f1e6 && codePoint <= 0x1f1ff;
}

/** Whether the text ends with half a pair, whose other half may be in the next token. */
export function endsInHalf(text: string): boolean {
  return text.length > 0 && isHighSurrogate(text.charCodeAt(text.length - 1));
}

/**
 * Whether the next token certainly or likely continues the end of the text: half a pair, a joiner, an unpaired regional indicator, or CR. A
 * plain base character is not open, although a mark may follow it: otherwise all text would be held.
 */
export function endsOpen(text: string): boolean {
  if (text.length === 0) return false;
  const unit = text.charCodeAt(text.length - 1);
  if (isHighSurrogate(unit) || unit === ZERO_WIDTH_JOINER || unit === CARRIAGE_RETURN) return true;
  return isLowSurrogate(unit) && regionalIndicatorsBefore(text, text.length) % 2 === 1;
}

function regionalIndicatorsBefore(text: string, index: number): number {
  const earliest = Math.max(0, index - CLUSTER_LOOKBACK_UNITS);
  let at = index;
  while (at - 2 >= earliest && isRegionalIndicator(text.codePointAt(at - 2) ?? 0)) at -= 2;
  return (index - at) / 2;
}

/** Whether a cut at `index` leaves whole code points on both sides. */
function isCodePointBoundary(text: string, index: number): boolean {
  return !(isLowSurrogate(text.charCodeAt(index)) && isHighSurrogate(text.charCodeAt(index - 1)));
}

/** Whether a cut at `index` leaves whole grapheme clusters on both sides, within the subset of UAX #29 above. */
function isClusterBoundary(text: string, index: number): boolean {
  if (!isCodePointBoundary(text, index)) return false;
  const before = text.charCodeAt(index - 1);
  if (before === ZERO_WIDTH_JOINER || (before === CARRIAGE_RETURN && text.charCodeAt(index) === LINE_FEED)) return false;
  const after = text.codePointAt(index) ?? 0;
  if (isRegionalIndicator(after) && regionalIndicatorsBefore(text, index) % 2 === 1) return false;
  return !CONTINUES.test(String.fromCodePoint(after));
}

/** UTF-8 bytes of one UTF-16 unit. Half a pair counts as 3, like its replacement character; each half of a whole pair counts as 2. */
function bytesAt(text: string, index: number): number {
  const unit = text.charCodeAt(index);
  if (unit < 0x80) return 1;
  if (unit < 0x800) return 2;
  const paired = isHighSurrogate(unit)
    ? isLowSurrogate(text.charCodeAt(index + 1))
    : isLowSurrogate(unit) && isHighSurrogate(text.charCodeAt(index - 1));
  return paired ? 2 : 3;
}

/** UTF-8 bytes of a token. For a pair that is split over two tokens the sum is 2 too high, so it is an upper bound. */
export function utf8Bytes(text: string): number {
  let bytes = 0;
  for (let index = 0; index < text.length; index++) bytes += bytesAt(text, index);
  return bytes;
}

/**
 * End of the longest piece of `text` from `start` that has at most `bytesMax` UTF-8 bytes: at a cluster boundary if one is within
 * `CLUSTER_LOOKBACK_UNITS`, else at a code point. Always later than `start` for a `bytesMax` of 4 or more.
 */
export function pieceEnd(text: string, start: number, bytesMax: number): number {
  let bytes = 0;
  let end = start;
  while (end < text.length && bytes + bytesAt(text, end) <= bytesMax) bytes += bytesAt(text, end++);
  if (end === text.length) return end;
  if (!isCodePointBoundary(text, end)) end--;
  const earliest = Math.max(start + 1, end - CLUSTER_LOOKBACK_UNITS);
  for (let cut = end; cut >= earliest; cut--) if (isClusterBoundary(text, cut)) return cut;
  return end;
}
