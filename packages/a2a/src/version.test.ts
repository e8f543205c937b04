import assert from 'node:assert/strict';
import { test } from 'node:test';
import { A2AError } from './errors.ts';
import { namedDialect } from './version.ts';

test('the header precedes the query; absent or empty is none; the patch is ignored [C-6]', () => {
  const cases: [string | undefined, string | undefined, string | undefined][] = [
    [undefined, undefined, undefined],
    ['', undefined, undefined],
    ['  ', '', undefined],
    ['0.3', undefined, '0.3'],
    ['1.0', undefined, '1.0'],
    ['1.0.1', undefined, '1.0'],
    [undefined, '1.0', '1.0'],
    [undefined, '1.0.12', '1.0'],
    ['0.3', '1.0', '0.3'],
    ['0.1', undefined, 'legacy'],
  ];
  for (const [header, query, dialect] of cases) assert.equal(namedDialect(header, query), dialect, `${header} ${query}`);
  for (const version of ['2.0', '1', '1.1', '0.2', 'v1.0', '1.0.x', '1.0, 0.3', '1.0.0.0', '9'.repeat(4000)]) {
    assert.throws(
      () => namedDialect(version, undefined),
      (error: unknown) => error instanceof A2AError && error.row.rpc === -32009 && !error.message.includes('9'.repeat(8)),
      version,
    );
  }
});
