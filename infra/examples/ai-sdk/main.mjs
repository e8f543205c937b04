import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { setTimeout } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

const here = path => fileURLToPath(new URL(path, import.meta.url));
const { HOPLINE_URL, PORT = '5173' } = process.env;
const url = HOPLINE_URL ?? 'http://127.0.0.1:8000';

// Without HOPLINE_URL the cluster of this checkout is started as well. It lets the page call it, and installs the packages that are imported below.
// Ctrl-C reaches both.
if (HOPLINE_URL === undefined) {
  const options = ['start', '--no-demo', '--origin', `http://127.0.0.1:${PORT}`];
  const cluster = spawn(process.execPath, ['infra/local/bootstrap.mjs', ...options], { cwd: here('../../..'), stdio: 'inherit' });
  void once(cluster, 'exit').then(([code]) => process.exit(code ?? 1));
  while (!(await fetch(new URL('/.well-known/agent-card.json', url)).catch(() => undefined))?.ok) await setTimeout(500);
}

const { build } = await import('esbuild');
const { outputFiles } = await build({
  entryPoints: [here('page.jsx')],
  bundle: true,
  write: false,
  format: 'esm',
  minify: true,
  jsx: 'automatic',
  define: { HOPLINE_URL: JSON.stringify(url), 'process.env.NODE_ENV': '"production"' },
});
const page = await readFile(here('index.html'));

const server = createServer((request, response) => {
  const [type, body] = request.url === '/page.js' ? ['text/javascript', outputFiles[0].contents] : ['text/html', page];
  response.writeHead(200, { 'content-type': `${type}; charset=utf-8` }).end(body);
});
server.listen(Number(PORT), '127.0.0.1', () => console.log(`Open http://127.0.0.1:${server.address().port}/`));
