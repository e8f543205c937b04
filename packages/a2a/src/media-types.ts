/**
 * Words for modes from before media types were asked for: samples of April 2025 and of 0.2 say `text`, and nobody says what a file is.
 */
const WORDS: ReadonlyMap<string, string> = new Map([
  ['text', 'text/*'],
  ['data', 'application/json'],
  ['file', '*/*'],
]);

/** `type/subtype` in small letters, without parameters; a wildcard for what is not said. */
function rangeOf(mode: string): { type: string; subtype: string } {
  const plain = mode.split(';')[0]!.trim().toLowerCase();
  const [type = '*', subtype = '*'] = (WORDS.get(plain) ?? plain).split('/');
  return { type, subtype };
}

function overlap(one: string, other: string): boolean {
  return one === other || one === '*' || other === '*';
}

/**
 * Whether something of what is offered can be taken (S4-38). Both sides are media types or ranges with wildcards; parameters are ignored. Nothing asked for means anything, and nothing said of
 * what there is means that nobody knows: both fit.
 */
export function fitsModes(accepted: readonly string[] | undefined, offered: readonly string[]): boolean {
  const asked = accepted?.filter(mode => mode.trim() !== '') ?? [];
  if (asked.length === 0 || offered.length === 0) return true;
  const ranges = offered.map(rangeOf);
  return asked
    .map(rangeOf)
    .some(want => ranges.some(have => overlap(want.type, have.type) && overlap(want.subtype, have.subtype)));
}

/** What a card says it may answer with: whatever any skill does, and the default of those that do not say. */
export function outputModesOf(card: {
  defaultOutputModes: readonly string[];
  skills: readonly { outputModes?: readonly string[] }[];
}): string[] {
  return [...new Set([...card.defaultOutputModes, ...card.skills.flatMap(({ outputModes = [] }) => outputModes)])];
}
