/** Whether a subject, or a narrower filter, is within a filter: `*` stands for one token, a final `>` for one or more. */
export function matches(filter: string, subject: string): boolean {
  if (filter === subject || filter === '>') return true;
  if (!hasWildcard(filter)) return false;
  const wanted = filter.split('.');
  const tokens = subject.split('.');
  for (const [index, token] of wanted.entries()) {
    if (token === '>') return tokens.length > index;
    const given = tokens[index];
    if (given === undefined || given === '>' || (token !== '*' && token !== given)) return false;
  }
  return tokens.length === wanted.length;
}

/** A filter that is compared with many subjects. Most of them differ before its first wildcard. */
export class Pattern {
  readonly #filter: string;
  readonly #prefix: string;

  constructor(filter: string) {
    this.#filter = filter;
    this.#prefix = filter.split(/[*>]/, 1)[0]!;
  }

  matches(subject: string): boolean {
    return subject.startsWith(this.#prefix) && matches(this.#filter, subject);
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
