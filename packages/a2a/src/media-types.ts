/** Modes that older agents use instead of media types: samples of April 2025 and of 0.2 use `text`, and a `file` may be of any type. */
const WORDS: ReadonlyMap<string, string> = new Map([
  ['text', 'text/*'],
  ['data', 'application/json'],
  ['file', '*/*'],
]);

/** `type/subtype` in lower case, without parameters; a missing part is a wildcard. */
function rangeOf(mode: string): { type: string; subtype: string } {
  const plain = mode.split(';')[0]!.trim().toLowerCase();
  const [type = '*', subtype = '*'] = (WORDS.get(plain) ?? plain).split('/');
  return { type, subtype };
}

function overlap(one: string, other: string): boolean {
  return one === other || one === '*' || other === '*';
}

/**
 * Whether an accepted media type matches an offered one. Both sides are media types or ranges with wildcards; parameters are
 * ignored. An empty list on either side means "unknown" and matches.
 */
export function fitsModes(accepted: readonly string[] | undefined, offered: readonly string[]): boolean {
  const wanted = accepted?.filter(mode => mode.trim() !== '') ?? [];
  if (wanted.length === 0 || offered.length === 0) return true;
  const ranges = offered.map(rangeOf);
  return wanted
    .map(rangeOf)
    .some(want => ranges.some(have => overlap(want.type, have.type) && overlap(want.subtype, have.subtype)));
}

/** The output media types of a card: those of every skill and, for skills that list none, the default. */
export function outputModesOf(card: {
  defaultOutputModes: readonly string[];
  skills: readonly { outputModes?: readonly string[] }[];
}): string[] {
  return [...new Set([...card.defaultOutputModes, ...card.skills.flatMap(({ outputModes = [] }) => outputModes)])];
}
