import assert from 'node:assert/strict';
import { test } from 'node:test';
import { LogConflict, LogUnavailable } from '@hopline/log';
import { Coverage, missingTransitions, transitionLines } from './coverage.ts';
import { scenarioOf } from './scenario.ts';
import { simulate } from './simulate.ts';

test('the writes of a lease are distinguished by who had it before', () => {
  const coverage = new Coverage();
  const met = (expected: string) => {
    assert.deepEqual([...coverage.met], [`lease: ${expected}`]);
    coverage.met.clear();
  };
  const write = (owner: string, { isFirst = false, error }: { isFirst?: boolean; error?: Error } = {}) =>
    coverage.onLease('shard.1', owner, isFirst, error);
  const conflict = new LogConflict('another revision');
  write('a', { isFirst: true });
  met('a shard without an owner is taken');
  write('b', { isFirst: true, error: conflict });
  met('another process was faster to take a shard without an owner');
  write('a');
  met('a lease is renewed');
  write('b');
  met('a shard is taken from another process');
  write('a', { error: conflict });
  met('another process was faster to take a shard');
  write('b', { error: new LogUnavailable('no answer') });
  met('a renewal has no answer');
  write('');
  met('a lease is released');
  write('a');
  met('a released shard is taken');
  write('', { error: conflict });
  met('a release is refused');
});

test('a transition that no seed met is printed with its reason', () => {
  const met = { 'task: begins as submitted': { seeds: 2, first: 1 }, 'task: something new': { seeds: 1, first: 2 } };
  const lines = transitionLines(met, false);
  assert.ok(lines.includes('       2  task: begins as submitted'));
  assert.ok(lines.includes('       1  task: something new'));
  assert.ok(lines.includes('       0  writer: a publish is sent again (only over the wire)'));
  assert.ok(lines.includes('       0  work: delivered after the last attempt (no seed met it)'));
});

test('10,000 seeds that never met a transition name it, unless there is a written reason; fewer do not', () => {
  const met = { 'task: begins as submitted': { seeds: 2, first: 1 } };
  const [inMemory, overTheWire] = [missingTransitions(met, 10_000, false), missingTransitions(met, 10_000, true)];
  assert.ok(inMemory.includes('work: delivered after the last attempt'));
  assert.ok(!inMemory.includes('task: begins as submitted'));
  assert.ok(!overTheWire.includes('task: working → rejected'));
  assert.deepEqual(
    [inMemory, overTheWire].map(missing => missing.includes('writer: a publish is sent again')),
    [false, true],
  );
  assert.deepEqual(missingTransitions(met, 9_999, true), []);
});

for (const log of ['memory', 'nats'] as const) {
  test(`a run reports what its tasks, leases, followers, writers and items did [${log}]`, async () => {
    const { coverage, violations } = await simulate(scenarioOf(1, 'none', log));
    assert.deepEqual(violations, []);
    const expected = [
      'task: begins as submitted',
      'task: submitted → working',
      'fold: a call ends as completed',
      'lease: a shard without an owner is taken',
      'follower: closed by its reader',
      'writer: facts stored',
      'writer: an input stored',
      'work: delivered for the first time',
      'work: acknowledged: done',
    ];
    assert.deepEqual(
      expected.filter(one => !coverage.has(one)),
      [],
    );
  });
}
