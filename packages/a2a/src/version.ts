import { A2AError } from './errors.ts';

/** Wire dialects of the JSON-RPC door. 0.2 clients speak 0.3 on every method both have; `legacy` is the form of April 2025, which had no version on the wire. */
export const DIALECT_NAMES = ['1.0', '0.3', 'legacy'] as const;
export type DialectName = (typeof DIALECT_NAMES)[number];

export const VERSION_HEADER = 'a2a-version';
export const VERSION_QUERY = 'A2A-Version';

/** The version that asks for a dialect. */
export const VERSION_OF: Readonly<Record<DialectName, string>> = { '1.0': '1.0', '0.3': '0.3', legacy: '0.1' };

const VERSION = /^(\d{1,4}\.\d{1,4})(?:\.\d{1,6})?$/;

/**
 * The dialect a request names: by the `A2A-Version` header, else by the query parameter; undefined when both are absent or empty (C-6). Only major and minor count.
 * Throws VERSION_NOT_SUPPORTED for anything else.
 */
export function namedDialect(header: string | undefined, query: string | undefined): DialectName | undefined {
  const asked = header?.trim() || query?.trim();
  if (!asked) return undefined;
  const version = VERSION.exec(asked)?.[1];
  const name = DIALECT_NAMES.find(known => VERSION_OF[known] === version);
  if (name !== undefined) return name;
  throw new A2AError('VERSION_NOT_SUPPORTED', { detail: `supported are ${Object.values(VERSION_OF).join(', ')}` });
}
