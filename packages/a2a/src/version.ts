import { A2AError } from './errors.ts';

/** Wire dialects of the JSON-RPC door. 0.2 clients speak 0.3 on every method both have. */
export const DIALECT_NAMES = ['1.0', '0.3'] as const;
export type DialectName = (typeof DIALECT_NAMES)[number];

export const VERSION_HEADER = 'a2a-version';
export const VERSION_QUERY = 'A2A-Version';

const VERSION = /^(\d{1,4}\.\d{1,4})(?:\.\d{1,6})?$/;

/**
 * The dialect a request asks for: the `A2A-Version` header, else the query parameter; absent or empty means 0.3 ([A2A 1.0] 3.6.2, C-6).
 * Only major and minor count. Throws VERSION_NOT_SUPPORTED for anything else.
 */
export function dialectOf(header: string | undefined, query: string | undefined): DialectName {
  const asked = header?.trim() || query?.trim() || '0.3';
  const version = VERSION.exec(asked)?.[1];
  const name = DIALECT_NAMES.find(known => known === version);
  if (name === undefined) throw new A2AError('VERSION_NOT_SUPPORTED', { detail: `supported are ${DIALECT_NAMES.join(' and ')}` });
  return name;
}
