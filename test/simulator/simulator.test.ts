import assert from 'node:assert/strict';
import { test } from 'node:test';
import { scenarioOf } from './scenario.ts';
import { simulate } from './simulate.ts';

const DETERMINISM_SEEDS = 20;
const QUIET_SEEDS = 50;

test('the same seed gives the same run, to the last event', async () => {
  const seeds = Array.from({ length: DETERMINISM_SEEDS }, (_, index) => index + 1);
  const digests = async () => {
    const found: string[] = [];
    for (const seed of seeds) found.push((await simulate(scenarioOf(seed))).digest);
    return found;
  };
  const first = await digests();
  assert.equal(new Set(first).size, seeds.length, 'different seeds give different runs');
  assert.deepEqual(await digests(), first);
});

test('without faults every promise holds', async () => {
  for (let seed = 1; seed <= QUIET_SEEDS; seed++) {
    const { violations } = await simulate({ ...scenarioOf(seed), faults: [] });
    assert.deepEqual(violations, [], `seed ${seed}`);
  }
});
