import assert from 'node:assert/strict';
import { test } from 'node:test';
import { TimedViewer } from './client.ts';
import { flowTimesOf, longestPause } from './time-to-flow.ts';

const fault = { startedAt: 1_000, endedAt: 2_000 };

test('the pause counts from the fault, or from later text that was already on its way', () => {
  assert.equal(longestPause([800, 3_000], fault), 2_000);
  assert.equal(longestPause([800, 1_100, 3_000, 3_100], fault), 1_900);
});

test('a stream that has ended, has not begun, or pauses only much later is not attributed to the fault', () => {
  assert.equal(longestPause([], fault), undefined);
  assert.equal(longestPause([800, 900], fault), undefined);
  assert.equal(longestPause([400, 3_000], fault), undefined);
  assert.equal(longestPause([900, 1_100, 3_600, 9_000], fault), 2_500);
});

test('only viewers that never disconnect on their own are measured', () => {
  const steady = new TimedViewer('steady', true);
  const leaving = new TimedViewer('leaving', false);
  steady.progressAt.push(900, 1_500);
  leaving.progressAt.push(900, 9_000);
  const { streams, slowest } = flowTimesOf([fault], [steady, leaving]);
  assert.deepEqual([streams?.count, streams?.max, slowest?.max], [1, 500, 500]);
  assert.equal(flowTimesOf([fault], []).streams, undefined);
});
