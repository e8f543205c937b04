import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { after, before, type TestContext, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { build } from 'esbuild';
import { Cluster } from '../support/cluster/cluster.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const run = promisify(execFile);
const INSTALL_MS_MAX = 240_000;

/** The public packages as a stranger gets them: packed, and installed by npm into an empty folder. */
let folder: string;
let unreachable: string | undefined;

before(
  async () => {
    folder = mkdtempSync(join(tmpdir(), 'hopline-packages-'));
    const { stdout } = await run(process.execPath, [join(ROOT, 'infra/release/main.ts'), '--output', join(folder, 'tarballs')]);
    process.stdout.write(stdout);
    writeFileSync(join(folder, 'package.json'), JSON.stringify({ name: 'stranger', private: true, type: 'module' }));
    const tarballs = ['client', 'agent', 'cli'].map(name => `./tarballs/hopline-${name}-${version()}.tgz`);
    const install = ['install', '--no-audit', '--no-fund', '--prefer-offline', ...tarballs];
    await run('npm', install, { cwd: folder, timeout: INSTALL_MS_MAX }).catch(error => {
      if (!/E(?:NOTFOUND|AI_AGAIN|CONNREFUSED|TIMEDOUT)/.test(error.stderr)) throw error;
      unreachable = 'the npm registry cannot be reached';
    });
  },
  { timeout: INSTALL_MS_MAX },
);

after(() => rmSync(folder, { recursive: true, force: true }));

function version(): string {
  return JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')).version;
}

function isInstalled(t: TestContext): boolean {
  if (unreachable !== undefined) t.skip(unreachable);
  return unreachable === undefined;
}

/** The first code block of a README that holds `marker`. */
function readmeCode(path: string, marker: string): string {
  const blocks = [...readFileSync(join(folder, 'node_modules', path), 'utf8').matchAll(/```ts\n([\s\S]*?)```/g)].map(
    match => match[1]!,
  );
  const code = blocks.find(block => block.includes(marker));
  assert.ok(code, `${path} has no code block with ${marker}`);
  return code;
}

/** Node of the oldest supported release, where the machine has one beside the Node that runs the tests. */
async function oldestNode(): Promise<string | undefined> {
  for (const path of (process.env.PATH ?? '').split(delimiter)) {
    const found = await run(join(path, 'node'), ['--version']).catch(() => undefined);
    if (found?.stdout.startsWith('v20.')) return join(path, 'node');
  }
  return undefined;
}

async function printed(script: string, node = process.execPath): Promise<string> {
  const { stdout } = await run(node, ['--input-type=module', '--eval', script], { cwd: folder, timeout: 60_000 });
  return stdout;
}

const PLAY = `
  import { defineAgent, notice } from '@hopline/agent';
  import { playTurn } from '@hopline/agent/test-kit';
  const agent = defineAgent({ name: 'greeter', description: 'Greets', async *run(turn) { yield notice('thinking'); yield 'Hello, '; yield turn.text; } });
  const { text, notices, end } = await playTurn(agent, 'Ada');
  console.log(JSON.stringify([text, notices, end.state]));
`;

test('an agent from the package answers on the Node of the tests and on Node 20', { timeout: 60_000 }, async t => {
  if (!isInstalled(t)) return;
  const expected = '["Hello, Ada",["thinking"],"TASK_STATE_COMPLETED"]\n';
  assert.equal(await printed(PLAY), expected);
  const node20 = await oldestNode();
  if (node20 === undefined) t.diagnostic('no Node 20 on PATH: not run there');
  else assert.equal(await printed(PLAY, node20), expected);
});

test('the lines of the READMEs compile under strict TypeScript, declarations of the packages included', {
  timeout: 120_000,
}, async t => {
  if (!isInstalled(t)) return;
  mkdirSync(join(folder, 'src'), { recursive: true });
  writeFileSync(join(folder, 'src/my-agent.ts'), readmeCode('@hopline/agent/README.md', 'defineAgent('));
  writeFileSync(join(folder, 'src/ask.ts'), readmeCode('@hopline/client/README.md', 'createClient('));
  const compilerOptions = {
    strict: true,
    module: 'nodenext',
    target: 'es2022',
    lib: ['es2023', 'dom', 'esnext.disposable'],
    noEmit: true,
  };
  writeFileSync(
    join(folder, 'tsconfig.json'),
    JSON.stringify({
      compilerOptions: {
        ...compilerOptions,
        skipLibCheck: true,
        types: ['node'],
        typeRoots: [join(ROOT, 'node_modules/@types')],
      },
      include: ['src'],
    }),
  );
  await run(join(ROOT, 'node_modules/.bin/tsc'), ['-p', folder, '--pretty', 'false']).catch(error => assert.fail(error.stdout));
});

test('the README of the client, run as it stands, prints the answer', { timeout: 120_000 }, async t => {
  if (!isInstalled(t)) return;
  const path = join(folder, 'src/my-agent.ts');
  writeFileSync(path, readmeCode('@hopline/agent/README.md', 'defineAgent('));
  await using cluster = await Cluster.start({ agents: [{ name: 'greeter', adapter: 'module', path }] });
  const code = readmeCode('@hopline/client/README.md', 'createClient(').replace(/http:\/\/127\.0\.0\.1:8000\//g, cluster.url);
  for (const node of [process.execPath, await oldestNode()]) {
    if (node === undefined) continue;
    const { stdout } = await run(node, ['--input-type=module', '--eval', code], { cwd: folder, timeout: 60_000 });
    assert.match(stdout, /Hello, explain hopline!/);
  }
});

test('the command of the package asks a cluster, and standard output is the answer alone', { timeout: 120_000 }, async t => {
  if (!isInstalled(t)) return;
  const echo = { name: 'echo', adapter: 'module', path: join(folder, 'echo.mjs') };
  writeFileSync(echo.path, `export default { name: 'echo', description: 'Repeats', async *run(turn) { yield turn.text; } };`);
  await using cluster = await Cluster.start({ agents: [echo] });
  const bin = join(folder, 'node_modules/.bin/hopline');
  for (const node of [process.execPath, await oldestNode()]) {
    if (node === undefined) continue;
    const { stdout } = await run(node, [bin, 'ask', 'one two'], {
      cwd: folder,
      env: { ...process.env, HOPLINE_URL: cluster.url },
    });
    assert.equal(stdout.trimEnd(), 'one two');
  }
});

test('the command of the package replays a file and serves it, on Node 20 as well', { timeout: 120_000 }, async t => {
  if (!isInstalled(t)) return;
  const bin = join(folder, 'node_modules/.bin/hopline');
  const file = join(ROOT, 'packages/task-file/golden/version-1.hopline.jsonl');
  for (const node of [process.execPath, await oldestNode()]) {
    if (node === undefined) continue;
    const replayed = await run(node, [bin, 'replay', file, '--pace', 'max', '--json'], { cwd: folder }).catch(error => error);
    assert.equal(replayed.stdout.trim().split('\n').length, 4);
    const server = spawn(node, [bin, 'serve', file, '--port', '0', '--pace', 'max', '--json'], { cwd: folder });
    try {
      const [line] = (await once(server.stdout, 'data')) as [Buffer];
      const { url } = JSON.parse(line.toString()) as { url: string };
      const asked = await run(node, [bin, 'ask', 'explain hopline', '--url', url], { cwd: folder }).catch(error => error);
      assert.match(asked.stdout, /^How it works/);
    } finally {
      server.kill('SIGINT');
      await once(server, 'close');
    }
  }
});

test('a new agent, made by the command of the package, installs, passes its test and its types', {
  timeout: INSTALL_MS_MAX,
}, async t => {
  if (!isInstalled(t)) return;
  await run(join(folder, 'node_modules/.bin/hopline'), ['new', 'agent', 'my-first'], { cwd: folder });
  const cwd = join(folder, 'my-first');
  const wanted = JSON.parse(readFileSync(join(cwd, 'package.json'), 'utf8'));
  assert.deepEqual(
    [wanted.dependencies['@hopline/agent'], wanted.devDependencies['@hopline/cli']],
    [version(), version()],
    'pinned to the version of the command',
  );
  const tarballs = ['agent', 'cli'].map(name => `../tarballs/hopline-${name}-${version()}.tgz`);
  // In a test run `node --test` prints for its parent, not for a person.
  const { NODE_TEST_CONTEXT: _, ...env } = process.env;
  const npm = (...args: string[]) => run('npm', args, { cwd, env, timeout: INSTALL_MS_MAX });
  await npm('install', '--no-audit', '--no-fund', '--prefer-offline', ...tarballs);
  assert.match((await npm('test')).stdout, /pass 1\n/);
  await npm('run', 'check');
  await assert.rejects(run(join(folder, 'node_modules/.bin/hopline'), ['new', 'agent', 'my-first'], { cwd: folder }), {
    stderr: /the folder my-first is not empty/,
  });
});

test('npx and a global install run the command; it knows its version, and its hints print what works there', {
  timeout: 2 * INSTALL_MS_MAX,
}, async t => {
  if (!isInstalled(t)) return;
  const tarball = join(folder, 'tarballs', `hopline-cli-${version()}.tgz`);
  const elsewhere = join(folder, 'elsewhere');
  mkdirSync(elsewhere);
  const npm = (...args: string[]) =>
    run('npm', [...args, '--prefer-offline', '--no-audit', '--no-fund'], { cwd: elsewhere, timeout: INSTALL_MS_MAX });
  await npm('install', '--global', '--prefix', join(folder, 'global'), tarball);
  const { npm_command: _, ...terminal } = process.env;
  const globally = (...args: string[]) => run(join(folder, 'global/bin/hopline'), args, { cwd: elsewhere, env: terminal });
  assert.equal((await globally('--version')).stdout, `${version()}\n`);
  assert.match((await globally('completion', 'bash')).stdout, /complete .* hopline\n$/);
  const unknown = await globally('what').catch((error: { stderr: string }) => error);
  assert.equal(unknown.stderr, 'hopline: unknown command what; see hopline --help\n');
  const env = { ...terminal, npm_command: 'start' };
  const script = await run(join(folder, 'global/bin/hopline'), ['what'], { cwd: elsewhere, env }).catch(error => error);
  assert.match(
    script.stderr,
    /see npx @hopline\/cli --help\n/,
    'a script of a package: its commands are not on the PATH of a terminal',
  );
  const asked = ['exec', '--yes', `--package=${tarball}`, '--', 'hopline'];
  const npx = (...args: string[]) => run('npm', [...asked, ...args], { cwd: elsewhere, timeout: INSTALL_MS_MAX });
  assert.equal((await npx('--version')).stdout, `${version()}\n`);
  const hint = await npx('what').catch((error: { stderr: string }) => error);
  assert.match(hint.stderr, /unknown command what; see npx @hopline\/cli --help\n/);
});

test('in a checkout `npm run -s` prints no banner', { timeout: 120_000 }, async () => {
  const { stdout } = await run('npm', ['run', '-s', 'hopline', '--', '--version'], { cwd: ROOT });
  assert.equal(stdout, `${version()}\n`);
});

test('the client bundles for a page: no module of Node, and its size is known', { timeout: 60_000 }, async t => {
  if (!isInstalled(t)) return;
  const { outputFiles } = await build({
    stdin: { contents: `export { createClient } from '@hopline/client';`, resolveDir: folder },
    bundle: true,
    format: 'esm',
    minify: true,
    platform: 'browser',
    write: false,
  });
  const { text } = outputFiles[0]!;
  assert.doesNotMatch(text, /from\s*["']node:/);
  t.diagnostic(`client bundled and minified: ${(text.length / 1024).toFixed(0)} KiB`);
});
