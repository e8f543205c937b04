import type { Table } from './measure/table.ts';
import type { Target } from './measure/targets.ts';

/** `tiny` proves that the bench works; its figures mean nothing. */
export type Size = 'tiny' | 'quick' | 'full';

export type Finding = {
  /** What was measured, in one line. */
  title: string;
  table: Table;
  /** What a reader must know to read the table right. */
  notes?: string[];
  targets?: Target[];
  /** Only for the JSON. */
  data?: unknown;
};

/** One question the bench answers. Throws when text was lost or changed: then there is nothing to measure. */
export type Question = { name: string; ask: (size: Size) => Promise<Finding[]> };
