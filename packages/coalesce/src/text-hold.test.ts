import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { createCoalescer, offer, tick, wakeAtMs } from './coalescer.ts';
import type { CoalesceSettings } from './settings.ts';
import { COALESCED_LANES_MAX } from './settings.ts';
import { TextHold } from './text-hold.ts';

type Arrival = { atMs: number; text: string };

/** When the text of one lane is sent, if it is sent as soon as it is due. */
function holdTimes(arrivals: readonly Arrival[], settings: Partial<CoalesceSettings>): number[] {
  const hold = new TextHold(settings);
  const times: number[] = [];
  const leave = (atMs: number) => {
    times.push(atMs);
    hold.left(atMs);
  };
  for (const { atMs, text } of arrivals) {
    if (hold.dueMs < atMs) leave(hold.dueMs);
    hold.arrive('a', text, 1, atMs);
    if (hold.dueMs <= atMs) leave(atMs);
  }
  if (hold.dueMs < Number.POSITIVE_INFINITY) leave(hold.dueMs);
  return times;
}

/** When the coalescer releases text. */
function coalescerTimes(arrivals: readonly Arrival[], settings: Partial<CoalesceSettings>): number[] {
  const coalescer = createCoalescer(settings);
  const times: number[] = [];
  const run = (atMs: number) => {
    for (const _chunk of tick(coalescer, atMs)) times.push(atMs);
  };
  const runDue = (untilMs: number) => {
    for (let wake = wakeAtMs(coalescer); wake !== undefined && wake < untilMs; wake = wakeAtMs(coalescer)) run(wake);
  };
  for (const { atMs, text } of arrivals) {
    runDue(atMs);
    offer(coalescer, 'a', { text, atMs }, atMs);
    run(atMs);
  }
  runDue(Number.POSITIVE_INFINITY);
  return times;
}

const gap = fc.oneof(fc.integer({ min: 1, max: 5 }), fc.integer({ min: 20, max: 80 }), fc.constantFrom(50, 130, 400));
const arrivalsOf = (texts: readonly string[]) =>
  fc.array(fc.record({ gap, text: fc.constantFrom(...texts) }), { minLength: 1, maxLength: 200 }).map(list => {
    let atMs = 1_000;
    return list.map(({ gap: ms, text }) => {
      atMs += ms;
      return { atMs, text };
    });
  });
const settings = fc.record({ eventCostMs: fc.constantFrom(20, 110, 400), holdMsMax: fc.constantFrom(30, 250) });

test('a producer sends text at exactly the same times as the coalescer would', () => {
  fc.assert(
    fc.property(arrivalsOf(['word ', 'x', '']), settings, (arrivals, chosen) => {
      assert.deepEqual(holdTimes(arrivals, chosen), coalescerTimes(arrivals, chosen));
    }),
    { numRuns: 300 },
  );
});

test('no text is held longer than holdMsMax, and the first text of each lane is due at once', () => {
  const texts = ['word ', '👩\u200d', '🇫', 'line\r', '\ud83d', '\ude00'];
  fc.assert(
    fc.property(arrivalsOf(texts), settings, (arrivals, chosen) => {
      const hold = new TextHold(chosen);
      for (const { atMs, text } of arrivals) {
        if (hold.dueMs < atMs) hold.left(hold.dueMs);
        hold.arrive('a', text, 1, atMs);
        assert.ok(hold.dueMs <= hold.sinceMs! + chosen.holdMsMax);
        if (hold.dueMs <= atMs) hold.left(atMs);
      }
    }),
  );
  const hold = new TextHold();
  for (const [index, lane] of ['a', 'b', 'c'].entries()) {
    hold.arrive(lane, 'word', 1, index);
    assert.equal(hold.dueMs, index);
    hold.left(index);
    hold.arrive(lane, 'word', 1, index + 0.5);
    assert.ok(hold.dueMs > index + 0.5);
    hold.left(index + 0.5);
  }
});

test('an open end waits for its rest, but a lane that has chunkBytesMax does not wait', () => {
  const hold = new TextHold({ holdMsMax: 250, chunkBytesMax: 8 });
  hold.arrive('a', 'first', 1, 0);
  hold.left(0);
  hold.arrive('a', '👩\u200d', 1, 10);
  assert.equal(hold.dueMs, 260);
  hold.arrive('a', 'x', 1, 11);
  assert.equal(hold.dueMs, 10, 'it has eight bytes and more');
  hold.left(11);
  hold.arrive('a', '1234567', 1, 20);
  assert.ok(hold.dueMs > 20);
});

test('all lanes are sent together, when the first of them is due', () => {
  const hold = new TextHold();
  for (const lane of ['a', 'b']) hold.arrive(lane, 'first', 1, 0);
  hold.left(0);
  hold.arrive('a', 'x', 1, 10);
  const dueMs = hold.dueMs;
  hold.arrive('b', 'x', 1, 20);
  assert.ok(hold.dueMs <= dueMs, 'text of another lane delays nothing');
  hold.left(hold.dueMs);
  assert.deepEqual([hold.dueMs, hold.sinceMs], [Number.POSITIVE_INFINITY, undefined]);
});

test('a closed lane begins again, and a lane above COALESCED_LANES_MAX is dropped if it holds nothing', () => {
  const hold = new TextHold();
  hold.arrive('a', 'x', 1, 0);
  hold.left(0);
  hold.close('a');
  hold.arrive('a', 'x', 1, 1);
  assert.equal(hold.dueMs, 1);
  hold.left(1);
  for (let lane = 0; lane < COALESCED_LANES_MAX; lane += 1) hold.arrive(`lane ${lane}`, 'x', 1, 2);
  hold.left(2);
  hold.arrive('lane 0', 'x', 1, 3);
  assert.ok(hold.dueMs > 3);
  hold.left(3);
  hold.arrive('a', 'x', 1, 4);
  assert.equal(hold.dueMs, 4, 'forgotten');
});

test('time that steps back is ignored, and pass-through is refused', () => {
  const hold = new TextHold();
  hold.arrive('a', 'x', 1, 100);
  hold.left(100);
  hold.arrive('a', 'x', 1, 50);
  assert.equal(hold.sinceMs, 100);
  assert.throws(() => new TextHold({ eventCostMs: 0 }), RangeError);
  assert.throws(() => new TextHold({ holdMsMax: 0 }), RangeError);
});

test('a more expensive event makes larger chunks, and a cheaper one makes them smaller again', () => {
  const hold = new TextHold({ eventCostMs: 110 });
  let nowMs = 0;
  const chunkSize = (chunks: number) => {
    const sizes: number[] = [];
    for (let held = 0; sizes.length < chunks; ) {
      nowMs += 20;
      hold.arrive('a', 'word ', 1, nowMs);
      held += 1;
      if (hold.dueMs > nowMs) continue;
      sizes.push(held);
      hold.left(nowMs);
      held = 0;
    }
    return sizes.at(-1)!;
  };
  const normal = chunkSize(20);
  hold.setEventCost(660);
  const dear = chunkSize(20);
  hold.setEventCost(110);
  assert.ok(dear >= 2 * normal, `${normal}, ${dear}`);
  assert.equal(chunkSize(20), normal);
});
