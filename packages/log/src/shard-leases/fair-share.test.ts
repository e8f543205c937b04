import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { planShare } from './fair-share.ts';

const live = (...names: string[]) => new Set(names);
const owners = (list: (string | undefined)[]) =>
  new Map(list.flatMap((owner, shard) => (owner === undefined ? [] : [[shard, owner] as const])));

test('alone it takes all shards, and those of the dead', () => {
  const leases = { shards: 4, live: live('me'), owners: owners([undefined, 'dead', 'me', undefined]) };
  assert.deepEqual(planShare(leases, 'me'), { take: [0, 1, 3], release: [] });
});

test('what is more than the fair share is let go, and nothing is taken from the living', () => {
  assert.deepEqual(planShare({ shards: 4, live: live('me', 'other'), owners: owners(['me', 'me', 'me', 'other']) }, 'me'), {
    take: [],
    release: [2],
  });
  assert.deepEqual(
    planShare({ shards: 4, live: live('me', 'other'), owners: owners(['other', 'other', 'other', 'other']) }, 'me'),
    {
      take: [],
      release: [],
    },
  );
});

test('whoever joins or dies: rounds of all that live lead to every shard owned by one, nobody above the fair share', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 32 }),
      fc.integer({ min: 1, max: 6 }),
      fc.array(fc.integer({ min: -1, max: 8 }), { minLength: 32, maxLength: 32 }),
      (shards, members, drawn) => {
        const names = Array.from({ length: members }, (_, index) => `m${index}`);
        const owned = owners(drawn.slice(0, shards).map(owner => (owner < 0 ? undefined : `m${owner}`)));
        for (let round = 0; round < 3; round += 1) {
          for (const me of names) {
            const { take, release } = planShare({ shards, live: live(...names), owners: owned }, me);
            for (const shard of release) owned.delete(shard);
            for (const shard of take) owned.set(shard, me);
          }
        }
        assert.equal(owned.size, shards);
        for (const me of names) {
          const count = [...owned.values()].filter(owner => owner === me).length;
          assert.ok(count <= Math.ceil(shards / members), `${me} owns ${count}`);
        }
      },
    ),
  );
});
