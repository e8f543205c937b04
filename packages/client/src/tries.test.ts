import assert from 'node:assert/strict';
import { getEventListeners } from 'node:events';
import { test } from 'node:test';
import { A2AError } from '@hopline/a2a';
import fc from 'fast-check';
import { FailedTry } from './failed-try.ts';
import { openPage } from './page.test-kit.ts';
import { pause, RETRY_LIMITS, STEADY_MS, Tries } from './tries.ts';

const unavailable = new A2AError('UNAVAILABLE');
const broken = new FailedTry(unavailable);
const unreached = new FailedTry(unavailable, { reached: false });

/** Waits until a try is refused. */
function waits(tries: Tries, failed: FailedTry, nowMs = 0): number[] {
  const list: number[] = [];
  for (let at = nowMs; ; ) {
    try {
      list.push(tries.waitMs(failed, at));
      at += list.at(-1)!;
    } catch (thrown) {
      assert.equal(thrown, failed.error);
      return list;
    }
  }
}

test('delays double up to their bound, with full jitter', () => {
  const limits = { ...RETRY_LIMITS, totalMsMax: Number.POSITIVE_INFINITY };
  const longest = waits(new Tries(limits, () => 1), broken);
  assert.deepEqual(longest.slice(0, 8), [250, 500, 1000, 2000, 4000, 8000, 15_000, 15_000]);
  assert.ok(waits(new Tries(limits, () => 0), broken).every(ms => ms === 0));
});

test('consecutive tries are bounded by number and by time', () => {
  const quick = { ...RETRY_LIMITS, baseMs: 0 };
  assert.equal(waits(new Tries(quick), broken).length, quick.triesMax - 1);
  assert.equal(waits(new Tries(quick), unreached).length, quick.unreachedTriesMax - 1);
  const tries = new Tries(quick);
  tries.waitMs(broken, 0);
  tries.waitMs(broken, quick.totalMsMax);
  assert.throws(() => tries.waitMs(broken, quick.totalMsMax + 1), unavailable);
});

test('a single response is enough to allow the larger number of tries', () => {
  const quick = { ...RETRY_LIMITS, baseMs: 0 };
  const tries = new Tries(quick);
  tries.waitMs(broken, 0);
  assert.equal(waits(tries, unreached).length, quick.triesMax - 2);
});

test('progress or a long-lived stream resets the count; a short silent stream does not', () => {
  const fails = (prepare: (tries: Tries) => void) => {
    const tries = new Tries({ ...RETRY_LIMITS, baseMs: 0 });
    tries.waitMs(broken, 0);
    prepare(tries);
    tries.waitMs(broken, STEADY_MS);
    return tries.failed;
  };
  assert.equal(
    fails(tries => tries.progress()),
    1,
  );
  assert.equal(
    fails(tries => tries.opened(0)),
    1,
  );
  assert.equal(
    fails(tries => tries.opened(1)),
    2,
  );
  assert.equal(
    fails(() => {}),
    2,
  );
});

test('a delay requested by the server is obeyed, with jitter on top', () => {
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 60_000 }), fc.double({ min: 0, max: 1, noNaN: true }), (delayMs, random) => {
      const waitMs = new Tries(RETRY_LIMITS, () => random).waitMs(new FailedTry(unavailable, { delayMs }), 5);
      assert.ok(waitMs >= delayMs && waitMs <= delayMs + RETRY_LIMITS.baseMs);
    }),
  );
});

test('an error that is not retryable is thrown at once', () => {
  const refused = new FailedTry(new A2AError('TASK_NOT_FOUND'));
  assert.deepEqual(waits(new Tries(RETRY_LIMITS), refused), []);
});

test('a wait ends when the network returns to the page, and the tries are counted from one again, unless the server has asked for the delay', async t => {
  const page = openPage(t);
  const tries = new Tries(
    { ...RETRY_LIMITS, baseMs: 300_000, waitMsMax: 300_000, totalMsMax: Number.POSITIVE_INFINITY },
    () => 1,
  );
  for (let outages = 1; outages <= 2; outages += 1) {
    const waiting = pause(tries, unreached, {});
    assert.deepEqual([tries.failed, getEventListeners(page, 'online').length], [1, 1]);
    page.dispatchEvent(new Event('online'));
    await waiting;
  }
  const stop = new AbortController();
  const asked = pause(tries, new FailedTry(unavailable, { delayMs: 1_000 }), { signal: stop.signal });
  assert.equal(getEventListeners(page, 'online').length, 0);
  stop.abort(new Error('enough'));
  await assert.rejects(asked, /enough/);
});

test('the time in which the machine sleeps does not count as time of tries', async t => {
  const hour = 3_600_000;
  let nowMs = 0;
  t.mock.method(performance, 'now', () => nowMs);
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const tries = new Tries(RETRY_LIMITS, () => 0.5);
  for (let naps = 1; naps <= 3; naps += 1) {
    const waiting = pause(tries, broken, {});
    nowMs += hour;
    t.mock.timers.tick(RETRY_LIMITS.waitMsMax);
    await waiting;
    assert.equal(tries.failed, naps);
  }
  // The waits themselves count: 125, 250 and 500 ms.
  nowMs += RETRY_LIMITS.totalMsMax - 875 - 1_000;
  tries.waitMs(broken, nowMs);
  assert.throws(() => tries.waitMs(broken, nowMs + 1), unavailable);
});
