/** Text within a block. A link has an `href` with a scheme that is safe to open. */
export type Inline =
  | { kind: 'text'; text: string }
  | { kind: 'code'; text: string }
  | { kind: 'strong' | 'emphasis' | 'deleted'; children: readonly Inline[] }
  | { kind: 'link'; href: string; children: readonly Inline[] };

/** Emphasis within more others is text. */
const DEPTH_MAX = 6;

const CODE = /(`+)(?!`)/y;
const LINK = /(!?)\[((?:[^[\]\\]|\\.|\[[^[\]]*\])*)\]\(\s*<?([^\s()<>]+(?:\([^\s()<>]*\)[^\s()<>]*)*)>?(?:\s+"[^"]*")?\s*\)/y;
const ADDRESS = /<?(https?:\/\/[^\s<>"`]+)>?/y;
const ESCAPE = /\\([!-/:-@[-`{-~])/y;
/** Text up to the next character that may begin something. */
const PLAIN = /[^`!\\[<*_~h]+|h(?!ttps?:)[^`!\\[<*_~h]*/y;

const EMPHASES = [
  ['**', 'strong'],
  ['__', 'strong'],
  ['~~', 'deleted'],
  ['*', 'emphasis'],
  ['_', 'emphasis'],
] as const;

/** Parses text within a block, in time that grows linearly with its length. */
export function inlinesOf(text: string, depth = 0): Inline[] {
  const found: Inline[] = [];
  /** Marks that have no end after here: without this, a text of marks would be searched once for each of them. */
  const unclosed = new Set<string>();
  let plain = '';
  let at = 0;
  const add = (inline: Inline, length: number) => {
    if (plain !== '') found.push({ kind: 'text', text: plain });
    plain = '';
    found.push(inline);
    at += length;
  };
  while (at < text.length) {
    const [run] = matchAt(PLAIN, text, at) ?? [];
    if (run !== undefined) {
      plain += run;
      at += run.length;
      continue;
    }
    const code = codeAt(text, at, unclosed);
    const link = code === undefined ? linkAt(text, at, depth) : undefined;
    const emphasis = code === undefined && link === undefined ? emphasisAt(text, at, depth, unclosed) : undefined;
    const one = code ?? link ?? emphasis;
    if (one !== undefined) add(one.inline, one.length);
    else {
      const [escaped, character] = matchAt(ESCAPE, text, at) ?? [];
      // A run of backticks that nothing closes is text as a whole.
      const ticks = matchAt(/`+/y, text, at)?.[0];
      plain += character ?? ticks ?? text[at]!;
      at += (escaped ?? ticks ?? text[at]!).length;
    }
  }
  if (plain !== '') found.push({ kind: 'text', text: plain });
  return found;
}

type Found = { inline: Inline; length: number };

function codeAt(text: string, at: number, unclosed: Set<string>): Found | undefined {
  const [, ticks] = matchAt(CODE, text, at) ?? [];
  if (ticks === undefined || unclosed.has(ticks)) return undefined;
  const from = at + ticks.length;
  for (let end = text.indexOf(ticks, from); end >= 0; ) {
    const [run] = matchAt(/`+/y, text, end)!;
    if (run === ticks)
      return { inline: { kind: 'code', text: unpadded(text.slice(from, end)) }, length: end + ticks.length - at };
    end = text.indexOf(ticks, end + run.length);
  }
  unclosed.add(ticks);
  return undefined;
}

/** Code that begins or ends with a backtick is written with a space before and after it. */
function unpadded(code: string): string {
  return code.startsWith(' ') && code.endsWith(' ') && code.trim() !== '' ? code.slice(1, -1) : code;
}

function linkAt(text: string, at: number, depth: number): Found | undefined {
  const [whole, image, label = '', address = ''] = matchAt(LINK, text, at) ?? [];
  if (whole !== undefined) {
    const href = safeAddress(address);
    // Images are not loaded: their address would learn who reads this page.
    const children: Inline[] =
      image === '!' ? [{ kind: 'text', text: `image: ${label || address}` }] : inlinesOf(label, depth + 1);
    return href === undefined
      ? undefined
      : { inline: { kind: 'link', href, children: withoutLinks(children) }, length: whole.length };
  }
  if (/\w/.test(text[at - 1] ?? '')) return undefined;
  const [found, typed = ''] = matchAt(ADDRESS, text, at) ?? [];
  if (found === undefined) return undefined;
  const shown = withoutPunctuation(typed);
  const href = safeAddress(shown);
  if (href === undefined) return undefined;
  const isEnclosed = found === `<${typed}>` && shown === typed;
  if (found.startsWith('<') && !isEnclosed) return undefined;
  return {
    inline: { kind: 'link', href, children: [{ kind: 'text', text: shown }] },
    length: isEnclosed ? found.length : shown.length,
  };
}

/** Punctuation after an address belongs to the sentence. */
function withoutPunctuation(address: string): string {
  let end = address.length;
  while (end > 0 && ".,;:!?)]}'*_~|".includes(address[end - 1]!)) end -= 1;
  return address.slice(0, end);
}

/** Undefined for an address that is not absolute, or whose scheme could run or read something. */
function safeAddress(address: string): string | undefined {
  if (!/^(?:https?:\/\/|mailto:)/i.test(address) || !URL.canParse(address)) return undefined;
  return new URL(address).href;
}

function withoutLinks(inlines: readonly Inline[]): Inline[] {
  return inlines.flatMap(inline => (inline.kind === 'link' ? withoutLinks(inline.children) : [inline]));
}

function emphasisAt(text: string, at: number, depth: number, unclosed: Set<string>): Found | undefined {
  if (depth >= DEPTH_MAX) return undefined;
  for (const [mark, kind] of EMPHASES) {
    if (!text.startsWith(mark, at)) continue;
    const from = at + mark.length;
    if (unclosed.has(mark) || /\s|^$/.test(text[from] ?? '')) return undefined;
    // Within a word `_` is a character, as in a name.
    if (mark[0] === '_' && /\w/.test(text[at - 1] ?? '')) return undefined;
    const end = closingAt(text, mark, from);
    if (end < 0) {
      unclosed.add(mark);
      return undefined;
    }
    return { inline: { kind, children: inlinesOf(text.slice(from, end), depth + 1) }, length: end + mark.length - at };
  }
  return undefined;
}

/** Where a mark ends, or -1. Marks in code do not count. */
function closingAt(text: string, mark: string, from: number): number {
  const pattern = /(?<!`)(`+)(?!`)[^`]*\1(?!`)|\\.|\*+|_+|~+/gs;
  pattern.lastIndex = from;
  for (let match = pattern.exec(text); match !== null; match = pattern.exec(text)) {
    const [run] = match;
    // Three marks end both of `**a *b***`: the inner one first.
    const isMark = run[0] === mark[0] && (run.length === mark.length || run.length === 3);
    if (!isMark || /\s/.test(text[match.index - 1] ?? '')) continue;
    if (mark[0] === '_' && /\w/.test(text[match.index + run.length] ?? '')) continue;
    return match.index + run.length - mark.length;
  }
  return -1;
}

function matchAt(pattern: RegExp, text: string, at: number): RegExpExecArray | null {
  pattern.lastIndex = at;
  return pattern.exec(text);
}
