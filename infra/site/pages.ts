import { existsSync, globSync, readFileSync, statSync } from 'node:fs';
import { dirname, join, posix } from 'node:path';
import { fileURLToPath } from 'node:url';

export const ROOT = fileURLToPath(new URL('../../', import.meta.url)).replace(/\/$/, '');

/** Documents of the repository that are pages of the site, where they lie. */
const DOCUMENTS = ['*.md', 'docs/**/*.md', 'packages/**/*.md', 'services/**/*.md', 'infra/**/*.md', 'test/**/*.md'];
/** Folders without documents, and files of packages that are made elsewhere. */
export const NO_DOCUMENTS = [
  '**/node_modules/**',
  '**/.*/**',
  '**/dist/**',
  'infra/create-hopline/template/**',
  'infra/release/hopline-package.md',
  'test/support/**',
];

const INDEX = 'docs/README.md';

/** Paths of all pages. */
export const PAGES: ReadonlySet<string> = new Set(globSync(DOCUMENTS, { cwd: ROOT, exclude: NO_DOCUMENTS }).sort());

/** The path of a page on the site: a README is the page of its folder. */
export const pathOnSite = (path: string): string => path.replace(/(^|\/)README\.md$/, '$1index.md');

/** The first heading of a document. */
export function titleOf(path: string): string {
  const [, title = path] = /^# (.+)$/m.exec(readFileSync(join(ROOT, path), 'utf8')) ?? [];
  return title.replaceAll('`', '');
}

export type Section = { title: string; entries: { purpose: string; path: string }[] };

/** The tables of docs/README.md, which are the menu of the site and the sections of llms.txt. */
export function sections(): Section[] {
  const tables = readFileSync(join(ROOT, INDEX), 'utf8').matchAll(/^\| ([^|\n]+) \| page \|\n\|[-| ]+\|\n((?:\|.*\n?)+)/gm);
  return [...tables].map(([, title, rows]) => ({
    title: title!.trim(),
    entries: [...rows!.matchAll(/^\| (.+?) \| \[[^\]]+\]\(([^)#]+)[^)]*\)/gm)].map(([, purpose, target]) => ({
      purpose: purpose!.trim(),
      path: posix.join(dirname(INDEX), target!),
    })),
  }));
}

/** A link of the page `from` on the site: pages keep relative links, other files are links to the repository on GitHub. */
export function linkOnSite(from: string, href: string, repository: string): string {
  if (/^(?:[a-z]+:|#|\/)/i.test(href)) return href;
  const [target, hash] = href.split(/(?=#)/) as [string, string | undefined];
  const path = posix.join(dirname(from), target).replace(/\/$/, '');
  const file = join(ROOT, path);
  if (!existsSync(file)) throw new Error(`${from} links to ${href}`);
  const isFolder = statSync(file).isDirectory();
  const page = isFolder ? `${path}/README.md` : path;
  if (!PAGES.has(page)) return `${repository}/${isFolder ? 'tree' : 'blob'}/main/${path}${hash ?? ''}`;
  const there = posix.relative(dirname(pathOnSite(from)), pathOnSite(page));
  return `${there.startsWith('.') ? '' : './'}${there}${hash ?? ''}`;
}

const ANCHOR = /^<\/?a(?: id="[\w-]+")?>$/;
const LINE_END = /^<br>$/;
const PICTURE =
  /^<picture>\n {2}<source media="\(prefers-color-scheme: dark\)" srcset="[\w./-]+">\n {2}<img alt="[^"<>{}]+" src="[\w./-]+">\n<\/picture>$/;

/** Whether HTML of a document is HTML on the site. Any other is shown as text. */
export const staysHtml = (html: string): boolean => [ANCHOR, LINE_END, PICTURE].some(pattern => pattern.test(html.trim()));

/** Anchors as GitHub makes them of headings, so that links to sections work in both places. */
export const anchorOf = (heading: string): string =>
  heading
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N} _-]/gu, '')
    .replaceAll(' ', '-');

/** The text of llms.txt (https://llmstxt.org): what Hopline is, and every page of the index as Markdown. `base`: address of the site. */
export function llmsText(base: string): string {
  const [, summary] = /^\*\*(Hopline is [\s\S]+?)\n\n/m.exec(readFileSync(join(ROOT, 'README.md'), 'utf8'))!;
  const plain = summary!.replaceAll(/\*\*|\[([^\]]+)\]\([^)]+\)/g, '$1').replaceAll(/\s+/g, ' ');
  const lists = sections().map(({ title, entries }) => {
    const items = entries.map(({ purpose, path }) => `- [${titleOf(path)}](${base}${path}): ${purpose}`);
    return `## ${title}\n\n${items.join('\n')}\n`;
  });
  return `# Hopline\n\n> ${plain}\n\nA skill for coding agents: ${base}docs/skills/hopline/SKILL.md\n\n${lists.join('\n')}`;
}
