import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { Worker } from 'node:worker_threads';
import { gzipSync } from 'node:zlib';
import { build } from 'esbuild';
import { nodeGlobalsIn } from '../../../test/kit/node-globals.ts';
import { startBadServer, story } from './bad-server.test-kit.ts';

/** Compressed bytes of the entry for pages, with everything it imports. */
const TASKS_ENTRY_GZIP_BYTES_MAX = 25 * 1024;

const resolveDir = fileURLToPath(new URL('..', import.meta.url));
/** Packages of schemas and cards, and of Hopline's servers. */
const EXCLUDED = /node_modules\/(ajv|typebox|jose|canonicalize)\/|packages\/(agent-card|a2a\/src\/schema|events)\//;

/** esbuild fails for `node:` modules on this platform. */
async function bundled(contents: string) {
  const stdin = { contents, resolveDir };
  const { outputFiles, metafile } = await build({
    ...{ stdin, bundle: true, minify: true, format: 'esm', platform: 'browser', target: 'es2023', write: false, metafile: true },
    logLevel: 'silent',
  });
  return { code: outputFiles[0]!.text, inputs: Object.keys(metafile.inputs) };
}

test('the entry for pages is small, and has no schemas, cards or Node modules', async t => {
  const { code, inputs } = await bundled(`export * from '@hopline/client/tasks'`);
  const bytes = gzipSync(code, { level: 9 }).length;
  t.diagnostic(`${bytes} bytes compressed, ${code.length} bytes`);
  assert.ok(bytes <= TASKS_ENTRY_GZIP_BYTES_MAX, `${bytes} bytes`);
  assert.deepEqual(
    inputs.filter(input => EXCLUDED.test(input)),
    [],
  );
  const whole = await bundled(`export * from '@hopline/client'`);
  assert.ok(
    whole.inputs.some(input => EXCLUDED.test(input)),
    'the other entry has what this one excludes',
  );
  await assert.rejects(bundled(`export * from 'node:crypto'`), /node:crypto/);
});

test('the bundles for pages use no globals of Node, in any branch', async () => {
  for (const entry of [
    '@hopline/client',
    '@hopline/client/tasks',
    '@hopline/client/ai-sdk',
    '@hopline/task-view',
    '@hopline/a2a',
  ])
    assert.deepEqual(nodeGlobalsIn((await bundled(`export * from '${entry}'`)).code), [], entry);
});

test('the bundle of the entry for pages asks, resumes and watches in a process without modules and globals of Node', async () => {
  const { code } = await bundled(`
    import { createClient } from '@hopline/client/tasks';
    const client = createClient({ url: globalThis.server, retry: { baseMs: 1 } });
    const answer = await client.ask('count');
    let views = 0;
    for await (const view of client.watch('task-1')) views += view.answer === answer ? 1 : 0;
    console.log(answer.length, views > 0, typeof process, typeof Buffer);
  `);
  const events = story(20);
  const server = await startBadServer({ events, fault: n => (n === 0 ? { kind: 'cut', after: 5 } : undefined) });
  try {
    const hook = new URL('no-built-ins.test-hook.ts', import.meta.url).href;
    const script = `globalThis.server = '${server.url}';\n${code}`;
    const args = ['--disallow-code-generation-from-strings', '--import', hook, '--input-type=module', '--eval', script];
    const { stdout } = await promisify(execFile)(process.execPath, args, { timeout: 120_000 });
    assert.match(stdout, /^[1-9]\d* true undefined undefined\n$/);
  } finally {
    await server.close();
  }
});

test('the bundle of the entry for pages runs in a worker', async () => {
  const { code } = await bundled(`
    import { createClient } from '@hopline/client/tasks';
    export const ask = url => createClient({ url }).ask('count');
  `);
  const server = await startBadServer({ events: story(20) });
  try {
    const script = `
      import { parentPort, workerData } from 'node:worker_threads';
      const { ask } = await import('data:text/javascript;base64,' + workerData.code);
      parentPort.postMessage(await ask(workerData.url));`;
    const workerData = { code: Buffer.from(code).toString('base64'), url: server.url };
    const worker = new Worker(new URL(`data:text/javascript,${encodeURIComponent(script)}`), { workerData });
    const [answer] = (await once(worker, 'message')) as [string];
    assert.ok(answer.length > 0);
    await worker.terminate();
  } finally {
    await server.close();
  }
});
