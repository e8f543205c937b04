/** Maximum length of a reason, code, state or agent name in a label, a span status or an `error.type`. */
export const CLOSED_WORD_CHARS_MAX = 48;
const CLOSED_WORD = /^[A-Za-z][A-Za-z0-9_.:/-]*$/;
const PART_OF_AN_ID = /[0-9a-f]{8}|[0-9]{5}/i;
const AGENT_NAME = /^[A-Za-z0-9][A-Za-z0-9 _.-]*$/;

/**
 * Passes a word of a closed list (`window`, `NOT_FOUND`, `slow_viewer`) and replaces everything else with `other`, because an error message
 * can quote content or a credential, and each id would become a time series of its own.
 */
export function closedWord(word: string): string {
  const closed = word.length <= CLOSED_WORD_CHARS_MAX && CLOSED_WORD.test(word) && !PART_OF_AN_ID.test(word);
  return closed ? word : 'other';
}

/** Nested causes that `errorWord` searches. */
const CAUSES_MAX = 5;
const SYSTEM_ERROR = /^E[A-Z0-9_]{1,30}$/;

/**
 * An error as a word of a closed list: the code of the system error that caused it (`ECONNREFUSED`), otherwise its own name; never its
 * message.
 */
export function errorWord(error: unknown): string {
  let cause = error;
  for (let depth = 0; depth < CAUSES_MAX && cause instanceof Error; depth += 1) {
    const { code } = cause as NodeJS.ErrnoException;
    if (typeof code === 'string' && SYSTEM_ERROR.test(code)) return code;
    cause = cause.cause;
  }
  return closedWord(error instanceof Error ? error.name : 'failed');
}

/** Passes the name of a configured agent and replaces any other text with `other`. */
export function agentLabel(name: string): string {
  return name.length <= CLOSED_WORD_CHARS_MAX && AGENT_NAME.test(name) ? name : 'other';
}

const MODEL_NAME = /^[A-Za-z0-9][A-Za-z0-9 _.:/@-]{0,95}$/;

/** Passes the name of a configured model, such as `meta-llama/Llama-3.3-70B`, and replaces any other text with `other`. */
export function modelLabel(name: string): string {
  return MODEL_NAME.test(name) ? name : 'other';
}

/** A word with underscores instead of spaces and hyphens: the form of label values. */
type SnakeWord<T extends string> = T extends `${infer A}${' ' | '-'}${infer B}` ? `${A}_${SnakeWord<B>}` : T;

export function snakeWord<T extends string>(word: T): SnakeWord<T> {
  return word.replaceAll(/[ -]/g, '_') as SnakeWord<T>;
}
