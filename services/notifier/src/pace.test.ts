import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Pace } from './pace.ts';

test('bytes for up to one second are sent at once; beyond that each byte waits for its time', () => {
  const pace = new Pace({ intervalMs: 0, bytesPerSecondMax: 1_000 });
  pace.sent(1_000, 0);
  assert.equal(pace.waitMs(0), 0, 'at the bound');
  pace.sent(1, 0);
  assert.equal(pace.waitMs(0), 1, 'one byte above it');
  assert.equal(pace.waitMs(1), 0);
  pace.sent(10_000, 1);
  assert.equal(pace.waitMs(1), 10_000);
  assert.equal(pace.waitMs(60_000), 0);
  pace.sent(1_000, 60_000);
  assert.equal(pace.waitMs(60_000), 0, 'silence adds no more than a second');
  pace.sent(1, 60_000);
  assert.equal(pace.waitMs(60_000), 1);
  assert.equal(pace.settledInMs(60_000), 1_001, 'a new pace has a second of its own');
});

test('the interval counts from the end of a delivery, and the longer of both waits applies', () => {
  const pace = new Pace({ intervalMs: 200, bytesPerSecondMax: 1_000 });
  pace.sent(10, 0);
  assert.equal(pace.waitMs(0), 0);
  pace.delivered(50);
  assert.equal(pace.waitMs(50), 200);
  pace.sent(5_000, 50);
  assert.equal(pace.waitMs(50), 4_000);
});
