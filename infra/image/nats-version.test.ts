import assert from 'node:assert/strict';
import { test } from 'node:test';
import { TAG_DEFAULT, versionHint } from './nats-version.ts';

test('for an image of another nats-server version, the options that chart and compose file need are printed', () => {
  assert.equal(versionHint(TAG_DEFAULT), undefined);
  const hint = versionHint('2.15.0') ?? '';
  for (const part of [`nats:${TAG_DEFAULT}`, '--set nats.image.tag=2.15.0', 'HOPLINE_NATS_VERSION=2.15.0'])
    assert.ok(hint.includes(part), hint);
});
