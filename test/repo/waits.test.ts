import assert from 'node:assert/strict';
import { test } from 'node:test';
import { projectFiles, read } from './source-files.ts';

/** A loop that only waits, without a clock in its condition. The code of an agent (`existsSync`), and work in a loop (`if`), are not waits. */
const UNBOUNDED =
  /\bwhile \((?!.*(?:\bnow\(\)|existsSync|\) if \()).*\)\s*(?:\{\s*)?await (?:new Promise|tick\(|sleep\(|delay\(|setImmediate\(|setTimeout\()/g;
/** The timeout of a test or of a hook, in milliseconds. That of a request or of a process is inside of a call. */
const TEST_TIMEOUT =
  /(?:\b(?:test|suite|before|after)\(.*\btimeout: |^\s*timeout: |^const \w+ = \{.*\btimeout: )([\d_]+)(?![\d_]* \*)/gm;
/** PATIENCE_MS of test/kit/until.ts. */
const PATIENCE_MS = 60_000;

const unboundedWaits = (text: string) => [...text.matchAll(UNBOUNDED)].map(([found]) => found.replaceAll(/\s+/g, ' '));
const shortTimeouts = (text: string) =>
  [...text.matchAll(TEST_TIMEOUT)].map(([, ms]) => Number(ms!.replaceAll('_', ''))).filter(ms => ms <= PATIENCE_MS);

const tests = projectFiles().filter(path => /\.test(?:-kit)?\.(?:tsx?|mjs)$/.test(path) && !path.endsWith('/waits.test.ts'));

test('tests wait for a condition with `until`, which fails and names it, not in a loop without a bound', () => {
  assert.deepEqual(
    tests.flatMap(path => unboundedWaits(read(path)).map(wait => `${path}: ${wait}`)),
    [],
  );
});

test('a test has a longer timeout than `until`, which would otherwise hide the name of the condition; a busy machine needs it, too', () => {
  assert.ok(tests.filter(path => read(path).match(TEST_TIMEOUT) !== null).length > 100);
  assert.deepEqual(
    tests.flatMap(path => shortTimeouts(read(path)).map(ms => `${path}: ${ms} ms`)),
    [],
  );
});

test('waits without a bound are found, and those with one are not', () => {
  for (const text of [
    'while (got.length < 5) await tick();',
    'if (isLate) while (await taken()) await sleep(20);',
    'while (!isMet()) {\n    await new Promise(resolve => setTimeout(resolve, 5));\n  }',
    'while (a || b)\n    await new Promise(setImmediate);',
  ])
    assert.equal(unboundedWaits(text).length, 1, text);
  for (const text of [
    'await until(() => got.length >= 5);',
    'while (!isMet() && performance.now() < end) await sleep(20);',
    'while (!isOver) if (await refused()) await sleep(100);',
    'while (sent < 2_000) {\n    await rig.text(id);\n  }',
  ])
    assert.equal(unboundedWaits(text).length, 0, text);
  assert.deepEqual(
    shortTimeouts("test('a', { timeout: 60_000 }, () => {});\n  timeout: 30_000,\nrun('b', { timeout: 10_000 });"),
    [60_000, 30_000],
  );
});
