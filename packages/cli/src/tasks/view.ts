import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { readFile, stat, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { basename } from 'node:path';
import { getAsset, isSea } from 'node:sea';
import { fileURLToPath } from 'node:url';
import { readTaskFile, TaskFileError } from '@hopline/task-file';
import { command } from '../command/command.ts';
import { EXIT } from '../command/exit-code.ts';
import { codeOfFault } from '../command/input-file.ts';
import { flag, text } from '../command/options.ts';
import { one } from '../command/subjects.ts';
import { UsageError } from '../command/usage-error.ts';

/** Largest file, the same as for a file that is dropped onto the console. */
export const VIEWED_BYTES_MAX = 64 * 1024 * 1024;

/**
 * The page without a file. It is next to the bundle of an image, otherwise where the build of the console puts it, even in a package. The
 * binary contains it.
 */
const PAGES = ['./console-app/file-page.html', '../../../../services/console/dist/file-page.html'].map(path =>
  fileURLToPath(new URL(path, import.meta.url)),
);

export const view = command({
  name: 'view',
  subject: one('FILE', 'one task file', 'files'),
  summary: 'shows the tasks of a file in a browser: conversation, time line, playback',
  details: 'the page of the console for a file, without a cluster; the file stays on this machine',
  asksNoServer: true,
  options: {
    output: text('HTML', 'writes the page with the file in it, for others to open, instead of showing it', 'files'),
    noOpen: flag('prints the address of the page instead of opening a browser'),
  },
  notes: 'Ctrl-C ends it. The address has a secret, so that other users of this machine cannot read the file.',
  async run({ subject: file, options }, { json, output, environment, signal }) {
    const page = await pageOf(file);
    if (options.output !== undefined) {
      await writeFile(options.output, page).catch(thrown => {
        throw new UsageError(`--output: the page cannot be written to ${options.output} (${codeOfFault(thrown)})`);
      });
      output.artifact(`${options.output}, ${Buffer.byteLength(page)} bytes`);
      return EXIT.ok;
    }
    const { server, url } = await serve(page);
    try {
      output.line(json ? JSON.stringify({ url }) : url);
      if (!options.noOpen && !openBrowser(url, environment)) output.warn('no browser was found: open the address yourself');
      await new Promise<void>(resolve => {
        if (signal.aborted) resolve();
        signal.addEventListener('abort', () => resolve(), { once: true });
      });
      return EXIT.ok;
    } finally {
      server.closeAllConnections();
      server.close();
    }
  },
});

/** The page with the file in it. Throws UsageError for a file that the page could not show. */
async function pageOf(file: string): Promise<string> {
  const unreadable = (thrown: unknown) => new UsageError(`${file} cannot be read (${codeOfFault(thrown)})`);
  const { size } = await stat(file).catch(thrown => {
    throw unreadable(thrown);
  });
  if (size > VIEWED_BYTES_MAX)
    throw new UsageError(`${file} has ${size} bytes, and a page shows at most ${VIEWED_BYTES_MAX}: use hopline serve or replay`);
  const bytes = await readFile(file).catch(thrown => {
    throw unreadable(thrown);
  });
  try {
    // Reads all of it, because a browser should not be the first to find that the file is damaged.
    for await (const _entry of readTaskFile([bytes]));
  } catch (thrown) {
    if (!(thrown instanceof TaskFileError)) throw thrown;
    throw new UsageError(`${file}: ${thrown.message}`);
  }
  return withFile(emptyPage(), basename(file), bytes.toString());
}

function emptyPage(): string {
  if (isSea()) return getAsset('file-page.html', 'utf8');
  const path = PAGES.find(existsSync);
  if (path === undefined)
    throw new UsageError('the page is not built: `npm start` and `npm test` build it, or run `pnpm build` in services/console');
  return readFileSync(path, 'utf8');
}

/** The file is data, which no browser runs. In JSON, `<` can be an escape, so the text cannot end the element. */
function withFile(page: string, name: string, content: string): string {
  const data = JSON.stringify({ name, text: content }).replaceAll('<', '\\u003c');
  return page.replace('<div id="app">', tag => `<script type="application/json" id="task-file">${data}</script>\n    ${tag}`);
}

/** Serves the page on loopback, at a path that cannot be guessed. */
async function serve(page: string): Promise<{ server: Server; url: string }> {
  const path = `/${randomBytes(16).toString('base64url')}/`;
  const body = Buffer.from(page);
  const server = createServer((request, response) => {
    request.resume();
    if (request.method !== 'GET' || request.url !== path) return response.writeHead(404).end();
    response.writeHead(200, {
      'content-type': 'text/html; charset=utf-8',
      'cache-control': 'no-store',
      'referrer-policy': 'no-referrer',
      'x-content-type-options': 'nosniff',
      'x-frame-options': 'DENY',
    });
    return response.end(body);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return { server, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}${path}` };
}

const OPENERS: Partial<Record<NodeJS.Platform, readonly string[]>> = {
  darwin: ['open'],
  win32: ['rundll32', 'url.dll,FileProtocolHandler'],
};

/** False if this machine has no program that opens a page. */
function openBrowser(url: string, { PATH = '' }: Readonly<Record<string, string | undefined>>): boolean {
  const known = OPENERS[process.platform];
  const [program, ...args] = known ?? ['xdg-open'];
  if (known === undefined && !PATH.split(':').some(folder => existsSync(`${folder}/xdg-open`))) return false;
  const child = spawn(program!, [...args, url], { stdio: 'ignore', detached: true });
  child.on('error', () => {});
  child.unref();
  return true;
}
