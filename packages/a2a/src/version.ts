import { A2AError } from './errors.ts';

/**
 * Wire dialects of JSON-RPC. Clients of 0.2 use 0.3, with which it shares all its methods; `legacy` is the form of April 2025,
 * which had no version on the wire.
 */
export const DIALECT_NAMES = ['1.0', '0.3', 'legacy'] as const;
export type DialectName = (typeof DIALECT_NAMES)[number];

export const VERSION_HEADER = 'a2a-version';
export const VERSION_QUERY = 'A2A-Version';

/** The version that selects a dialect. */
export const VERSION_OF: Readonly<Record<DialectName, string>> = { '1.0': '1.0', '0.3': '0.3', legacy: '0.1' };

const VERSION = /^(\d{1,4}\.\d{1,4})(?:\.\d{1,6})?$/;

/**
 * The dialect that a request names in the `A2A-Version` header, else in the query parameter; undefined when both are absent or
 * empty. Only major and minor count. Throws VERSION_NOT_SUPPORTED for anything else.
 */
export function namedDialect(header: string | undefined, query: string | undefined): DialectName | undefined {
  const named = header?.trim() || query?.trim();
  if (!named) return undefined;
  const version = VERSION.exec(named)?.[1];
  const name = DIALECT_NAMES.find(known => VERSION_OF[known] === version);
  if (name !== undefined) return name;
  throw new A2AError('VERSION_NOT_SUPPORTED', { detail: `A2A-Version must be one of ${Object.values(VERSION_OF).join(', ')}` });
}
