import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { build } from 'esbuild';
import { npmPackages } from '../../../test/support/npm-packages.ts';
import { startBadServer, story } from './bad-server.test-kit.ts';

/** The client in other runtimes than Node, which the npm registry has as packages. */

const RUNTIMES = [
  { name: 'Deno', package: 'deno@2.9.6', file: '@deno/linux-x64-glibc/deno', args: ['run', '--allow-net', '--allow-read'] },
  { name: 'Bun', package: 'bun@1.4.5', file: 'bun/bin/bun.exe', args: ['run'] },
];

const CLIENT = `
  import { createClient } from '@hopline/client';
  globalThis.found = async () => {
    const client = createClient({ url: SERVER, retry: { baseMs: 1 } });
    const answer = await client.ask('count');
    let last;
    for await (const view of client.watch('task-1')) last = view;
    return { answer, isSame: last.answer === answer, state: last.state };
  };`;
const WORKER = 'postMessage(await globalThis.found());';
const PROGRAM = `
  console.log(JSON.stringify(await globalThis.found()));
  const worker = new Worker(new URL('worker.mjs', import.meta.url), { type: 'module' });
  const answered = new Promise((resolve, reject) => {
    worker.onmessage = ({ data }) => resolve(data);
    worker.onerror = reject;
  });
  console.log(JSON.stringify(await answered));
  worker.terminate();`;

for (const { name, package: requirement, file, args } of RUNTIMES) {
  const folder =
    process.platform === 'linux' && process.arch === 'x64'
      ? await npmPackages(requirement, `npm install ${requirement}`, { private: true })
      : undefined;
  test(`the client asks, resumes and watches in ${name}, even in a worker`, {
    skip: folder === undefined && `${name} cannot be installed for this machine`,
    timeout: 300_000,
  }, async t => {
    const server = await startBadServer({ events: story(20), fault: n => (n % 3 === 0 ? { kind: 'cut', after: 5 } : undefined) });
    t.after(() => server.close());
    const { outputFiles } = await build({
      stdin: { contents: CLIENT, resolveDir: fileURLToPath(new URL('..', import.meta.url)) },
      ...{ bundle: true, format: 'esm', platform: 'browser', target: 'es2023', write: false, logLevel: 'silent' },
      define: { SERVER: JSON.stringify(server.url) },
    });
    const place = mkdtempSync(join(tmpdir(), 'hopline-runtime-'));
    t.after(() => rmSync(place, { recursive: true }));
    const program = join(place, 'program.mjs');
    writeFileSync(program, outputFiles[0]!.text + PROGRAM);
    writeFileSync(join(place, 'worker.mjs'), outputFiles[0]!.text + WORKER);
    const run = promisify(execFile)(join(folder!, 'node_modules', file), [...args, program], { timeout: 120_000 });
    const { stdout } = await run;
    const answer = Array.from({ length: 20 }, (_, index) => `${index} `).join('');
    const found = { answer, isSame: true, state: 'TASK_STATE_COMPLETED' };
    assert.deepEqual(
      stdout
        .trim()
        .split('\n')
        .map(line => JSON.parse(line)),
      [found, found],
    );
    assert.ok(server.requests.length > 4);
  });
}
