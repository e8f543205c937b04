import type { Subject, Values } from './command.ts';
import { UsageError } from './usage-error.ts';

/** Takes at most `max` words. `text`: how an error describes them. */
function words<T>(max: number, usage: string, text: string, read: Subject<T>['read'], values?: Values): Subject<T> {
  return {
    usage,
    ...(values && { values }),
    read(given) {
      if (given.length > max) throw new UsageError(`takes ${text}`);
      return read(given);
    },
  };
}

/** One word. */
export function one(usage: string, text: string, values?: Values): Subject<string> {
  return words(1, usage, text, ([word]) => required(word, text), values);
}

/** One word or none. */
export function optional(usage: string, text: string, values?: Values): Subject<string | undefined> {
  return words(1, usage, text, ([word]) => word, values);
}

/** One of these words. */
export function oneOf<const W extends string>(usage: string, text: string, values: readonly W[]): Subject<W> {
  const read = (word: string) => {
    const found = values.find(value => value === word);
    if (found === undefined) throw new UsageError(`takes ${text}`);
    return found;
  };
  return words(1, usage, text, ([word]) => read(required(word, text)), values);
}

/** Two words. */
export function pair(usage: string, text: string): Subject<readonly [string, string]> {
  return words(2, usage, text, ([first, second]) => [required(first, text), required(second, text)]);
}

/** Any number of words. */
export function anyNumber(usage: string, text: string): Subject<readonly string[]> {
  return words(Number.POSITIVE_INFINITY, usage, text, given => given);
}

/** One word or more. */
export function several(usage: string, text: string, values?: Values): Subject<readonly string[]> {
  return words(Number.POSITIVE_INFINITY, usage, text, ([first, ...more]) => [required(first, text), ...more], values);
}

/** Returns the word. An empty word counts as missing, because it comes from an unset shell variable. */
function required(word: string | undefined, text: string): string {
  if (!word) throw new UsageError(`requires ${text}`);
  return word;
}

export const TASK = one('TASK', 'one task id');
