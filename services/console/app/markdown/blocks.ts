/**
 * The blocks of a Markdown text: the subset that language models write. HTML is text, images are not loaded, and references, setext
 * headings and indented code are not recognized. Line ends within a paragraph are kept, because agents also write plain text.
 */
export type MarkdownBlock =
  | { kind: 'heading'; level: number; text: string }
  | { kind: 'paragraph'; text: string }
  /** Text in segments, so that the page renders only those that changed. */
  | { kind: 'code'; language: string; segments: readonly string[] }
  | { kind: 'list'; start: number | undefined; items: readonly ListItem[] }
  | { kind: 'quote'; blocks: readonly MarkdownBlock[] }
  | { kind: 'table'; aligns: readonly Align[]; head: readonly string[]; rows: readonly (readonly string[])[] }
  | { kind: 'rule' };

/** `checked` is undefined for an item that is not a task. */
type ListItem = { checked: boolean | undefined; blocks: readonly MarkdownBlock[] };
type Align = 'left' | 'center' | 'right' | undefined;

/** A block is cut after this many lines, because an unfinished block is parsed again with each chunk that is added to it. */
export const BLOCK_LINES_MAX = 100;
/** Like BLOCK_LINES_MAX, in characters, for long lines. */
const BLOCK_CHARS_MAX = 8_000;
/** A list is cut before an item; one whose item is this many times longer than other blocks is cut within it. */
const LIST_FACTOR = 4;
/** Code is not parsed, so a block of it may be of any length. Its segments are closed after this many characters. */
const CODE_SEGMENT_CHARS = 2_000;
/** Lists and quotes that are nested deeper are text. */
const DEPTH_MAX = 6;

type Open =
  | { kind: 'paragraph' | 'list' | 'quote'; lines: string[]; chars: number; isAfterBlank: boolean }
  | { kind: 'table'; head: string[]; aligns: Align[]; lines: string[]; chars: number; isAfterBlank: boolean }
  | { kind: 'code'; fence: string; indent: number; language: string; segments: string[]; tail: string };

/** Two repetitions that match the same character take quadratic time: the language and the title begin with the spaces before them. */
const FENCE = /^( {0,3})(`{3,}(?!`)|~{3,}(?!~))([^`]*)$/;
const HEADING = /^ {0,3}(#{1,6})(?:[ \t](.*))?$/s;
const RULE = /^ {0,3}(?:(?:-[ \t]*){3,}|(?:\*[ \t]*){3,}|(?:_[ \t]*){3,})$/;
const ITEM = /^([ \t]*)([-*+]|\d{1,9}[.)])([ \t]+)(?=\S)/;
const QUOTE = /^ {0,3}> ?/;
const DELIMITER_CELL = /^:?-+:?$/;

/** Reads Markdown line by line. Blocks that are complete never change. */
export class BlockReader {
  #done: MarkdownBlock[] = [];
  #open: Open | undefined;
  readonly #depth: number;

  constructor(depth = 0) {
    this.#depth = depth;
  }

  /** A reader in the same state, without the blocks that were taken. */
  copy(): BlockReader {
    const copy = new BlockReader(this.#depth);
    copy.#done = [...this.#done];
    const open = this.#open;
    if (open !== undefined)
      copy.#open = open.kind === 'code' ? { ...open, segments: [...open.segments] } : { ...open, lines: [...open.lines] };
    return copy;
  }

  /** The blocks that are complete and have not been taken yet. */
  take(): MarkdownBlock[] {
    return this.#done.splice(0);
  }

  /** All blocks that are left: the text ends here. */
  end(): MarkdownBlock[] {
    this.#close();
    return this.take();
  }

  line(line: string): void {
    const open = this.#open;
    if (open?.kind === 'code') this.#codeLine(open, line);
    else if (line.trim() === '') this.#blankLine();
    else if (open !== undefined && this.#continues(open, line)) this.#push(open, line);
    else this.#begin(line);
  }

  #codeLine(open: Open & { kind: 'code' }, line: string): void {
    if (isClosingFence(line, open.fence)) {
      this.#close();
      return;
    }
    // Code of a list item is indented like its fence.
    open.tail += `${line.slice(0, open.indent).trimStart()}${line.slice(open.indent)}\n`;
    if (open.tail.length < CODE_SEGMENT_CHARS) return;
    open.segments.push(open.tail);
    open.tail = '';
  }

  #blankLine(): void {
    const open = this.#open;
    // The next line decides whether the list continues.
    if (open?.kind === 'list') {
      open.lines.push('');
      open.isAfterBlank = true;
    } else this.#close();
  }

  /** Whether a line that is not blank belongs to the open block. */
  #continues(open: Exclude<Open, { kind: 'code' }>, line: string): boolean {
    const item = ITEM.exec(line);
    switch (open.kind) {
      case 'quote':
        return QUOTE.test(line);
      case 'table':
        return line.includes('|');
      case 'list': {
        const isIndented = /^(?: {2}|\t)/.test(line);
        if (isIndented) return true;
        if (item !== null) return isOrdered(line) === isOrdered(open.lines[0]!) && !RULE.test(line);
        return !open.isAfterBlank && !beginsBlock(line);
      }
      default:
        if (beginsBlock(line)) return false;
        if (item !== null && this.#depth < DEPTH_MAX) return isOrdered(line) && !/^\s*1[.)]/.test(line);
        return !this.#beginsTable(open, line);
    }
  }

  #beginsTable(open: Open & { kind: 'paragraph' | 'list' | 'quote' }, line: string): boolean {
    return open.kind === 'paragraph' && alignsOf(line, open.lines.at(-1)!) !== undefined;
  }

  #push(open: Exclude<Open, { kind: 'code' }>, line: string): void {
    const fill = Math.max(open.lines.length / BLOCK_LINES_MAX, open.chars / BLOCK_CHARS_MAX);
    const isCut = fill >= 1 && (open.kind !== 'list' || /^[-*+\d]/.test(line) || fill >= LIST_FACTOR);
    if (isCut && open.kind !== 'table') {
      this.#begin(line);
      return;
    }
    if (isCut) this.#close();
    const current = isCut ? { ...open, lines: [], chars: 0 } : open;
    current.lines.push(line);
    current.chars += line.length;
    current.isAfterBlank = false;
    this.#open = current;
  }

  #begin(line: string): void {
    const before = this.#open;
    const [, indent = '', fence, language = ''] = FENCE.exec(line) ?? [];
    const [heading, marks = '', title = ''] = HEADING.exec(line) ?? [];
    const aligns = before?.kind === 'paragraph' ? alignsOf(line, before.lines.at(-1)!) : undefined;
    if (before?.kind === 'paragraph' && aligns !== undefined) {
      const head = cellsOf(before.lines.pop()!);
      if (before.lines.length === 0) this.#open = undefined;
      this.#close();
      this.#open = { kind: 'table', head, aligns, lines: [], chars: 0, isAfterBlank: false };
      return;
    }
    this.#close();
    if (fence !== undefined)
      this.#open = {
        kind: 'code',
        fence,
        indent: indent.length,
        language: language.trim().split(/\s/)[0]!,
        segments: [],
        tail: '',
      };
    else if (heading !== undefined)
      this.#done.push({
        kind: 'heading',
        level: marks.length,
        text: title
          .trimEnd()
          .replace(/(?:^|[ \t])#+$/, '')
          .trim(),
      });
    else if (RULE.test(line)) this.#done.push({ kind: 'rule' });
    else {
      const isNested = this.#depth < DEPTH_MAX;
      const kind = isNested && QUOTE.test(line) ? 'quote' : isNested && ITEM.test(line) ? 'list' : 'paragraph';
      this.#open = { kind, lines: [line], chars: line.length, isAfterBlank: false };
    }
  }

  #close(): void {
    const open = this.#open;
    this.#open = undefined;
    if (open === undefined) return;
    const inner = (lines: readonly string[]) => blocksOf(lines, this.#depth + 1);
    switch (open.kind) {
      case 'code': {
        const segments = open.tail === '' ? open.segments : [...open.segments, open.tail];
        this.#done.push({ kind: 'code', language: open.language, segments });
        break;
      }
      case 'quote':
        this.#done.push({ kind: 'quote', blocks: inner(open.lines.map(line => line.replace(QUOTE, ''))) });
        break;
      case 'list':
        this.#done.push(listOf(open.lines, inner));
        break;
      case 'table': {
        const rows = open.lines.map(line => {
          const cells = cellsOf(line);
          return open.head.map((_, index) => cells[index] ?? '');
        });
        this.#done.push({ kind: 'table', aligns: open.aligns, head: open.head, rows });
        break;
      }
      default:
        this.#done.push({ kind: 'paragraph', text: open.lines.map(line => line.trimEnd()).join('\n') });
    }
  }
}

function blocksOf(lines: readonly string[], depth: number): MarkdownBlock[] {
  const reader = new BlockReader(depth);
  for (const line of lines) reader.line(line);
  return reader.end();
}

const beginsBlock = (line: string) => FENCE.test(line) || HEADING.test(line) || RULE.test(line) || QUOTE.test(line);
const isOrdered = (line: string) => /^\s*\d/.test(line);

function isClosingFence(line: string, fence: string): boolean {
  const text = line.trim();
  return text.length >= fence.length && [...text].every(character => character === fence[0]);
}

function listOf(lines: readonly string[], inner: (lines: readonly string[]) => MarkdownBlock[]): MarkdownBlock {
  const [, base = ''] = ITEM.exec(lines[0]!)!;
  const items: { width: number; lines: string[] }[] = [];
  for (const line of lines) {
    const [marker, indent = ''] = ITEM.exec(line) ?? [];
    // One column more or less than the first item is still the same list.
    if (marker !== undefined && indent.length <= base.length + 1)
      items.push({ width: marker.length, lines: [line.slice(marker.length)] });
    else {
      const { width, lines: own } = items.at(-1)!;
      own.push(line.replace(/^\t/, '    ').replace(new RegExp(`^ {0,${width}}`), ''));
    }
  }
  const start = /^\s*(\d+)/.exec(lines[0]!)?.[1];
  return {
    kind: 'list',
    start: start === undefined ? undefined : Number(start),
    items: items.map(({ lines: own }) => {
      const [box] = /^\[[ xX]\](?=\s)/.exec(own[0]!) ?? [];
      const text = box === undefined ? own : [own[0]!.slice(box.length + 1), ...own.slice(1)];
      return { checked: box === undefined ? undefined : box !== '[ ]', blocks: inner(text) };
    }),
  };
}

/** The alignments of a table, if `line` is the delimiter row below `head`. */
function alignsOf(line: string, head: string): Align[] | undefined {
  if (!line.includes('-') || !head.includes('|') || !line.includes('|')) return undefined;
  const cells = cellsOf(line);
  if (!cells.every(cell => DELIMITER_CELL.test(cell)) || cells.length !== cellsOf(head).length) return undefined;
  return cells.map(cell => {
    const [left, right] = [cell.startsWith(':'), cell.endsWith(':')];
    return left && right ? 'center' : right ? 'right' : left ? 'left' : undefined;
  });
}

/** The cells of a row. A `|` in code, or after a backslash, separates nothing. */
function cellsOf(line: string): string[] {
  const row = line.trim().replace(/^\|/, '');
  const cells: string[] = [];
  let cell = '';
  for (const [part] of row.matchAll(/`[^`]*`|\\.|./gs)) {
    if (part !== '|') cell += part === '\\|' ? '|' : part;
    else {
      cells.push(cell.trim());
      cell = '';
    }
  }
  return cell.trim() === '' ? cells : [...cells, cell.trim()];
}
