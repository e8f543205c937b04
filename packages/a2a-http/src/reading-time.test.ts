import assert from 'node:assert/strict';
import { test } from 'node:test';
import { EXPORT_READ_BYTES_MIN, ReadingTime } from './reading-time.ts';

test('the time begins again with every EXPORT_READ_BYTES_MIN that was read, and with no byte less', () => {
  const time = new ReadingTime(1_000);
  assert.equal(time.begin(EXPORT_READ_BYTES_MIN - 1, 0), 1_000);
  time.pause(900);
  assert.equal(time.begin(1, 900), 100);
  time.pause(950);
  assert.equal(time.begin(EXPORT_READ_BYTES_MIN, 950), 1_000);
});

test('the time in which the log is read does not count', () => {
  const time = new ReadingTime(1_000);
  time.pause(5_000);
  assert.equal(time.begin(1, 5_000), 1_000);
  time.pause(5_300);
  time.pause(90_000);
  assert.equal(time.begin(1, 90_000), 700);
});
