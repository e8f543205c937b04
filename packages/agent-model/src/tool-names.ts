/** Limit of providers for a tool name; MCP allows more. */
const NAME_CHARS_MAX = 64;

/**
 * A tool name that providers accept and that is not in `taken`. MCP names may have dots, slashes and 128 characters, and two servers may
 * share one.
 */
export function callableName(name: string, taken: { has(name: string): boolean }): string {
  const plain = name.replaceAll(/[^A-Za-z0-9_-]/g, '_').slice(0, NAME_CHARS_MAX) || 'tool';
  if (!taken.has(plain)) return plain;
  for (let number = 2; ; number += 1) {
    const ending = `_${number}`;
    const numbered = plain.slice(0, NAME_CHARS_MAX - ending.length) + ending;
    if (!taken.has(numbered)) return numbered;
  }
}
