import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Axis, ZOOMS } from './axis.ts';
import { IDLE_MS_MAX, Recording } from './recording.ts';

/** A task with an event at each of these times. */
function recordingOf(times: readonly number[]): Recording {
  const recording = new Recording();
  for (const [index] of times.entries()) recording.add(`${index + 1}.${index + 1}`, 'gap', 0);
  const events = times.map((storedMs, index) => ({ generation: index + 1, atMs: storedMs, storedMs }));
  recording.setTimes({ startedAt: 0, events, relays: [], producers: [] } as never);
  return recording;
}

test('events have the same place by their own time and by playing time, and idle time is compressed', () => {
  const recording = recordingOf([40, 100, 200, 60_200, 60_400]);
  const axis = new Axis(recording, 60_450);
  for (let index = 0; index < recording.length; index += 1)
    assert.ok(Math.abs(axis.ofMs(recording.atMs(index)) - axis.ofPlayMs(recording.playMs(index))) < 1e-9, `${index}`);
  assert.deepEqual([axis.ofMs(0), axis.ofMs(60_450)], [0, 1]);
  // 40 + 160 + the pause + 200 + 50 milliseconds are drawn.
  const whole = 40 + 160 + IDLE_MS_MAX + 200 + 50;
  assert.ok(Math.abs(axis.ofMs(60_200) - axis.ofMs(200) - IDLE_MS_MAX / whole) < 1e-9);
  assert.ok(Math.abs(axis.ofMs(30_200) - (200 + IDLE_MS_MAX / 2) / whole) < 1e-9);
});

test('a place on the axis leads back to its time, at every zoom', () => {
  const recording = recordingOf([40, 100, 200, 60_200, 60_400]);
  for (const zoom of ZOOMS)
    for (const index of recording.items.keys()) {
      const axis = new Axis(recording, 60_450, zoom, recording.playMs(index));
      const place = axis.ofMs(recording.atMs(index));
      assert.ok(place >= -1e-9 && place <= 1 + 1e-9, `the playhead is in the shown part: ${place} at ${zoom}`);
      for (const ms of [0, 20, 150, 30_000, 60_450]) assert.ok(Math.abs(axis.msAt(axis.ofMs(ms)) - ms) < 1e-6, `${zoom} ${ms}`);
      assert.ok(Math.abs(axis.playMsAt(axis.ofPlayMs(120)) - 120) < 1e-9);
    }
});

test('an axis exists before the first event, and its key changes with its content', () => {
  const empty = new Axis(new Recording(), 1);
  assert.deepEqual([empty.ofMs(0), empty.ofPlayMs(0)].every(Number.isFinite), true);
  const recording = recordingOf([0, 1_000, 2_000]);
  assert.equal(new Axis(recording, 2_000, 2, 0).key, new Axis(recording, 2_000, 2, 10).key);
  assert.notEqual(new Axis(recording, 2_000, 2, 0).key, new Axis(recording, 2_000, 2, 2_000).key);
});
