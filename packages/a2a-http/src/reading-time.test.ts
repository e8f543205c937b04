import assert from 'node:assert/strict';
import { test } from 'node:test';
import { EXPORT_READ_BYTES_MIN, ReadingTime } from './reading-time.ts';

test('the time restarts after every EXPORT_READ_BYTES_MIN read, and not one byte earlier', () => {
  const time = new ReadingTime(1_000);
  assert.equal(time.begin(EXPORT_READ_BYTES_MIN - 1, 0), 1_000);
  time.pause(900);
  assert.equal(time.begin(1, 900), 100);
  time.pause(950);
  assert.equal(time.begin(EXPORT_READ_BYTES_MIN, 950), 1_000);
});

test('time spent reading the log does not count', () => {
  const time = new ReadingTime(1_000);
  time.pause(5_000);
  assert.equal(time.begin(1, 5_000), 1_000);
  time.pause(5_300);
  time.pause(90_000);
  assert.equal(time.begin(1, 90_000), 700);
});
