import type { Table } from './measure/table.ts';
import type { Target } from './measure/targets.ts';

/** `tiny` proves that the bench works; its figures mean nothing. */
export type Size = 'tiny' | 'quick' | 'full';

export type Finding = {
  /** The measurement in one line. */
  title: string;
  table: Table;
  /** Notes for readers of the table. */
  notes?: string[];
  targets?: Target[];
  /** Used only for the JSON output. */
  data?: unknown;
};

/** One question of the bench. Throws when text was lost or changed. */
export type Question = {
  name: string;
  /** Takes too long to be asked with all others. */
  onlyIfNamed?: boolean;
  ask: (size: Size) => Promise<Finding[]>;
};
