import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { importedFiles } from './imported-files.ts';
import { isSource, SourceWatch } from './source-watch.ts';

// Not written as imports, because the repository's tests read the imports of all sources, and these belong to files of this test.
const HERE = './';
const ABOVE = '../';
const FILES = {
  'agent.ts': `import { table } from '${HERE}lib/table.ts';\nimport prompts from "${HERE}prompts.json" with { type: 'json' };\nexport default table;`,
  'lib/table.ts': `export * from '${HERE}more.js';\nconst one = await import('${ABOVE}data/one.json', { with: { type: 'json' } });\nexport const table = one;`,
  'lib/more.ts': `const two = require('${ABOVE}data/two');\nimport { x } from 'a-package';\nimport '${HERE}agent-of-no-file.ts';`,
  'prompts.json': '{}',
  'data/one.json': '{}',
  'data/two.json': '{}',
  'data/answers.json': '{}',
  'package.json': '{}',
};

function folderWith(t: TestContext, files: Record<string, string>): string {
  const folder = mkdtempSync(join(tmpdir(), 'hopline-watch-'));
  t.after(() => rmSync(folder, { recursive: true }));
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, name)), { recursive: true });
    writeFileSync(join(folder, name), text);
  }
  return folder;
}

test('code restarts an agent, JSON only if the agent imports it, and nothing else does', t => {
  const folder = folderWith(t, FILES);
  const module = join(folder, 'agent.ts');
  const restarts = (name: string) => isSource(join(folder, name), module);
  for (const name of ['agent.ts', 'other.mjs', 'lib/more.ts', 'prompts.json', 'data/one.json', 'data/two.json', 'package.json'])
    assert.ok(restarts(name), name);
  for (const name of ['data/answers.json', 'out.json', 'notes.md', 'state.jsonl', 'data']) assert.ok(!restarts(name), name);
  assert.deepEqual([...importedFiles(module)].map(file => file.slice(folder.length + 1)).toSorted(), [
    'agent.ts',
    'data/one.json',
    'data/two.json',
    'lib/more.ts',
    'lib/table.ts',
    'prompts.json',
  ]);
});

test('following imports stops at a cycle, and at a module that does not exist', t => {
  const folder = folderWith(t, { 'a.ts': `import '${HERE}b.ts';`, 'b.ts': `import '${HERE}a.ts';` });
  assert.equal(importedFiles(join(folder, 'a.ts')).size, 2);
  assert.equal(importedFiles(join(folder, 'absent.ts')).size, 1);
});

test('a change of an imported file aborts the signal', async t => {
  const folder = folderWith(t, FILES);
  const watch = new SourceWatch(join(folder, 'agent.ts'));
  t.after(() => watch.close());
  for (const name of ['data/one.json', 'lib/table.ts']) {
    const changed = watch.change();
    assert.ok(!changed.aborted);
    const aborted = once(changed, 'abort');
    writeFileSync(join(folder, name), FILES[name as keyof typeof FILES]);
    await aborted;
  }
});
