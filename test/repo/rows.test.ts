import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { projectFiles, read } from './source-files.ts';

/** Rows of the contract: how many each source document has. */
const ROWS = { S0: 47, S1: 32, S2: 41, S3: 33, S4: 44 } as const;

type Row = {
  /** `file > name of the test`. */
  tests: string[];
  /** Where the behaviour was bent to fit the rest, how. */
  bent?: string;
};

const rows: Record<string, Row> = JSON.parse(readFileSync(new URL('rows.json', import.meta.url), 'utf8'));

const known = new Set(
  Object.entries(ROWS).flatMap(([document, count]) => Array.from({ length: count }, (_, index) => `${document}-${index + 1}`)),
);

/** Names of all tests in the project that claim rows, as `file > name`. */
function claims(): Map<string, string[]> {
  const found = new Map<string, string[]>();
  for (const path of projectFiles().filter(file => file.endsWith('.test.ts'))) {
    for (const match of read(path).matchAll(/\b(?:test|it)\(\s*(['"`])((?:S[0-4]-\d+ )+(?:\\.|(?!\1).)*)\1/g)) {
      const name = match[2]!.replaceAll(/\\(.)/g, '$1');
      found.set(`${path} > ${name}`, name.match(/\bS[0-4]-\d+\b/g)!);
    }
  }
  return found;
}

test('every row of rows.json exists in the contract and names tests that exist', () => {
  const tests = claims();
  for (const [row, { tests: named }] of Object.entries(rows)) {
    assert.ok(known.has(row), `there is no row ${row}`);
    assert.ok(named.length > 0, `${row} names no test`);
    for (const name of named) assert.ok(tests.get(name)?.includes(row), `${row} claims a test that does not exist: ${name}`);
  }
});

test('every test that claims a row stands in rows.json', () => {
  for (const [name, claimed] of claims()) {
    for (const row of claimed) assert.ok(rows[row]?.tests.includes(name), `${name} claims ${row}: add it to test/repo/rows.json`);
  }
});

test('how many rows are proven', t => {
  const proven = Object.keys(rows);
  const perDocument = Object.entries(ROWS).map(
    ([document, count]) => `${document} ${proven.filter(row => row.startsWith(`${document}-`)).length}/${count}`,
  );
  t.diagnostic(`contract rows proven: ${proven.length} of ${known.size} (${perDocument.join(', ')})`);
  assert.ok(proven.length <= known.size);
});
