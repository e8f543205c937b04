/** Longest reason, code, state or agent name that goes into a label, a span status or an `error.type`; characters. */
export const CLOSED_WORD_CHARS_MAX = 48;
const CLOSED_WORD = /^[A-Za-z][A-Za-z0-9_.:/-]*$/;
const PART_OF_AN_ID = /[0-9a-f]{8}|[0-9]{5}/i;
const AGENT_NAME = /^[A-Za-z0-9][A-Za-z0-9 _.-]*$/;

/**
 * Lets a word of a closed list pass (`window`, `NOT_FOUND`, `slow_viewer`) and turns everything else into `other`: sentences (an error
 * message can quote content or a credential) and ids (one would become one time series each).
 */
export function closedWord(word: string): string {
  const closed = word.length <= CLOSED_WORD_CHARS_MAX && CLOSED_WORD.test(word) && !PART_OF_AN_ID.test(word);
  return closed ? word : 'other';
}

/** Lets a configured agent's name pass; an agent's own sentence does not become a label. */
export function agentLabel(name: string): string {
  return name.length <= CLOSED_WORD_CHARS_MAX && AGENT_NAME.test(name) ? name : 'other';
}
