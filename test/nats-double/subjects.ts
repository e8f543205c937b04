/** Whether a subject, or a narrower filter, is within a filter: `*` stands for one token, a final `>` for one or more. */
export function matches(filter: string, subject: string): boolean {
  if (filter === subject || filter === '>') return true;
  return hasWildcard(filter) && matchesTokens(filter, subject);
}

/** Compares token by token without splitting, because every message is compared with many filters. */
function matchesTokens(filter: string, subject: string): boolean {
  let [from, at] = [0, 0];
  while (from <= filter.length) {
    const [end, givenEnd] = [endOfToken(filter, from), endOfToken(subject, at)];
    const length = end - from;
    if (length === 1 && filter[from] === '>') return at <= subject.length;
    if (at > subject.length || (givenEnd - at === 1 && subject[at] === '>')) return false;
    const isAny = length === 1 && filter[from] === '*';
    if (!isAny && (length !== givenEnd - at || !subject.startsWith(filter.slice(from, end), at))) return false;
    [from, at] = [end + 1, givenEnd + 1];
  }
  return at > subject.length;
}

function endOfToken(subject: string, from: number): number {
  const end = subject.indexOf('.', from);
  return end < 0 ? subject.length : end;
}

/** A filter that is compared with many subjects. Most of them differ before its first wildcard. */
export class Pattern {
  readonly #filter: string;
  readonly prefix: string;

  constructor(filter: string) {
    this.#filter = filter;
    this.prefix = filter.split(/[*>]/, 1)[0]!;
  }

  matches(subject: string): boolean {
    return subject.startsWith(this.prefix) && matches(this.#filter, subject);
  }
}

/** Whether some subject matches both filters. */
export function collide(a: string, b: string): boolean {
  const [left, right] = [a.split('.'), b.split('.')];
  for (let index = 0; ; index += 1) {
    const [first, second] = [left[index], right[index]];
    if (first === undefined || second === undefined) return first === second;
    if (first === '>' || second === '>') return true;
    if (first !== '*' && second !== '*' && first !== second) return false;
  }
}

export function hasWildcard(subject: string): boolean {
  return subject.includes('*') || subject.endsWith('>');
}

export function isSubject(subject: string): boolean {
  return subject !== '' && !/\s/.test(subject) && subject.split('.').every(token => token !== '');
}
