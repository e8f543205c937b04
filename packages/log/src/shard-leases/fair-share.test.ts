import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { type Leases, planShare as plan, type SharePlan } from './fair-share.ts';

const live = (...names: string[]) => new Set(names);
const owners = (list: (string | undefined)[]) =>
  new Map(list.flatMap((owner, shard) => (owner === undefined ? [] : [[shard, owner] as const])));

/** The plan of a process that works on all shards that it owns. */
function planShare(leases: Leases, instance: string): SharePlan {
  return plan(leases, instance, new Set([...leases.owners].flatMap(([shard, owner]) => (owner === instance ? [shard] : []))));
}

test('a shard whose lease names this process but which is not running is taken, within the fair share', () => {
  const leases = { shards: 4, live: live('me', 'other'), leaving: 0, owners: owners(['me', 'me', 'me', 'other']) };
  assert.deepEqual(plan(leases, 'me', new Set([2])), { take: [0], release: [1] });
  assert.deepEqual(plan(leases, 'me', new Set()), { take: [0, 1], release: [2] });
});

test('a single live process takes all free shards and the shards of dead processes', () => {
  const leases = { shards: 4, live: live('me'), leaving: 0, owners: owners([undefined, 'dead', 'me', undefined]) };
  assert.deepEqual(planShare(leases, 'me'), { take: [0, 1, 3], release: [] });
});

test('a process releases shards beyond its fair share, and takes none from live processes', () => {
  assert.deepEqual(
    planShare({ shards: 4, live: live('me', 'other'), leaving: 0, owners: owners(['me', 'me', 'me', 'other']) }, 'me'),
    {
      take: [],
      release: [2],
    },
  );
  assert.deepEqual(
    planShare({ shards: 4, live: live('me', 'other'), leaving: 0, owners: owners(['other', 'other', 'other', 'other']) }, 'me'),
    {
      take: [],
      release: [],
    },
  );
});

test('the shards of a process that stops are divided among the others, each as soon as it is released', () => {
  const leases = { shards: 4, live: live('me', 'other'), leaving: 1 };
  assert.deepEqual(planShare({ ...leases, owners: owners(['me', 'me', 'other', 'other']) }, 'me'), { take: [], release: [] });
  assert.deepEqual(planShare({ ...leases, owners: owners(['me', 'me', undefined, 'other']) }, 'me'), { take: [2], release: [] });
});

test('after any joins and deaths, three rounds leave every shard with one owner and no process above the fair share', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 32 }),
      fc.integer({ min: 1, max: 6 }),
      fc.array(fc.integer({ min: -1, max: 8 }), { minLength: 32, maxLength: 32 }),
      (shards, members, drawn) => {
        const names = Array.from({ length: members }, (_, index) => `m${index}`);
        const owned = owners(drawn.slice(0, shards).map(owner => (owner < 0 ? undefined : `m${owner}`)));
        for (let round = 0; round < 3; round += 1) {
          for (const name of names) {
            const { take, release } = planShare({ shards, live: live(...names), leaving: 0, owners: owned }, name);
            for (const shard of release) owned.delete(shard);
            for (const shard of take) owned.set(shard, name);
          }
        }
        assert.equal(owned.size, shards);
        for (const name of names) {
          const count = [...owned.values()].filter(owner => owner === name).length;
          assert.ok(count <= Math.ceil(shards / members), `${name} owns ${count}`);
        }
      },
    ),
  );
});
