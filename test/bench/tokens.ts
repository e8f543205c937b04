/**
 * UTF-16 units of a token: about what providers send (4 to 5). All have the same length, so that the length of a frame shows its number of
 * tokens.
 */
export const TOKEN_CHARS = 5;

/** Token `index` of any text in the bench. It contains its own number, so that a lost, repeated or moved token changes the text. */
export function tokenAt(index: number): string {
  return ` ${index.toString(36).padStart(TOKEN_CHARS - 1, '0')}`;
}

export function textOfTokens(count: number): string {
  let text = '';
  for (let index = 0; index < count; index++) text += tokenAt(index);
  return text;
}

/** Name of the answer's artifact if the bench itself is the agent. */
export const ANSWER = 'answer';
/** Name of the answer's artifact if a sub-agent answers through the supervisor. */
export const STREAMED = 'streaming_result';

const STAMP = 't@';
const STAMP_CHARS_MAX = 24;

/** A token with its publish time: milliseconds of the monotonic clock, padded to `chars`. */
export function stampedToken(atMs: number, chars: number): string {
  return `${STAMP}${atMs.toFixed(3)};`.padEnd(chars, 'x');
}

/** Publish times of the tokens in this frame; more than one when tokens were merged. */
export function stampsIn(frame: string): number[] {
  const stamps: number[] = [];
  for (let at = frame.indexOf(STAMP); at >= 0; at = frame.indexOf(STAMP, at + 1)) {
    stamps.push(Number.parseFloat(frame.slice(at + STAMP.length, at + STAMP.length + STAMP_CHARS_MAX)));
  }
  return stamps;
}
