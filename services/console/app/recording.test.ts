import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { StreamResponse } from '@hopline/a2a';
import { actionOf, advanced, applied, LIVE, scrolls } from './playback.ts';
import { IDLE_MS_MAX, Recording } from './recording.ts';

const ids = { taskId: 't', contextId: 'c' };
const text: StreamResponse = { artifactUpdate: { ...ids, artifact: { artifactId: 'a', parts: [{ text: 'x' }] }, append: true } };
const working: StreamResponse = { statusUpdate: { ...ids, status: { state: 'TASK_STATE_WORKING' } } };

/** Events with these log times, all of which arrived at once. */
function recorded(times: readonly number[], markerAt = -1): Recording {
  const recording = new Recording();
  for (const index of times.keys())
    recording.add(`${index + 1}.${10 + index * 2}`, index === markerAt ? working : text, 1_000_000);
  const events = times.map((storedMs, index) => ({ generation: index + 1, atMs: storedMs, storedMs }));
  recording.setTimes({ startedAt: 0, events: events as never, relays: [], producers: [] });
  return recording;
}

test('idle time takes one second of the bar, however long it is', () => {
  const recording = recorded([0, 400, 60_400, 60_500]);
  assert.deepEqual(
    [0, 1, 2, 3].map(index => recording.playMs(index)),
    [0, 400, 400 + IDLE_MS_MAX, 500 + IDLE_MS_MAX],
  );
  assert.deepEqual(
    [0, 1, 2, 3].map(index => recording.atMs(index)),
    [0, 400, 60_400, 60_500],
  );
  assert.deepEqual(recording.idleSpans(), [{ fromPlayMs: 400, toPlayMs: 1_400, ms: 60_000 }]);
});

test('a gap of exactly the limit is not idle', () => {
  assert.deepEqual(recorded([0, IDLE_MS_MAX]).idleSpans(), []);
  assert.equal(recorded([0, IDLE_MS_MAX + 1]).idleSpans().length, 1);
});

test('a link names a cursor or a log sequence', () => {
  const recording = recorded([0, 1, 2]);
  assert.equal(recording.indexOf('2.12'), 1);
  assert.equal(recording.indexOf('13'), 1);
  assert.equal(recording.indexOf('99'), 2);
  assert.equal(recording.indexOf('1'), -1);
  for (const wrong of ['', 'x', '1.2.3', '-1', '1e3']) assert.equal(recording.indexOf(wrong), undefined);
});

test('an event is found by its generation, even after expired events', () => {
  const recording = recorded([0, 1]);
  recording.add(undefined, 'gap', 3);
  recording.add('9.40', text, 4);
  assert.deepEqual(
    [1, 2, 9, 3, 0].map(generation => recording.indexOfGeneration(generation)),
    [0, 1, 3, -1, -1],
  );
});

test('without times from the log a task plays at an even pace', () => {
  const recording = new Recording();
  for (let index = 0; index < 3; index += 1) recording.add(`${index}.1`, text, 5);
  recording.setTimes(undefined);
  assert.deepEqual(
    [0, 1, 2].map(index => recording.playMs(index)),
    [0, 40, 80],
  );
});

test('takeovers and repeated attempts are markers beside states', () => {
  const recording = recorded([0, 10, 20, 30], 1);
  const events = [0, 10, 20, 30].map((atMs, index) => ({ generation: index + 1, atMs }));
  const relays = [{ relay: 'relay-2', fromGeneration: 3, records: 1, fromMs: 15, takeover: { atMs: 12, cause: 'lost' } }];
  recording.setTimes({ startedAt: 0, events, relays, producers: [{ attempt: 2, agent: 'guide', takenMs: 25 }] } as never);
  assert.deepEqual(
    recording.markers().map(({ index, kind }) => [index, kind]),
    [
      [1, 'state'],
      [2, 'takeover'],
      [3, 'attempt'],
    ],
  );
});

const key = (name: string, more: object = {}) =>
  actionOf({ key: name, shiftKey: false, ctrlKey: false, altKey: false, metaKey: false, ...more }, 10_000);

test('the keys have the same actions as in asciinema', () => {
  assert.deepEqual(key(' '), { type: 'toggle' });
  assert.deepEqual(key('ArrowLeft'), { type: 'by', playMs: -5_000 });
  assert.deepEqual(key('ArrowRight', { shiftKey: true }), { type: 'by', playMs: 1_000 });
  assert.deepEqual(key('7'), { type: 'fraction', of: 0.7 });
  assert.deepEqual(key('.'), { type: 'step', events: 1 });
  assert.deepEqual(key(']'), { type: 'marker', direction: 1 });
  assert.equal(key('a'), undefined);
});

test('keys with modifiers are left to the browser', () => {
  for (const modifier of ['ctrlKey', 'altKey', 'metaKey']) assert.equal(key('5', { [modifier]: true }), undefined);
});

test('a live view follows, moving the playhead stops that, and `l` returns to it', () => {
  const recording = recorded([0, 100, 200, 300]);
  const live = advanced(LIVE, 0, recording);
  assert.equal(live.index, 3);
  const moved = applied(live, { type: 'step', events: -1 }, recording, []);
  assert.deepEqual([moved.index, moved.isLive], [2, false]);
  assert.equal(advanced(moved, 1_000, recording), moved);
  assert.equal(applied(moved, { type: 'live' }, recording, []).isLive, true);
});

test('the playhead stays at its event when log times replace arrival times', () => {
  const recording = new Recording();
  for (let index = 0; index < 3; index += 1) recording.add(`${index + 1}.1`, text, 5);
  const live = advanced(LIVE, 0, recording);
  const events = [0, 400, 900].map((atMs, index) => ({ generation: index + 1, atMs }));
  recording.setTimes({ startedAt: 0, events, relays: [], producers: [] } as never);
  assert.deepEqual(advanced(live, 0, recording), { ...live, index: 2, playMs: 900 });
  const paused = { ...live, isLive: false, index: 1 };
  assert.equal(advanced(paused, 0, recording).playMs, 400);
});

test('playing passes each event at its time and stops at the last one', () => {
  const recording = recorded([0, 100, 200, 300]);
  let playback = applied(advanced(LIVE, 0, recording), { type: 'toggle' }, recording, []);
  assert.deepEqual([playback.index, playback.isPlaying], [0, true]);
  playback = advanced(playback, 150, recording);
  assert.equal(playback.index, 1);
  playback = advanced({ ...playback, speed: 4 }, 30, recording);
  assert.equal(playback.index, 2);
  playback = advanced(playback, 1_000, recording);
  assert.deepEqual([playback.index, playback.isPlaying], [3, false]);
});

test('steps end at the first and the last event', () => {
  const recording = recorded([0, 100]);
  const step = (from: number, events: number) => applied({ ...LIVE, index: from }, { type: 'step', events }, recording, []).index;
  assert.deepEqual([step(1, 1), step(0, -1), step(-1, -1)], [1, -1, -1]);
});

test('each time in a task of 100,000 events selects the right event', () => {
  const recording = recorded(Array.from({ length: 100_000 }, (_, index) => index * 7));
  for (let index = 0; index < 100_000; index += 10) {
    assert.equal(recording.indexAt(index * 7), index);
    assert.equal(recording.indexAt(index * 7 + 6), index);
  }
  assert.deepEqual([recording.indexAt(-1), recording.markers().length], [-1, 0]);
});

test('keys that scroll the focused element do not move the playhead', () => {
  const element = { scrollWidth: 100, clientWidth: 100, scrollHeight: 100, clientHeight: 100 };
  const wide = { ...element, scrollWidth: 300 };
  const long = { ...element, scrollHeight: 300 };
  const scrolling = (focused: typeof element) =>
    ['ArrowLeft', 'ArrowRight', 'Home', 'End', ' ', 'l'].filter(name => scrolls({ key: name }, focused));
  assert.deepEqual([scrolling(element), scrolling(wide), scrolling(long)], [[], ['ArrowLeft', 'ArrowRight'], ['Home', 'End']]);
});
