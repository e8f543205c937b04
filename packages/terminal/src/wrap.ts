/**
 * Breaks a text between words into lines of at most `columns`, each after `indent` spaces. A longer word is on a line of its own. Spaces
 * between words remain, so callers may align words.
 */
export function wrap(text: string, columns: number, indent = 0): string[] {
  const width = Math.max(columns - indent, 1);
  const lines: string[] = [];
  let line = '';
  for (const [, space = '', word = ''] of text.trimEnd().matchAll(/(\s*)(\S+)/g)) {
    if (line !== '' && line.length + space.length + word.length > width) {
      lines.push(line);
      line = word;
    } else line += line === '' ? word : space + word;
  }
  if (line !== '') lines.push(line);
  return lines.map(one => ' '.repeat(indent) + one);
}

/** Puts the fields of one entry into as few lines as possible. A field is broken only if it is longer than a whole line. */
export function layOut(fields: readonly string[], columns: number): string[] {
  const lines: string[] = [];
  for (const field of fields.filter(one => one.trim() !== '')) {
    const line = lines.at(-1);
    if (line !== undefined && line.length + 2 + field.trimEnd().length <= columns) lines[lines.length - 1] = `${line}  ${field}`;
    else if (lines.length === 0) lines.push(field);
    else lines.push(...wrap(field, columns, 2));
  }
  return lines.map(line => line.trimEnd());
}
