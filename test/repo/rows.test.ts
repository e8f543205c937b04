import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { projectFiles, read } from './source-files.ts';

/** Rows of the contract: how many each source document has. */
const ROWS = { S0: 47, S1: 32, S2: 41, S3: 33, S4: 44 } as const;

type Row = {
  /** How the behaviour deviates from the source document, where it does. */
  bent?: string;
};

const rows: Record<string, Row> = JSON.parse(readFileSync(new URL('rows.json', import.meta.url), 'utf8'));

const known = Object.entries(ROWS).flatMap(([document, count]) =>
  Array.from({ length: count }, (_, index) => `${document}-${index + 1}`),
);

/** Test titles end with the rows they prove: `first frame precedes any agent work [S0-2 S0-3]`. Rows to titles, as `file > title`. */
function claims(): Map<string, string[]> {
  const found = new Map<string, string[]>();
  for (const path of projectFiles().filter(file => file.endsWith('.test.ts'))) {
    for (const match of read(path).matchAll(/\b(?:test|it)\(\s*(['"`])((?:\\.|(?!\1).)*?) \[((?:[SC][0-4]?-\d+ ?)+)\]\1/g)) {
      const title = match[2]!.replaceAll(/\\(.)/g, '$1');
      for (const row of match[3]!.split(' ').filter(id => id.startsWith('S'))) {
        found.set(row, [...(found.get(row) ?? []), `${path} > ${title}`]);
      }
    }
  }
  return found;
}

test('rows.json lists exactly the rows of the contract', () => {
  assert.deepEqual(Object.keys(rows).sort(), [...known].sort());
});

test('every row of the contract is named by a test, and every named row exists', t => {
  const proven = claims();
  assert.deepEqual(
    known.filter(row => !proven.has(row)),
    [],
    'rows without a test',
  );
  assert.deepEqual(
    [...proven.keys()].filter(row => !known.includes(row)),
    [],
    'named rows that are not in the contract',
  );
  t.diagnostic(`contract rows proven: ${proven.size} of ${known.length}`);
});
