import assert from 'node:assert/strict';
import { test } from 'node:test';
import { NOTES_MAX, ReadTimes } from './read-times.ts';

test('the time of an input is known to the second, and no input keeps more than the noted times', () => {
  const times = new ReadTimes();
  assert.equal(times.of(1), undefined);
  for (let seq = 1; seq <= 100; seq++) times.add(seq, seq * 100);
  for (const seq of [1, 50, 99]) {
    const early = seq * 100 - times.of(seq)!;
    assert.ok(early >= 0 && early < 1_000, `${seq}: ${early} ms too early`);
  }
});

test('an input that is never folded keeps its time, however many follow', () => {
  const times = new ReadTimes();
  for (let seq = 1; seq <= 3 * NOTES_MAX; seq++) times.add(seq, seq * 2_000);
  assert.equal(times.of(1), 2_000);
  const later = 2_900 * 2_000 - times.of(2_900)!;
  assert.ok(later >= 0 && later < 16_000, `${later} ms`);
});
