import type { CodePath } from './code-paths.ts';

const marks = (name: string) => [`<!-- path of a ${name} -->\n`, `<!-- end of the path of a ${name} -->\n`] as const;

/** The list of a path's steps, as ARCHITECTURE.md shows it between its markers. */
export function sectionOf({ title, steps }: CodePath): string {
  const lines = steps.map(({ file, does, over }, index) => {
    const seam = over === undefined ? '' : `\n   *— \`${over}\` —*\n\n`;
    return `${seam}${index + 1}. [${file}](${file}) ${does}\n`;
  });
  return `\n**${title}**\n\n${lines.join('')}\n`;
}

/** The text between the markers of a path; undefined for a document without them. */
export function markedSection(text: string, name: string): string | undefined {
  const [begin, end] = marks(name);
  const from = text.indexOf(begin);
  const to = text.indexOf(end);
  return from < 0 || to < 0 ? undefined : text.slice(from + begin.length, to);
}

/** The document with its marked section replaced; unchanged without markers. */
export function withSection(text: string, path: CodePath): string {
  const found = markedSection(text, path.name);
  const [begin, end] = marks(path.name);
  return found === undefined ? text : text.replace(begin + found + end, () => begin + sectionOf(path) + end);
}
