import { spawn } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { fileURLToPath } from 'node:url';
import { HttpAgent } from '@ag-ui/client';
import { CopilotRuntime, createCopilotRuntimeHandler, InMemoryAgentRunner } from '@copilotkit/runtime/v2';
import { createCopilotNodeHandler } from '@copilotkit/runtime/v2/node';
import { build } from 'esbuild';

const here = path => fileURLToPath(new URL(path, import.meta.url));
const { HOPLINE_URL, PORT = '5173' } = process.env;
const url = HOPLINE_URL ?? 'http://127.0.0.1:8000';

// Without HOPLINE_URL the cluster of this checkout is started as well, as by `npm start`. Ctrl-C reaches both. The variables of npm name the folder of
// this example, in which the cluster would look for its packages.
if (HOPLINE_URL === undefined) {
  const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith('npm_')));
  const options = { cwd: here('../../..'), env, stdio: 'inherit' };
  const cluster = spawn(process.execPath, ['infra/local/bootstrap.mjs', 'start', '--no-demo'], options);
  cluster.once('exit', code => process.exit(code ?? 1));
}

// When a connection to ingress breaks, the page gets the error of its run. @ag-ui/client 0.0.59 also rejects a promise that has no handler, which would
// end this process.
process.on('unhandledRejection', error => console.error('A connection broke:', error));

const { outputFiles } = await build({
  entryPoints: [here('page.jsx')],
  bundle: true,
  write: false,
  format: 'esm',
  minify: true,
  jsx: 'automatic',
  // The styles of CopilotKit's own chat, which this page does not use.
  loader: { '.css': 'empty' },
  define: { 'process.env.NODE_ENV': '"production"' },
});
const page = await readFile(here('index.html'));

const runtime = new CopilotRuntime({
  agents: { hopline: new HttpAgent({ url: new URL('/agui', url).href }) },
  // A reload sends the run again while the runtime still reads it.
  runner: new InMemoryAgentRunner({ onConcurrentRun: 'supersede' }),
});
const copilotkit = createCopilotNodeHandler(createCopilotRuntimeHandler({ runtime, basePath: '/api/copilotkit' }));

const server = createServer((request, response) => {
  if (request.url.startsWith('/api/copilotkit')) return void copilotkit(request, response);
  const [type, body] = request.url === '/page.js' ? ['text/javascript', outputFiles[0].contents] : ['text/html', page];
  response.writeHead(200, { 'content-type': `${type}; charset=utf-8` }).end(body);
});
server.listen(Number(PORT), '127.0.0.1', () => console.log(`Open http://127.0.0.1:${server.address().port}/`));
