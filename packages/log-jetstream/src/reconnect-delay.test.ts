import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ReconnectDelay } from './reconnect-delay.ts';

const HALF_AN_HOUR_MS = 30 * 60_000;

test('a clock that is set back delays no attempt to reach any of eight servers', () => {
  const clocks = { wall: 1_000_000_000, monotonic: 0 };
  const delay = new ReconnectDelay({ wallNow: () => clocks.wall, now: () => clocks.monotonic });
  const isOrdinary = (ms: number) => ms >= 250 && ms <= 500;
  assert.ok(isOrdinary(delay.next()));
  clocks.monotonic += 60_000;
  clocks.wall += 60_000 - HALF_AN_HOUR_MS;
  const after = Array.from({ length: 8 }, () => delay.next());
  assert.ok(after.every(ms => isOrdinary(ms + HALF_AN_HOUR_MS)));
  assert.ok(isOrdinary(delay.next()));
  clocks.wall += HALF_AN_HOUR_MS;
  assert.ok(isOrdinary(delay.next()), 'a clock that is set forward delays nothing');
});
