import assert from 'node:assert/strict';
import { test } from 'node:test';
import { DOCUMENTS, decisions, proofs, rows } from './contract.ts';
import { contractDocument } from './contract-document.ts';
import { projectFiles, read } from './source-files.ts';

const known = Object.entries(DOCUMENTS).flatMap(([id, { rows: count }]) =>
  Array.from({ length: count }, (_, index) => `${id}-${index + 1}`),
);
const DECISIONS = 34;

test('rows.json lists exactly the rows of the documents, in order', () => {
  assert.deepEqual(Object.keys(rows), known);
  for (const [id, row] of Object.entries(rows)) assert.match(row.requirement, /^[A-Z`].+\.$/, id);
});

test('decisions.json lists exactly the decisions, and each refers to known rows', () => {
  assert.deepEqual(
    Object.keys(decisions),
    Array.from({ length: DECISIONS }, (_, index) => `C-${index + 1}`),
  );
  for (const [id, { rows: related }] of Object.entries(decisions)) {
    assert.notEqual(related.length, 0, id);
    for (const row of related) assert.ok(known.includes(row), `${id} refers to ${row}`);
  }
});

test('every row is proven by a test, and every row or decision that a title names exists', t => {
  const proven = proofs();
  assert.deepEqual(
    known.filter(row => !proven.has(row)),
    [],
    'rows without a test',
  );
  assert.deepEqual(
    [...proven.keys()].filter(id => !known.includes(id) && !(id in decisions)),
    [],
    'titles that name unknown rows',
  );
  t.diagnostic(`contract rows proven: ${known.length}`);
});

test('every title with rows at its end is found', () => {
  const found = new Set([...proofs().values()].flat().map(proof => `${proof.path} ${proof.title}`)).size;
  const titles = projectFiles()
    .filter(path => path.endsWith('.test.ts'))
    .flatMap(path => [...read(path).matchAll(/ \[(?:(?:S\d|C)-\d+ ?)+\](['"`]),/g)]);
  assert.equal(found, titles.length, 'a title is not an argument of test(), or two tests of a file share one');
});

test('docs/contract.md is up to date', () => {
  // Does not use `equal`, whose message would contain both documents.
  assert.ok(read('docs/contract.md') === contractDocument(), 'out of date: run node test/repo/write-contract.ts');
});
