/** UTF-16 units of a token: about what providers send (4 to 5). All alike, so that a frame's length says how many it holds. */
export const TOKEN_CHARS = 5;

/** Token `index` of any text here: its own number, so that a lost, doubled or moved one changes the text. */
export function tokenAt(index: number): string {
  return ` ${index.toString(36).padStart(TOKEN_CHARS - 1, '0')}`;
}

export function textOfTokens(count: number): string {
  let text = '';
  for (let index = 0; index < count; index++) text += tokenAt(index);
  return text;
}

/** Name of the artifact that holds the answer, where the bench itself is the agent. */
export const ANSWER = 'answer';

const STAMP = 't@';
const STAMP_CHARS_MAX = 24;

/** A token that says when it was said: milliseconds of the monotonic clock, filled up to `chars`. */
export function stampedToken(atMs: number, chars: number): string {
  return `${STAMP}${atMs.toFixed(3)};`.padEnd(chars, 'x');
}

/** When the tokens in this frame were said: more than one where two met on the way. */
export function stampsIn(frame: string): number[] {
  const stamps: number[] = [];
  for (let at = frame.indexOf(STAMP); at >= 0; at = frame.indexOf(STAMP, at + 1)) {
    stamps.push(Number.parseFloat(frame.slice(at + STAMP.length, at + STAMP.length + STAMP_CHARS_MAX)));
  }
  return stamps;
}
