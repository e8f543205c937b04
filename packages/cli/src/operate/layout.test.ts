import assert from 'node:assert/strict';
import { tmpdir } from 'node:os';
import { test } from 'node:test';
import { runWith } from '../run-with.test-kit.ts';

test('an impossible layout is a usage error of one sentence, before NATS is asked', async () => {
  const refusals = {
    '999/1': 'shards must be a whole number from 1 to 256',
    '64/0': 'stream groups must be a whole number from 1 to 16',
    '2/3': '3 stream groups need at least as many shards, and the layout has 2',
    '64/': 'layout requires SHARDS/GROUPS, such as 64/4, not 64/',
  };
  for (const [size, refusal] of Object.entries(refusals))
    assert.deepEqual(await runWith(tmpdir(), ['layout', size]), { code: 2, out: '', err: `hopline: ${refusal}\n` }, size);
});
