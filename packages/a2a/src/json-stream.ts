import { takesFastPaths } from './fast-paths.ts';

/** Maximum UTF-16 units of a document that is compared with the previous one. */
const DOCUMENT_CHARS_MAX = 8 * 1024;
/** Consecutive failed comparisons after which only one of SKIPPED_MAX documents is compared. */
const FAILED_MAX = 8;
const SKIPPED_MAX = 64;
/** Maximum strings in which two documents may differ. */
const SLOTS_MAX = 8;

/** A document with holes: the text around its slots, and its decoded value. */
type Form = { around: string[]; value: Node };
/** A container on the path to a slot, with its members on that path. Its other members are the same in every document. */
type Node = { container: unknown[] | { [name: string]: unknown }; members: { name: string | number; at: number | Node }[] };

/**
 * Reads the JSON documents of one stream. The document of a token differs from the previous one only in a few strings, and parsing it again
 * would be most of the token's cost. Comparing two documents gives a form. A later document that has exactly the form's text around
 * non-empty strings decodes to the form's value with these strings. Members that do not differ are frozen and shared between values.
 */
export class JsonStream<T = unknown> {
  readonly #decode: (value: unknown) => T;
  readonly #interpreted: ReadonlySet<string>;
  #form: Form | undefined;
  /** The newest document without a form. */
  #last = '';
  #failed = 0;
  #skipped = 0;

  /**
   * `decode`: reads a parsed document. It copies some strings and interprets others. `interpreted` must list the members that it
   * interprets. If a document differs in an interpreted string, it is decoded separately.
   */
  constructor(decode: (value: unknown) => T = value => value as T, interpreted: ReadonlySet<string> = new Set()) {
    this.#decode = decode;
    this.#interpreted = interpreted;
  }

  /** Throws SyntaxError as `JSON.parse` does. */
  read(text: string): T {
    if (!takesFastPaths()) return this.#decode(JSON.parse(text));
    if (this.#form !== undefined) {
      const strings = stringsIn(text, this.#form.around);
      if (strings !== undefined) return filled(this.#form.value, strings) as T;
    }
    const value: unknown = JSON.parse(text);
    this.#learn(text);
    return this.#decode(value);
  }

  #learn(text: string): void {
    if (text.length > DOCUMENT_CHARS_MAX || text.includes('\\')) return;
    if (this.#failed >= FAILED_MAX) {
      this.#skipped += 1;
      if (this.#skipped < SKIPPED_MAX) return;
      this.#skipped = 0;
    }
    const form = formOf(this.#last, text, this.#decode, this.#interpreted);
    this.#last = text;
    this.#failed = form === undefined ? this.#failed + 1 : 0;
    if (form !== undefined) this.#form = form;
  }
}

/** The strings of a document between the given pieces of text; undefined for a document that does not have these pieces. */
function stringsIn(text: string, around: readonly string[]): string[] | undefined {
  const strings: string[] = [];
  let from = 0;
  let to = 0;
  for (let index = 0; index < around.length; index += 1) {
    const fixed = around[index]!;
    if (index > 0) {
      to = text.indexOf('"', from);
      if (to <= from || !isPlain(text, from, to)) return undefined;
      strings.push(copyOf(text, from, to));
    }
    from = to + fixed.length;
    // Five times as fast as startsWith (V8 14).
    if (text.slice(to, from) !== fixed) return undefined;
  }
  return from === text.length ? strings : undefined;
}

/** V8 copies a slice of at most this many units; a longer one keeps the whole text in memory. */
const COPIED_UNITS_MAX = 12;

function copyOf(text: string, from: number, to: number): string {
  if (to - from <= COPIED_UNITS_MAX) return text.slice(from, to);
  return [text.slice(from, from + COPIED_UNITS_MAX), text.slice(from + COPIED_UNITS_MAX, to)].join('');
}

/** Whether the units need no escape in a JSON string. */
function isPlain(text: string, from: number, to: number): boolean {
  for (let index = from; index < to; index += 1) {
    const unit = text.charCodeAt(index);
    if (unit === BACKSLASH || unit < SPACE) return false;
  }
  return true;
}

const BACKSLASH = 0x5c;
const SPACE = 0x20;

/** The slots of two documents without escapes that differ only in string values (never in member names). */
function formOf(
  one: string,
  other: string,
  decode: (value: unknown) => unknown,
  interpreted: ReadonlySet<string>,
): Form | undefined {
  // Every second piece is a string.
  const pieces = other.split('"');
  const before = one.split('"');
  if (before.length !== pieces.length) return undefined;
  const slots: number[] = [];
  for (const [index, piece] of pieces.entries()) {
    if (piece === before[index]) continue;
    const isString = index % 2 === 1 && !pieces[index + 1]!.trimStart().startsWith(':');
    if (!isString || (pieces[index - 1]!.trim() === ':' && interpreted.has(pieces[index - 2]!))) return undefined;
    slots.push(index);
  }
  if (slots.length === 0 || slots.length > SLOTS_MAX) return undefined;
  const marks = slots.map((_, slot) => `slot ${slot}`);
  if (marks.some(mark => other.includes(mark))) return undefined;
  const around: string[] = [];
  let at = 0;
  let from = 0;
  for (const [index, piece] of pieces.entries()) {
    const slot = slots.indexOf(index);
    if (slot >= 0) {
      around.push(other.slice(from, at));
      from = at + piece.length;
      pieces[index] = marks[slot]!;
    }
    at += piece.length + 1;
  }
  around.push(other.slice(from));
  // A marker can be missing, because only the last of duplicate members counts, and because a string may have been interpreted.
  const found: string[] = [];
  const value = nodeOf(decode(JSON.parse(pieces.join('"'))), marks, found);
  return typeof value === 'object' && found.length === slots.length ? { around, value } : undefined;
}

/** The path to a marker: the number of its slot, or a container. Undefined for a value that contains no marker; it is frozen. */
function nodeOf(value: unknown, marks: readonly string[], found: string[]): number | Node | undefined {
  if (typeof value === 'string' && marks.includes(value)) {
    found.push(value);
    return marks.indexOf(value);
  }
  if (typeof value !== 'object' || value === null) return undefined;
  const container = value as Node['container'];
  const members: Node['members'] = [];
  for (const [name, item] of Object.entries(container)) {
    const at = nodeOf(item, marks, found);
    if (at !== undefined) members.push({ name: Array.isArray(container) ? Number(name) : name, at });
  }
  if (members.length === 0) {
    Object.freeze(container);
    return undefined;
  }
  return { container, members };
}

function filled({ container, members }: Node, strings: readonly string[]): unknown {
  const copy = (Array.isArray(container) ? container.slice() : { ...container }) as { [name: string | number]: unknown };
  for (const { name, at } of members) copy[name] = typeof at === 'number' ? strings[at] : filled(at, strings);
  return copy;
}
