import { type Dialect, hasMethod } from './dialect.ts';
import { dialect03 } from './dialect-0.3/dialect.ts';
import { dialect10 } from './dialect-1.0/dialect.ts';
import { dialectLegacy } from './dialect-legacy/dialect.ts';
import type { DialectName } from './version.ts';

export const DIALECTS: Readonly<Record<DialectName, Dialect>> = { '1.0': dialect10, '0.3': dialect03, legacy: dialectLegacy };

/** The dialect of a request without a version: 0.3 ([A2A 1.0] 3.6.2), or legacy for methods that only the legacy form has. */
export function unversionedDialect(method: string): Dialect {
  return hasMethod(dialectLegacy, method) && !hasMethod(dialect03, method) ? dialectLegacy : dialect03;
}

/**
 * True for a method that 0.3 and the legacy form share, with the same params. Only the task shows which of the two forms the client reads.
 */
export function isAmbiguous(method: string): boolean {
  return hasMethod(dialectLegacy, method) && hasMethod(dialect03, method);
}
