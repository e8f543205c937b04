import assert from 'node:assert/strict';
import { test } from 'node:test';
import { scenarioOf } from './scenario.ts';
import { simulate } from './simulate.ts';
import { SITUATIONS, type Situation, SituationCounts } from './situations.ts';

/** Seeds of a theme within which it causes its situation. */
const SEEDS_MAX = 5;
const ALL = Object.keys(SITUATIONS) as Situation[];

function countsOf(seeds: number, met: readonly Situation[], isWire: boolean): SituationCounts {
  const counts = new SituationCounts(isWire);
  for (let seed = 1; seed <= seeds; seed++) counts.add(new Set(met));
  return counts;
}

test('1,000 seeds that never met a situation name it, and fewer do not', () => {
  const [missed, ...met] = ALL;
  assert.deepEqual(countsOf(1_000, met, true).missing(), [missed]);
  assert.deepEqual(countsOf(999, met, true).missing(), []);
  assert.deepEqual(countsOf(1_000, ALL, true).missing(), []);
});

test('the log in memory is not expected to meet a situation of the wire', () => {
  const ofMemory = ALL.filter(name => SITUATIONS[name] === 'any');
  assert.deepEqual(countsOf(1_000, ofMemory, false).missing(), []);
  assert.equal(countsOf(1_000, [], false).missing().length, ofMemory.length);
});

test('a seed reports the situations that its faults cause', async () => {
  const expected: [theme: string, Situation][] = [
    ['leaders', 'a deposed leader answers a read'],
    ['broken connections', 'a slow consumer is cut'],
    ['forgetful servers', 'a message is stored again after its id was forgotten'],
    ['rebuilt inputs', 'the stream of inputs is created again'],
    ['none', 'a list has several pages'],
  ];
  for (const [theme, situation] of expected) {
    const met = new Set<Situation>();
    for (let seed = 1; seed <= SEEDS_MAX && !met.has(situation); seed++)
      for (const one of (await simulate(scenarioOf(seed, theme, 'nats'))).situations) met.add(one);
    assert.ok(met.has(situation), `${theme}: ${[...met].join(', ')}`);
  }
});
