import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { extname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';

const TYPES: Record<string, string> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
};

/** The page of `hopline view`, which has its own policy. */
const STATIC_PAGE = 'file-page.html';

export type AppFile = { type: string; bytes: Buffer; gzipped: Buffer };
/** The built page by path; `/` is the page itself. */
export type AppFiles = ReadonlyMap<string, AppFile>;

/** Beside the bundle in an image, otherwise where `vite build` puts it. */
const FOLDERS = ['./console-app/', '../dist/'].map(path => fileURLToPath(new URL(path, import.meta.url)));

/** Reads all files at start, so that no request path reaches the file system. Throws an Error with one sentence. */
export function readAppFiles(folders: readonly string[] = FOLDERS): AppFiles {
  const folder = folders.find(one => existsSync(join(one, 'index.html')));
  if (folder === undefined)
    throw new Error(
      'the page of the console is not built: `npm start` and `npm test` build it, or run `pnpm build` in services/console',
    );
  const files = new Map<string, AppFile>();
  for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
    const type = TYPES[extname(entry.name)];
    if (!entry.isFile() || type === undefined || entry.name === STATIC_PAGE) continue;
    const path = join(entry.parentPath, entry.name);
    const bytes = readFileSync(path);
    const name = path.slice(folder.length).replaceAll('\\', '/').replace(/^\/*/, '/');
    files.set(name === '/index.html' ? '/' : name, { type, bytes, gzipped: gzipSync(bytes, { level: 9 }) });
  }
  return files;
}
