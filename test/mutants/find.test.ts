import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { editedSource } from '../support/source-edits.ts';
import { nearestTests } from './nearest-tests.ts';
import { rowOf } from './report.ts';

const SUM = 'packages/task/src/sum.ts';
const SUM_TEST = 'packages/task/src/sum.test.ts';

function temporaryFolder(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), 'hopline-'));
  t.after(() => rmSync(folder, { recursive: true }));
  return folder;
}

const FILES = {
  [SUM]: 'export const sum = (a: number, b: number) => a + b;\n',
  [SUM_TEST]: `import assert from 'node:assert/strict';
    import { test } from 'node:test';
    import { sum } from './sum.ts';
    test('numbers are added', () => assert.equal(sum(2, 2), 4));`,
};

/** A checkout with one package, one test of it, and more files. */
function checkout(t: TestContext, more: Readonly<Record<string, string>> = {}): string {
  const root = temporaryFolder(t);
  const files = { ...FILES, ...more };
  for (const [path, content] of Object.entries(files)) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), content);
  }
  execFileSync('git', ['init', '--quiet'], { cwd: root });
  return root;
}

/** Plants an edit of the sum in a copy of the checkout, in a process of its own. Returns what finds it. */
function find(t: TestContext, root: string, to: string): unknown {
  const from = (file: string) => JSON.stringify(new URL(file, import.meta.url).href);
  const mutant = { name: 'one', edits: [{ file: SUM, from: 'a + b', to }], tests: [SUM_TEST] };
  const code = `import { findMutant } from ${from('find.ts')};
    import { TreeCopy } from ${from('tree-copy.ts')};
    using copy = new TreeCopy(${JSON.stringify(root)});
    const options = { seeds: 0, alwaysSimulates: false, runsCampaign: false };
    const findings = await findMutant(copy, 'task', ${JSON.stringify(mutant)}, options).catch(error => error.message);
    process.stdout.write(JSON.stringify(findings));`;
  // With this variable of the outer run, a nested test run executes nothing.
  const { NODE_TEST_CONTEXT: _, ...env } = process.env;
  const program = join(temporaryFolder(t), 'find.mjs');
  writeFileSync(program, code);
  return JSON.parse(execFileSync(process.execPath, [program], { env, encoding: 'utf8' }));
}

test('a defect is found by the first test that fails, and the checkout stays as it is', t => {
  const root = checkout(t);
  const before = readFileSync(join(root, SUM), 'utf8');
  const findings = find(t, root, 'a - b') as { by: string; what: string }[];
  assert.deepEqual(
    findings.map(({ by, what }) => [by, what]),
    [['unit tests', `${SUM_TEST}: numbers are added`]],
  );
  assert.equal(readFileSync(join(root, SUM), 'utf8'), before);
  assert.deepEqual(readdirSync(root).sort(), ['.git', 'packages']);
});

test('a test that also fails without the defect does not count as having found it', t => {
  const root = checkout(t);
  writeFileSync(join(root, SUM_TEST), "import { test } from 'node:test';\ntest('red', () => { throw new Error('why'); });");
  assert.equal(find(t, root, 'a - b'), `one: the unit tests fail without it, too: ${SUM_TEST}: red: why`);
});

test('a package runs only the tests that load the edited file, the nearest first', t => {
  const root = checkout(t, {
    'packages/task/package.json': '{ "name": "@hopline/task", "exports": { ".": "./src/index.ts", "./kit": "./src/kit.ts" } }',
    'packages/task/src/index.ts': "export { sum } from './sum.ts';",
    'packages/task/src/kit.ts': "export const kit = 'sum.ts';",
    'packages/task/src/a-kit.test.ts': "import { kit } from '@hopline/task/kit';",
    'packages/task/src/b-package.test.ts': "import { sum } from '@hopline/task';",
    'packages/task/src/c-thread.test.ts': "new Worker(new URL('./index.ts', import.meta.url));",
    'packages/task/src/d-types.test.ts': "import type { sum } from './sum.ts';",
    'packages/log/src/other-package.test.ts': "import { sum } from '@hopline/task';",
  });
  const tests = nearestTests(root, 'task', [{ file: SUM, from: 'a + b', to: 'a - b' }]);
  assert.deepEqual(tests, [SUM_TEST, 'packages/task/src/b-package.test.ts', 'packages/task/src/c-thread.test.ts']);
});

test('an edit whose text does not occur exactly once is an error, and so is one that changes nothing', () => {
  const edit = { file: 'a.ts', from: 'one', to: 'two' };
  assert.equal(editedSource('one three', [edit]), 'two three');
  assert.throws(() => editedSource('three', [edit]), /a\.ts does not have this text once: one/);
  assert.throws(() => editedSource('one one', [edit]), /a\.ts does not have this text once: one/);
  assert.throws(() => editedSource('one', [{ ...edit, to: 'one' }]), /changes nothing/);
});

test('a row shows everything that found a defect, the first finding first', () => {
  const findings = [
    { by: 'unit tests', what: 'a.test.ts: a | b', seconds: 1.2 },
    { by: 'simulator', what: 'seed 3: everything ends', seconds: 9 },
  ] as const;
  assert.equal(
    rowOf('log', { name: 'one' }, findings),
    '| log | one | unit tests; simulator | 2 s; 9 s | a.test.ts: a \\| b; seed 3: everything ends |',
  );
  assert.equal(rowOf('log', { name: 'one' }, []), '| log | one | **nothing** |  |  |');
});
