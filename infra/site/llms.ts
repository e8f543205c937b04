import { cpSync, mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { llmsText, PAGES, ROOT } from './pages.ts';

/** Adds llms.txt to the built site, and each page as Markdown, to which llms.txt links. */
const DIST = fileURLToPath(new URL('dist', import.meta.url));

for (const path of PAGES) {
  mkdirSync(dirname(join(DIST, path)), { recursive: true });
  cpSync(join(ROOT, path), join(DIST, path));
}
writeFileSync(join(DIST, 'llms.txt'), llmsText(process.env.SITE_URL ?? '/'));
