import assert from 'node:assert/strict';
import { test } from 'node:test';
import { defineConfig } from '@hopline/lifecycle';
import { LogNames } from './names.ts';
import { LOG_SETTINGS } from './settings.ts';

test('without a prefix the names match the protocol; with a prefix every name begins with it', () => {
  const plain = new LogNames();
  assert.deepEqual([plain.inputsStreams, plain.bucket('hopline_tasks')], [['A2A_RAW'], 'hopline_tasks']);
  assert.equal(plain.subject('a2a.raw.00.t'), 'a2a.raw.00.t');
  const { inputsStreams, factsStreams, workStream, layouts: _, ...names } = new LogNames('team-1');
  assert.deepEqual([...inputsStreams, ...factsStreams, workStream], ['team-1_A2A_RAW', 'team-1_A2A_LOG', 'team-1_A2A_WORK']);
  const prefixed = new LogNames('team-1');
  assert.deepEqual(
    [prefixed.bucket('hopline_tasks'), prefixed.subject('a2a.wake.x')],
    ['team-1_hopline_tasks', 'team-1.a2a.wake.x'],
  );
  assert.deepEqual(names, {});
});

test('with several stream groups the first keeps the plain names, and each shard is in the streams of one group', () => {
  const names = new LogNames('blue').with(3);
  assert.deepEqual(names.inputsStreams, ['blue_A2A_RAW', 'blue_A2A_RAW_1', 'blue_A2A_RAW_2']);
  assert.deepEqual(
    [0, 1, 2, 3, 17].map(shard => names.factsStreamOf(shard).slice('blue_A2A_LOG'.length)),
    ['', '_1', '_2', '', '_2'],
  );
  assert.equal(names.inputsStreamOf(4), 'blue_A2A_RAW_1');
});

test('a prefix has 1 to 32 letters, digits, _ and -; the error for any other names it', () => {
  const load = (HOPLINE_PREFIX: string) => defineConfig(LOG_SETTINGS).load({ HOPLINE_PREFIX }).HOPLINE_PREFIX;
  for (const prefix of ['a', 'A_b-9', 'x'.repeat(32)]) {
    assert.equal(load(prefix), prefix);
    new LogNames(prefix);
  }
  for (const prefix of ['x'.repeat(33), 'a.b', 'a b', 'a*', '>', 'ä']) {
    assert.throws(() => load(prefix), {
      message: `HOPLINE_PREFIX is ${JSON.stringify(prefix)}, must be 1 to 32 letters, digits, _ and -`,
    });
    assert.throws(() => new LogNames(prefix), { name: 'LogMismatch' });
  }
});
