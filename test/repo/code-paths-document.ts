import { type CodePath, executedFilesOf, type FilesBeside, type TokenPath } from './code-paths.ts';

const marks = (name: string) => [`<!-- path of a ${name} -->\n`, `<!-- end of the path of a ${name} -->\n`] as const;

/** The document with the lists, from the root. */
export const CODE_PATHS_DOCUMENT = 'docs/reference/code-paths.md';

/** A link from there to a file. */
const linkTo = (file: string) => `[${file}](../../${file})`;

/** The list of a path, as the document shows it between its marks. */
export function sectionOf(path: CodePath | TokenPath): string {
  const { title, steps } = path;
  const lines = steps.map(({ file, does, over }, index) => {
    const seam = over === undefined ? '' : `\n   *— \`${over}\` —*\n\n`;
    return `${seam}${index + 1}. ${linkTo(file)} ${does}\n`;
  });
  const beside = 'beside' in path ? besideSteps(path) : '';
  return `\n**${title}**\n\n${lines.join('')}${beside}\n`;
}

function besideSteps(path: TokenPath): string {
  return `\n${executedFilesOf(path).length} files execute for each token: those of the steps, and these:\n\n${path.beside.map(besideOf).join('')}`;
}

function besideOf({ do: purpose, files }: FilesBeside): string {
  const links = files.map(file => `  ${linkTo(file)}`);
  return `- ${purpose}:\n${links.join(',\n')}\n`;
}

/** The text between the marks of a path; undefined if a document has no such marks. */
export function markedSection(text: string, name: string): string | undefined {
  const [begin, end] = marks(name);
  const from = text.indexOf(begin);
  const to = text.indexOf(end);
  return from < 0 || to < 0 ? undefined : text.slice(from + begin.length, to);
}

/** The document with its marked section replaced; unchanged if it has no such section. */
export function withSection(text: string, path: CodePath): string {
  const found = markedSection(text, path.name);
  const [begin, end] = marks(path.name);
  return found === undefined ? text : text.replace(begin + found + end, () => begin + sectionOf(path) + end);
}
