import type { Spread } from './spread.ts';

export type Table = { columns: string[]; rows: string[][] };

/** Aligns the first column to the left, figures to the right. */
export function tableLines({ columns, rows }: Table): string[] {
  const widths = columns.map((column, index) => Math.max(column.length, ...rows.map(row => row[index]?.length ?? 0)));
  const line = (cells: readonly string[]) =>
    `  ${cells.map((cell, index) => (index === 0 ? cell.padEnd(widths[0]!) : cell.padStart(widths[index]!))).join('  ')}`.trimEnd();
  return [line(columns), ...rows.map(line)];
}

export const SPREAD_COLUMNS = ['min', 'median', 'max'] as const;

export function spreadCells({ min, median, max }: Spread): string[] {
  return [min, median, max].map(figure);
}

/** Three significant digits, with thousands separators. */
export function figure(value: number): string {
  if (value === 0) return '0';
  if (Math.abs(value) >= 1000) return Math.round(value).toLocaleString('en-US');
  if (Math.abs(value) >= 100) return value.toFixed(0);
  return value.toPrecision(3);
}
