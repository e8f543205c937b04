/**
 * An agent breaks a rule of the kit. The message names a member and a type, never a value: it becomes the reason of the failed turn, which
 * clients see.
 */
export class AgentMisuse extends Error {
  override readonly name = 'AgentMisuse';
}

/** The type of a value in words, without its content. */
export function kindOf(value: unknown): string {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'an array';
  if (value instanceof Promise) return 'a promise (is an await missing?)';
  const kind = typeof value;
  return kind === 'object' || kind === 'undefined' ? (kind === 'object' ? 'an object' : kind) : `a ${kind}`;
}
