import assert from 'node:assert/strict';
import { test } from 'node:test';
import { JSON_DEPTH_MAX } from '@hopline/a2a';
import { jsonOf, jsonOfAnyDepth } from './request-values.ts';

const nested = (levels: number) => Buffer.from(`${'{"a":'.repeat(levels)}1${'}'.repeat(levels)}`);

test('a body may nest JSON_DEPTH_MAX levels; a deeper one is refused, whatever its depth', () => {
  assert.equal(JSON.stringify(jsonOf(nested(JSON_DEPTH_MAX))), nested(JSON_DEPTH_MAX).toString());
  for (const levels of [JSON_DEPTH_MAX + 1, 100_000]) {
    assert.throws(() => jsonOf(nested(levels)), {
      code: 'INVALID_PARAMS',
      message: /the body must not nest deeper than 64 levels/,
    });
    assert.ok(jsonOfAnyDepth(nested(levels)));
  }
});

test('a number beyond the range of a double is refused, because it would be stored as null', () => {
  const body = (number: string) => Buffer.from(`{"data":[{"n":${number},"t":"1e999"}]}`);
  for (const number of ['1e309', '-1E+400', '9'.repeat(310), `0.1e${'9'.repeat(400)}`])
    assert.throws(() => jsonOfAnyDepth(body(number)), { code: 'PARSE_ERROR', message: /beyond the range of a double/ }, number);
  for (const number of ['1.7976931348623157e308', '1e-400', '0e999', '12345678901234567890'])
    assert.deepEqual(jsonOfAnyDepth(body(number)), { data: [{ n: Number(number), t: '1e999' }] });
});
