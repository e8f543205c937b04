/** A table in Markdown with aligned columns. The first row is the head. */
export function markdownTable(rows: readonly (readonly string[])[]): string {
  const widths = rows[0]!.map((_, column) => Math.max(...rows.map(row => row[column]!.length)));
  const line = (cells: readonly string[]) => `| ${cells.map((cell, column) => cell.padEnd(widths[column]!)).join(' | ')} |`;
  const [head, ...body] = rows.map(line);
  return `${[head, line(widths.map(width => '-'.repeat(width))), ...body].join('\n')}\n`;
}
