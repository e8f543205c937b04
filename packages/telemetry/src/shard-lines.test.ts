import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createLogger } from './logger.ts';
import { SHARD_LINE_MS, ShardLines } from './shard-lines.ts';

test('the shards of a takeover are logged in one line, and so are the shards of a release', t => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const lines: Record<string, unknown>[] = [];
  const destination = { write: (line: string) => void lines.push(JSON.parse(line)) };
  const shards = new ShardLines(createLogger({ service: 'relay', instance: 'test', level: 'info', destination }));
  for (const shard of [12, 3, 1, 2, 0]) shards.acquired(shard, 'lost');
  shards.acquired(7, 'released');
  t.mock.timers.tick(SHARD_LINE_MS - 1);
  assert.equal(lines.length, 0);
  t.mock.timers.tick(1);
  const seen = () => lines.splice(0).map(({ msg, shards, shard_list, cause }) => [msg, shards, shard_list, cause]);
  assert.deepEqual(seen(), [
    ['shards acquired', 5, '0-3,12', 'lost'],
    ['shards acquired', 1, '7', 'released'],
  ]);
  shards.released(3);
  shards.released(2);
  shards.flush();
  assert.deepEqual(seen(), [['shards released', 2, '2-3', undefined]]);
  t.mock.timers.tick(SHARD_LINE_MS);
  assert.deepEqual(seen(), []);
});
