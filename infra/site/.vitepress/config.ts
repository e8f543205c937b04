import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { defineConfig } from 'vitepress';
import { anchorOf, linkOnSite, NO_DOCUMENTS, pathOnSite, ROOT, sections, staysHtml, titleOf } from '../pages.ts';

const { SITE_BASE = '/', GITHUB_SERVER_URL = 'https://github.com', GITHUB_REPOSITORY = 'OWNER/hopline' } = process.env;
const repository = `${GITHUB_SERVER_URL}/${GITHUB_REPOSITORY}`;
const address = (path: string): string => `/${pathOnSite(path).replace(/(?:index)?\.md$/, '')}`;

/** Pages lie outside of this folder, which has the packages that they import once they are compiled. */
function fromThisFolder(
  this: { resolve: (id: string, importer: string, options: object) => unknown },
  id: string,
  importer = '',
) {
  const here = join(ROOT, 'infra/site/pages.ts');
  return /^vue(?:$|\/)/.test(id) && importer.includes('.md') ? this.resolve(id, here, { skipSelf: true }) : undefined;
}

/** The icon that the console has: the site has no files of its own. */
const icon = readFileSync(join(ROOT, 'services/console/app/public/icon.svg')).toString('base64');

export default defineConfig({
  title: 'Hopline',
  description: 'An event-sourced relay cluster for A2A streams',
  base: SITE_BASE,
  head: [['link', { rel: 'icon', type: 'image/svg+xml', href: `data:image/svg+xml;base64,${icon}` }]],
  // The pages are the documents of the repository, where they lie: nothing is copied.
  srcDir: ROOT,
  srcExclude: NO_DOCUMENTS,
  outDir: './dist',
  cacheDir: './.cache',
  rewrites: pathOnSite,
  cleanUrls: true,
  vite: { plugins: [{ name: 'packages-of-this-folder', enforce: 'pre', resolveId: fromThisFolder }] },
  markdown: {
    anchor: { slugify: anchorOf },
    config(md) {
      // A page is a template of Vue, in which words such as <id> would be elements.
      const html = (text: string) => (staysHtml(text) ? text : text.startsWith('<!--') ? '' : md.utils.escapeHtml(text));
      md.renderer.rules.html_inline = md.renderer.rules.html_block = (tokens, index) => html(tokens[index]!.content);
      md.renderer.rules.text = (tokens, index) => md.utils.escapeHtml(tokens[index]!.content).replaceAll('{{', '&#123;&#123;');
      md.renderer.rules.code_inline = (tokens, index) => `<code v-pre>${md.utils.escapeHtml(tokens[index]!.content)}</code>`;
      // Runs before VitePress changes links to addresses.
      md.core.ruler.push('repository-links', state => {
        for (const { children } of state.tokens)
          for (const token of children ?? []) {
            const href = token.type === 'link_open' ? token.attrGet('href') : null;
            if (href !== null) token.attrSet('href', linkOnSite(state.env.relativePath, decodeURI(href), repository));
          }
      });
    },
  },
  themeConfig: {
    search: { provider: 'local' },
    nav: [
      { text: 'Documentation', link: address('docs/README.md') },
      { text: 'HTTP API', link: address('docs/reference/openapi.md') },
      // Made by typedoc, so the router of VitePress does not know these pages.
      { text: 'TypeScript API', link: '/api/', target: '_self' },
    ],
    sidebar: sections().map(({ title, entries }) => ({
      text: title,
      collapsed: false,
      items: entries.map(({ path }) => ({ text: titleOf(path), link: address(path) })),
    })),
    socialLinks: [{ icon: 'github', link: repository }],
  },
});
