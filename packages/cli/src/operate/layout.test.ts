import assert from 'node:assert/strict';
import { tmpdir } from 'node:os';
import { test } from 'node:test';
import { REFUSED_ORIGIN } from '../../../../test/kit/refused.ts';
import { runWith } from '../run-with.test-kit.ts';
import { lineOf } from './layout.ts';

test('an impossible layout is a usage error of one sentence, reported before NATS is contacted', async () => {
  const refusals = {
    '999/1': 'shards must be a whole number from 1 to 256',
    '64/0': 'stream groups must be a whole number from 1 to 16',
    '2/3': '3 stream groups need at least as many shards, and the layout has 2',
    '64/': 'layout requires SHARDS/GROUPS, such as 64/4, not 64/',
  };
  for (const [size, refusal] of Object.entries(refusals))
    assert.deepEqual(await runWith(tmpdir(), ['layout', size]), { code: 2, out: '', err: `hopline: ${refusal}\n` }, size);
});

test('the line of a layout has the singular for one shard or one stream group', () => {
  assert.equal(lineOf({ begins: 0, shards: 256, groups: 1 }), '256 shards in 1 stream group from the beginning on');
  assert.equal(lineOf({ begins: 0, shards: 1, groups: 1 }), '1 shard in 1 stream group from the beginning on');
  assert.equal(lineOf({ begins: 0, shards: 64, groups: 4 }), '64 shards in 4 stream groups from the beginning on');
  const begins = Date.UTC(2026, 10, 28, 9);
  assert.match(lineOf({ begins, shards: 64, groups: 4 }), /from 2026-11-28T09:00:00.000Z on$/);
});

test('when NATS is away the command without a layout reports only that it cannot read', async () => {
  const { code, err } = await runWith(tmpdir(), ['layout'], { NATS_URL: REFUSED_ORIGIN.replace('http', 'nats') });
  assert.equal(code, 3);
  assert.match(err, /the layouts cannot be read: /);
  assert.doesNotMatch(err, /added/);
});

test('a log that cannot be opened is reported with its cause, within seconds', async () => {
  const startedAt = performance.now();
  const { code, err } = await runWith(tmpdir(), ['trace', '--nats', 't'], { NATS_URL: REFUSED_ORIGIN.replace('http', 'nats') });
  assert.equal(code, 3);
  assert.match(err, /the log cannot be opened: .*127\.0\.0\.1:2/);
  assert.ok(performance.now() - startedAt < 15_000);
});
