import assert from 'node:assert/strict';
import { test } from 'node:test';
import { artifactIdOf } from './decision.ts';

test('an artifact id is a UUID that depends only on task and lane [S0-31]', () => {
  const id = artifactIdOf('t1', 'plan');
  assert.match(id, /^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
  assert.equal(id, artifactIdOf('t1', 'plan'));
  assert.equal(new Set([id, artifactIdOf('t2', 'plan'), artifactIdOf('t1', 'answer')]).size, 3);
});
