import assert from 'node:assert/strict';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { playTurn } from '@hopline/agent/test-kit';
import { importAs, loadModuleAgent } from './module-agent.ts';

/** A folder outside any project, with these files. */
async function folderWith(t: TestContext, files: Record<string, string>): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'module-agent-'));
  t.after(() => rm(folder, { recursive: true }));
  for (const [name, text] of Object.entries(files)) await writeFile(join(folder, name), text);
  return folder;
}

test('a module outside any project imports the kit, or exports a plain definition', async t => {
  const folder = await folderWith(t, {
    'made.ts': `import { defineAgent, type AgentTurn } from '@hopline/agent';
      export const one = defineAgent({ name: 'one', description: 'd', async *run(turn: AgentTurn) { yield 'one ' + turn.text; } });`,
    'plain.mjs': `export default { name: 'plain', description: 'd', async *run(turn) { yield 'plain ' + turn.text; } };`,
  });
  const made = await loadModuleAgent({ path: './made.ts', export: 'one', folder });
  assert.equal((await playTurn(made, 'x')).text, 'one x');
  const plain = await loadModuleAgent({ path: join(folder, 'plain.mjs'), folder: '/nowhere' });
  assert.equal(plain.name, 'plain');
  assert.equal((await playTurn(plain, 'x')).text, 'plain x');
});

test('a module that a compiler has written as CommonJS exports what its author wrote', async t => {
  const made = (name: string) => `{ name: '${name}', description: 'd', async *run() { yield '${name}'; } }`;
  const folder = await folderWith(t, {
    'compiled.cjs': `'use strict';
      Object.defineProperty(exports, '__esModule', { value: true });
      exports.other = ${made('other')};
      exports.default = ${made('first')};`,
    'written.cjs': `module.exports = ${made('written')};`,
  });
  const nameOf = async (path: string, name?: string) =>
    (await loadModuleAgent({ path, folder, ...(name && { export: name }) })).name;
  assert.deepEqual(
    [await nameOf('compiled.cjs'), await nameOf('compiled.cjs', 'other'), await nameOf('written.cjs')],
    ['first', 'other', 'written'],
  );
  await assert.rejects(nameOf('compiled.cjs', 'third'), /does not export third; it has other, default; /);
});

test('a module that fails to load, or exports no agent, rejects with one sentence', async t => {
  const folder = await folderWith(t, {
    'broken.ts': 'export default {',
    'imports.ts': `import 'not-installed-anywhere';`,
    'other.ts': 'export const a = 1, b = 2;',
    'wrong.ts': `export default { name: 'x', description: 'd' };`,
    'silent.ts': `export default { run: async function* () {}, skills: async () => [], close: async () => {} };`,
  });
  const rejects = (path: string, sentence: RegExp, name?: string) =>
    assert.rejects(loadModuleAgent({ path, folder, ...(name && { export: name }) }), { message: sentence });
  await rejects('missing.ts', /^missing\.ts does not exist in /);
  await rejects('broken.ts', /^broken\.ts cannot be loaded$/);
  await rejects('imports.ts', /^imports\.ts cannot be loaded$/);
  await rejects('other.ts', /^other\.ts does not export default; it has a, b; `export` \(--export NAME\) chooses one$/);
  await rejects('other.ts', /^other\.ts: export a is not an agent: the definition is a number$/, 'a');
  await rejects('silent.ts', /^silent\.ts: export default is not an agent: description must be a string$/);
  await rejects('wrong.ts', /^wrong\.ts: export default is not an agent: run is undefined; it must be a generator: async \*run/);
});

test('a package resolves as it does for the module that imports it', async t => {
  const folder = await folderWith(t, { 'graph.ts': '' });
  const own = join(folder, 'node_modules', 'only-there');
  await mkdir(own, { recursive: true });
  await writeFile(join(own, 'package.json'), '{"name":"only-there","exports":{"./part":"./part.mjs"}}');
  await writeFile(join(own, 'part.mjs'), 'export const mine = 7;');
  assert.equal((await importAs('only-there/part', { path: './graph.ts', folder }))?.mine, 7);
  assert.equal(await importAs('only-there/part', { path: './graph.ts', folder: '/' }), undefined);
});
