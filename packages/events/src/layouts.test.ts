import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Layouts, timeOfTaskId } from './layouts.ts';
import { fnv1a32, shardOf, shardToken } from './subjects.ts';

const BEGINS = 1_764_000_000_000;
const LAYOUTS = new Layouts([
  { begins: 0, shards: 16, groups: 1 },
  { begins: BEGINS, shards: 256, groups: 4 },
  { begins: BEGINS + 1_000, shards: 8, groups: 3 },
]);

/** An id as a server makes it at that time; `n` makes several. */
function idAt(timeMs: number, n = 0): string {
  const time = timeMs.toString(16).padStart(12, '0');
  return `${time.slice(0, 8)}-${time.slice(8)}-7abc-8def-${n.toString(16).padStart(12, '0')}`;
}

test('the time of a task id is read from a UUID of version 7; other ids have no time', () => {
  assert.equal(timeOfTaskId(idAt(BEGINS)), BEGINS);
  assert.equal(timeOfTaskId(idAt(BEGINS).toUpperCase()), BEGINS);
  for (const id of ['task', '7', idAt(BEGINS).replace('-7', '-4'), `${idAt(BEGINS)}0`, idAt(BEGINS).replaceAll('-', '7')])
    assert.equal(timeOfTaskId(id), undefined, id);
});

test('a task is in the layout that was valid at the time in its id, and without a time in the first layout', () => {
  const rangeOf = (ids: string[]) => {
    const shards = ids.map(id => LAYOUTS.shardOf(id));
    return [Math.min(...shards) >= 0, Math.min(...shards), Math.max(...shards)].slice(1);
  };
  const many = (timeMs: number) => Array.from({ length: 5_000 }, (_, n) => idAt(timeMs, n));
  assert.deepEqual(rangeOf(many(BEGINS - 1)), [0, 15]);
  assert.deepEqual(rangeOf(many(BEGINS)), [16, 271]);
  assert.deepEqual(rangeOf(many(BEGINS + 999)), [16, 271]);
  assert.deepEqual(rangeOf(many(BEGINS + 1_000)), [272, 279]);
  assert.deepEqual(rangeOf(Array.from({ length: 500 }, (_, n) => `t${n}`)), [0, 15]);
});

test('a task of the first layout has the shard that it has in a log with one layout', () => {
  for (const id of ['t', idAt(1), idAt(BEGINS - 1)]) {
    assert.equal(shardOf(id, LAYOUTS), fnv1a32(id) % 16);
    assert.equal(Layouts.one(16).shardOf(id), fnv1a32(id) % 16);
  }
});

test('the numbers of a layout’s groups follow the groups of earlier layouts', () => {
  assert.deepEqual([LAYOUTS.shards, LAYOUTS.groups], [280, 8]);
  assert.deepEqual(
    [0, 15, 16, 17, 20, 271, 272, 274, 279].map(shard => LAYOUTS.groupOf(shard)),
    [0, 0, 1, 2, 1, 4, 5, 7, 6],
  );
  assert.deepEqual(LAYOUTS.shardsOf(6), [273, 276, 279]);
  const all = Array.from({ length: LAYOUTS.groups }, (_, group) => LAYOUTS.shardsOf(group)).flat();
  assert.deepEqual(
    all.sort((one, other) => one - other),
    Array.from({ length: 280 }, (_, shard) => shard),
  );
  assert.deepEqual(
    [16, 272, 280, 8, 256].map(shards => LAYOUTS.hadShards(shards)),
    [true, true, true, false, false],
  );
  assert.equal(shardToken(279), '117');
});

test('impossible layouts are refused with the limit', () => {
  const first = { begins: 0, shards: 16, groups: 1 };
  const refused = (list: object[], message: RegExp) =>
    assert.throws(() => new Layouts(list as (typeof first)[]), { name: 'RangeError', message });
  refused([], /1 to 8 layouts/);
  refused([{ ...first, shards: 257 }], /from 1 to 256/);
  refused([{ ...first, groups: 17 }], /from 1 to 16/);
  refused([{ ...first, shards: 2, groups: 3 }], /3 stream groups need at least as many shards, and the layout has 2/);
  refused([first, { ...first, begins: 0 }], /after the one before it/);
  refused(
    [first, ...[1, 2, 3, 4].map(begins => ({ begins, shards: 256, groups: 1 }))],
    /together may have 1024 shards, not 1040/,
  );
});
