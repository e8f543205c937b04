import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { type DeadlineLimits, Deadlines, type MissedDeadline } from './deadlines.ts';

class Missed extends Error {
  readonly missed: MissedDeadline;

  constructor(missed: MissedDeadline) {
    super(missed.limit);
    this.missed = missed;
  }
}

const NEVER = Number.POSITIVE_INFINITY;

// Real timers: the mocked ones of node:test ignore `refresh`.
function start(t: TestContext, limits: Partial<DeadlineLimits>, caller?: AbortSignal) {
  const all = { firstEventMsMax: NEVER, silenceMsMax: NEVER, totalMsMax: NEVER, ...limits };
  const deadlines = new Deadlines(all, missed => new Missed(missed), caller);
  t.after(() => deadlines[Symbol.dispose]());
  return deadlines;
}

async function missedOf({ signal }: Deadlines<Missed>): Promise<MissedDeadline> {
  if (!signal.aborted) await new Promise(resolve => signal.addEventListener('abort', resolve, { once: true }));
  return (signal.reason as Missed).missed;
}

test('the first event, silence and the total are limited; the fault is the reason of the abort', {
  timeout: 120_000,
}, async t => {
  const mute = start(t, { firstEventMsMax: 20 });
  assert.deepEqual(await missedOf(mute), { limit: 'first-event', ms: 20 });
  assert.equal(mute.fault, mute.signal.reason);

  const silent = start(t, { firstEventMsMax: 20, silenceMsMax: 30 });
  silent.touch();
  assert.deepEqual(await missedOf(silent), { limit: 'silence', ms: 30 });

  const endless = start(t, { silenceMsMax: 5_000, totalMsMax: 40 });
  const touching = setInterval(() => endless.touch(), 5);
  t.after(() => clearInterval(touching));
  assert.deepEqual(await missedOf(endless), { limit: 'total', ms: 40 });
});

test('an event after the end starts no timer, even if it is the first event', { timeout: 120_000 }, async t => {
  for (const events of [0, 1]) {
    const deadlines = start(t, { silenceMsMax: 20 });
    for (let event = 0; event < events; event += 1) deadlines.touch();
    deadlines[Symbol.dispose]();
    deadlines.touch();
    await sleep(60);
    assert.equal(deadlines.fault, undefined, `${events} events before`);
  }
});

test('each event restarts the silence limit', { timeout: 120_000 }, async t => {
  const silenceMsMax = 500;
  const deadlines = start(t, { silenceMsMax });
  let longestMs = 0;
  for (let events = 0; events < 15; events += 1) {
    const touchedMs = performance.now();
    deadlines.touch();
    await sleep(50);
    longestMs = Math.max(longestMs, performance.now() - touchedMs);
  }
  if (longestMs >= silenceMsMax) t.skip(`the machine was busy for ${Math.round(longestMs)} ms`);
  else assert.ok(!deadlines.signal.aborted);
});

test('silence does not count while the reader is busy, and counts again afterwards', { timeout: 120_000 }, async t => {
  const deadlines = start(t, { silenceMsMax: 20 });
  deadlines.touch();
  deadlines.pause();
  await sleep(100);
  assert.ok(!deadlines.signal.aborted);
  deadlines.resume();
  assert.equal((await missedOf(deadlines)).limit, 'silence');
});

test('an infinite limit sets no timer, and an abort by the caller is not a fault', t => {
  const caller = new AbortController();
  const deadlines = start(t, {}, caller.signal);
  deadlines.touch();
  caller.abort();
  assert.deepEqual([deadlines.signal.aborted, deadlines.fault], [true, undefined]);
});
