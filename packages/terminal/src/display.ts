import type { Notice } from '@hopline/client';

/** The output of a StreamPrinter. */
export type Display = {
  /** Text of the answer, as it arrives. */
  answer(text: string): void;
  /** A line about progress, for a person. */
  note(text: string): void;
  /** A line that is printed even if the output is not a terminal. */
  warn(text: string): void;
  /** A line about an artifact outside the answer; a note by default. */
  artifact?(text: string): void;
  /** Ends an unfinished line of the answer, even in a pipe. Without this method headings separate texts. */
  endLine?(): void;
  /** A line above the text of an artifact. Without this method no headings are printed. */
  heading?(text: string): void;
};

// biome-ignore lint/suspicious/noControlCharactersInRegex: these are the characters to remove
const CONTROLS = /[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]/g;

/**
 * Removes C0 and C1 controls except tab and line feed, because the text of an agent must not command a terminal. Also removes controls that
 * reorder the shown text (Unicode TR 9), so that `exe.txt` is never shown as `txt.exe`; right-to-left text does not need them.
 */
export function withoutControls(text: string): string {
  return text.replace(CONTROLS, '');
}

/**
 * Failed tries in a row from which on each is reported, even into a pipe. A shorter outage ends within a few seconds, or in an error if the
 * server was never reached.
 */
const TRIES_WARNED_MIN = 5;

/** Prints what the client does on its own during a call. */
export function noticePrinter(display: Pick<Display, 'note' | 'warn'>): (notice: Notice) => void {
  return notice => {
    if (notice.kind === 'opened') return;
    if (notice.kind === 'skipped') return display.note('(skipped an event of an unknown kind)');
    const line = `(${notice.error.message}; retrying in ${(notice.waitMs / 1000).toFixed(1)} s)`;
    if (notice.tries >= TRIES_WARNED_MIN) display.warn(line);
    else display.note(line);
  };
}

/** In JSON mode only saved artifacts are reported, because the JSON has everything else. */
export function besideJson(display: Display): Display {
  return { answer: () => {}, note: () => {}, warn: () => {}, artifact: text => display.artifact?.(text) };
}
