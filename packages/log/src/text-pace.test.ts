import assert from 'node:assert/strict';
import { test } from 'node:test';
import { DEFAULT_SETTINGS } from '@hopline/coalesce';
import {
  CROWDED_COST_SHARE,
  EVENT_COST_FACTOR_MAX,
  FASTEST_APPEND_DOUBLING_MS,
  FASTEST_APPEND_MS_MIN,
  GATHER_MS,
  SLOW_APPEND_FACTOR,
  TextPace,
} from './text-pace.ts';

test('an event has the cost of the settings while appends are fast, more while they are slow, and never beyond its factor', () => {
  const pace = new TextPace(DEFAULT_SETTINGS);
  let nowMs = 0;
  const after = (ms: number, appends: number) => {
    for (let count = 0; count < appends; count += 1) {
      nowMs += 100;
      pace.appended(nowMs - ms, nowMs);
    }
    return pace.eventCostMs / DEFAULT_SETTINGS.eventCostMs;
  };
  assert.equal(after(80, 1), 1, 'the first append of a process is slow');
  assert.equal(after(1, 100), 1);
  const busy = after(2 * SLOW_APPEND_FACTOR, 100);
  assert.ok(busy > 1.7 && busy < 2.3, `${busy}`);
  assert.equal(after(1, 100), 1, 'it falls again');
  assert.ok(after(60_000, 1) === 1, 'one slow append changes nothing');
  assert.equal(after(60_000, 1_000), EVENT_COST_FACTOR_MAX);
  assert.equal(after(1, 100), 1);
});

test('an append counts as slow relative to the fastest one, and a server that has moved farther away does not count as load', () => {
  const pace = new TextPace(DEFAULT_SETTINGS);
  let nowMs = 0;
  const costs = (ms: number, everyMs: number, appends: number) => {
    for (let count = 0; count < appends; count += 1) {
      nowMs += everyMs;
      pace.appended(nowMs - ms, nowMs);
    }
    return pace.eventCostMs;
  };
  assert.equal(costs(8, 100, 200), DEFAULT_SETTINGS.eventCostMs);
  const slow = costs(40, 100, 200);
  assert.ok(slow > DEFAULT_SETTINGS.eventCostMs);
  assert.equal(costs(40, FASTEST_APPEND_DOUBLING_MS / 100, 400), DEFAULT_SETTINGS.eventCostMs);
  const near = new TextPace(DEFAULT_SETTINGS);
  for (let count = 0; count < 100; count += 1)
    near.appended(count, count + (count % 2 === 0 ? 0.01 : SLOW_APPEND_FACTOR * FASTEST_APPEND_MS_MIN));
  assert.equal(near.eventCostMs, DEFAULT_SETTINGS.eventCostMs, 'a log in the same process');
});

test('after a pause text is sent at once, otherwise GATHER_MS after the previous text, together with all text that is due', t => {
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

test('an event costs more while text waits for other text, and the usual amount while there is only one stream', t => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const pace = new TextPace(DEFAULT_SETTINGS);
  const from = performance.now();
  const send = (everyMs: number, times: number, streams: number) => {
    for (let time = 0; time < times; time += 1) {
      const nowMs = from + time * everyMs;
      for (let stream = 0; stream < streams; stream += 1) pace.gather(() => {}, nowMs);
      t.mock.timers.tick(2 * GATHER_MS);
    }
    return pace.eventCostMs / DEFAULT_SETTINGS.eventCostMs;
  };
  assert.equal(send(100, 50, 1), 1);
  const crowded = send(100, 50, 100);
  assert.ok(crowded > 1 + 0.9 * CROWDED_COST_SHARE && crowded <= 1 + CROWDED_COST_SHARE, `${crowded}`);
});

test('no text is held if every token is an event', () => {
  assert.equal(new TextPace({ ...DEFAULT_SETTINGS, eventCostMs: 0 }).createHold(), undefined);
  assert.notEqual(new TextPace(DEFAULT_SETTINGS).createHold(), undefined);
});
