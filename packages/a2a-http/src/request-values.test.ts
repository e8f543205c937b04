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
