import { hash } from 'node:crypto';
import { isDeeperThan, isObject, type JsonObject } from '@hopline/a2a';
import { TaskFileError } from './format.ts';

/**
 * Maximum levels of JSON in one line: the levels of an input (packages/events), those of `record` and `inputs` around it, and a few more.
 */
const LINE_DEPTH_MAX = 80;

/** The sum before the first line of a task. */
export const FIRST_SUM = '';

const SUM_MEMBER = /,"sum":"([A-Za-z0-9_-]{43})"\}$/;

/** Base64url of SHA-256 over the previous line's sum and this line without its own sum. */
function sumOf(before: string, body: string): string {
  return hash('sha256', `${before}\n${body}`, 'base64url');
}

/** A line as text, without line feed. Its last member is the sum, which continues the chain of sums. */
export function encodeLine(value: object, before: string): { line: string; sum: string } {
  const body = JSON.stringify(value).slice(0, -1);
  const sum = sumOf(before, body);
  return { line: `${body},"sum":"${sum}"}`, sum };
}

type DecodedLine = { value: JsonObject; sum: string };

/** Throws TaskFileError for text that is not JSON, for duplicate members, and for a wrong sum. */
export function decodeLine(text: string, number: number, before: string): DecodedLine {
  const match = SUM_MEMBER.exec(text);
  const value = parse(text, number);
  if (match === null) throw new TaskFileError('malformed', number, 'the last member must be "sum"');
  const sum = match[1]!;
  if (sumOf(before, text.slice(0, match.index)) !== sum) {
    throw new TaskFileError('edited', number, 'the sum does not match: the file was edited here, or earlier lines differ');
  }
  const { sum: _sum, ...members } = value;
  return { value: members, sum };
}

/**
 * Parses the first line of a file. Its format and version are read before any sum is checked, because another version may compute sums
 * differently.
 */
export function parse(text: string, number: number): JsonObject {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw new TaskFileError('malformed', number, 'this is not JSON');
  }
  if (!isObject(value)) throw new TaskFileError('malformed', number, 'this is not a JSON object');
  if (isDeeperThan(value, LINE_DEPTH_MAX)) {
    throw new TaskFileError('malformed', number, `JSON may nest at most ${LINE_DEPTH_MAX} levels`);
  }
  // Text that equals the form in which our writer writes the value has no duplicate members. Only other text must be searched.
  if (JSON.stringify(value) !== text && hasDuplicateMember(text)) {
    throw new TaskFileError('malformed', number, 'an object has the same member twice');
  }
  return value;
}

/** Finds duplicate members in valid JSON: JSON.parse keeps only the last one, and other readers keep the first one. */
function hasDuplicateMember(json: string): boolean {
  /** Names of each open object; undefined for an array. */
  const open: (Set<string> | undefined)[] = [];
  let expectsName = false;
  for (const token of tokensOf(json)) {
    const names = open.at(-1);
    if (token === '{' || token === '[') open.push(token === '{' ? new Set() : undefined);
    else if (token === '}' || token === ']') open.pop();
    else if (token !== ',' && expectsName && names !== undefined) {
      const name = JSON.parse(token) as string;
      if (names.has(name)) return true;
      names.add(name);
    }
    expectsName = token === '{' || (token === ',' && open.at(-1) !== undefined);
  }
  return false;
}

/** Strings, brackets and commas of valid JSON. A regular expression that skips escapes overflows its stack in a string of 16 MB. */
function* tokensOf(json: string): Generator<string> {
  const start = /["{}[\],]/g;
  for (let found = start.exec(json); found !== null; found = start.exec(json)) {
    const [token] = found;
    if (token === '"') start.lastIndex = endOfString(json, found.index);
    yield token === '"' ? json.slice(found.index, start.lastIndex) : token;
  }
}

/** Index after the string that starts at `start`. */
function endOfString(json: string, start: number): number {
  for (let end = json.indexOf('"', start + 1); ; end = json.indexOf('"', end + 1)) {
    let escapes = 0;
    while (json[end - 1 - escapes] === '\\') escapes += 1;
    if (escapes % 2 === 0) return end + 1;
  }
}
