import assert from 'node:assert/strict';
import { createHistogram, performance } from 'node:perf_hooks';
import test from 'node:test';
import { EVENT_LOOP_WINDOW_MS, EventLoop } from './event-loop.ts';

const RESOLUTION_MS = 50;

function rig() {
  const recorded = createHistogram();
  const histogram = new Proxy(recorded, {
    get: (target, name) => {
      if (name === 'enable' || name === 'disable') return () => true;
      const value = Reflect.get(target, name, target);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  }) as never;
  let nowMs = 0;
  let activeMs = 0;
  const utilization = ((one?: { idle: number; active: number }, other?: { idle: number; active: number }) => {
    if (one === undefined || other === undefined) return { idle: nowMs - activeMs, active: activeMs, utilization: 0 };
    const active = one.active - other.active;
    const idle = one.idle - other.idle;
    return { idle, active, utilization: active + idle === 0 ? 0 : active / (active + idle) };
  }) as typeof performance.eventLoopUtilization;
  const loop = new EventLoop({ histogram, now: () => nowMs, utilization });
  /** Time passes with samples of a delay. */
  const pass = (ms: number, delayMs = 0) => {
    for (let at = 0; at < ms; at += RESOLUTION_MS) recorded.record((RESOLUTION_MS + delayMs) * 1e6);
    nowMs += ms;
    if (delayMs > 0) activeMs += ms;
  };
  return { loop, pass };
}

const isAbout = (value: number, expected: number) => Math.abs(value - expected) < 0.005;

test('a reader every two seconds does not hide from one every 30 s that the loop was blocked', () => {
  const { loop, pass } = rig();
  pass(EVENT_LOOP_WINDOW_MS);
  loop.delays();
  pass(6_000, 400);
  for (let seconds = 6; seconds < 30; seconds += 2) {
    const { p99, max } = loop.delays();
    assert.ok(isAbout(p99, 0.4) && isAbout(max, 0.4), `after ${seconds} s: ${p99}, ${max}`);
    assert.ok(loop.utilization() > 0.05, `after ${seconds} s`);
    pass(2_000);
  }
  assert.ok(isAbout(loop.delays().p99, 0.4), 'of the window that has just ended');
  for (let windows = 0; windows < 2; windows += 1) pass(EVENT_LOOP_WINDOW_MS);
  assert.deepEqual([loop.delays().max < 0.001, loop.utilization()], [true, 0]);
});

test('a reader that is slower than the window reads everything since it last read', () => {
  const { loop, pass } = rig();
  pass(60_000);
  loop.delays();
  pass(30_000, 300);
  pass(30_000);
  assert.ok(isAbout(loop.delays().p99, 0.3));
  assert.ok(isAbout(loop.utilization(), 0.5), `${loop.utilization()}`);
  pass(60_000);
  assert.ok(loop.delays().p99 < 0.001);
});

test('one pause in a window that has just begun is its longest delay, not its p99', () => {
  const { loop, pass } = rig();
  pass(EVENT_LOOP_WINDOW_MS);
  loop.delays();
  pass(RESOLUTION_MS, 200);
  assert.ok(loop.delays().p99 < 0.001);
  assert.ok(isAbout(loop.delays().max, 0.2));
});

test('an idle process has no delay', () => {
  const loop = new EventLoop();
  assert.ok(loop.delays().max >= 0 && loop.utilization() >= 0 && performance.now() > 0);
  loop.stop();
});
