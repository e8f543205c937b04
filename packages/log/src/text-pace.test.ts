import assert from 'node:assert/strict';
import { test } from 'node:test';
import { DEFAULT_SETTINGS } from '@hopline/coalesce';
import { EVENT_COST_FACTOR_MAX, GATHER_MS, IDLE_APPEND_MS, TextPace } from './text-pace.ts';

test('an event has the cost of the settings while appends are fast, more while they are slow, and never beyond its factor', () => {
  const pace = new TextPace(DEFAULT_SETTINGS);
  const after = (ms: number, appends: number) => {
    for (let count = 0; count < appends; count += 1) pace.appended(ms);
    return pace.eventCostMs / DEFAULT_SETTINGS.eventCostMs;
  };
  assert.equal(after(IDLE_APPEND_MS / 2, 100), 1);
  const busy = after(4 * IDLE_APPEND_MS, 100);
  assert.ok(busy > 3.5 && busy < 4.5, `${busy}`);
  assert.equal(after(60_000, 1_000), EVENT_COST_FACTOR_MAX);
  assert.equal(after(IDLE_APPEND_MS / 2, 100), 1, 'it falls again');
  assert.ok(after(60_000, 1) < 1.1, 'one slow append changes little');
});

test('text leaves at once after a pause, otherwise together with all that is due GATHER_MS after the text before it', t => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const pace = new TextPace(DEFAULT_SETTINGS);
  const left: string[] = [];
  const leave = (name: string, nowMs: number) => pace.gather(() => left.push(name), nowMs);
  const nowMs = performance.now();
  leave('a', nowMs);
  assert.deepEqual(left, ['a']);
  leave('b', nowMs + 1);
  leave('c', nowMs + GATHER_MS);
  t.mock.timers.tick(GATHER_MS - 2);
  assert.deepEqual(left, ['a']);
  t.mock.timers.tick(1);
  assert.deepEqual(left, ['a', 'b', 'c']);
  leave('d', performance.now() + GATHER_MS);
  assert.deepEqual(left, ['a', 'b', 'c', 'd']);
});

test('where every token is an event there is no hold', () => {
  assert.equal(new TextPace({ ...DEFAULT_SETTINGS, eventCostMs: 0 }).createHold(), undefined);
  assert.notEqual(new TextPace(DEFAULT_SETTINGS).createHold(), undefined);
});
