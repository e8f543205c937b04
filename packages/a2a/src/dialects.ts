import type { Dialect } from './dialect.ts';
import { dialect03 } from './dialect-0.3/dialect.ts';
import { dialect10 } from './dialect-1.0/dialect.ts';
import type { DialectName } from './version.ts';

export const DIALECTS: Readonly<Record<DialectName, Dialect>> = { '1.0': dialect10, '0.3': dialect03 };
