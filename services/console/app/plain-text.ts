/**
 * Control characters, and characters that reorder text, are shown as codes, because a line must show what it contains. Tabs and line ends
 * are kept.
 */
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is searched for.
const HIDDEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]/g;

/** Text of agents and clients for display: never as markup, and with visible control characters. */
export function visibleText(text: string): string {
  return text.replaceAll('\r\n', '\n').replace(HIDDEN, character => {
    const code = character.codePointAt(0)!.toString(16).toUpperCase().padStart(4, '0');
    return `⟪U+${code}⟫`;
  });
}

/** One line of at most `charactersMax`. */
export function excerpt(text: string, charactersMax: number): string {
  // Cuts the text before processing it, so that a text of megabytes costs nothing.
  const line = visibleText(text.slice(0, charactersMax * 4))
    .replaceAll(/\s+/g, ' ')
    .trim();
  const characters = [...line];
  return characters.length <= charactersMax ? line : `${characters.slice(0, charactersMax - 1).join('')}…`;
}

const SECOND_MS = 1_000;
const STEPS = [
  [60 * SECOND_MS, SECOND_MS, 's'],
  [3_600 * SECOND_MS, 60 * SECOND_MS, 'min'],
  [86_400 * SECOND_MS, 3_600 * SECOND_MS, 'h'],
  [Number.POSITIVE_INFINITY, 86_400 * SECOND_MS, 'd'],
] as const;

/** `12 s ago`. Clocks may differ, so a time in the future counts as now. */
export function ageText(at: string | undefined, nowMs: number): string {
  const ms = nowMs - Date.parse(at ?? '');
  if (Number.isNaN(ms)) return '';
  if (ms < 2 * SECOND_MS) return 'now';
  const [, unitMs, unit] = STEPS.find(([below]) => ms < below)!;
  return `${Math.floor(ms / unitMs)} ${unit} ago`;
}

/** `0:07.3`: a position on the time axis of a task. */
export function positionText(ms: number): string {
  const tenths = Math.floor(Math.max(0, ms) / 100);
  const seconds = Math.floor(tenths / 10);
  const minutes = Math.floor(seconds / 60);
  return `${minutes}:${String(seconds % 60).padStart(2, '0')}.${tenths % 10}`;
}
