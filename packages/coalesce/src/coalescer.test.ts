import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { Chunk } from './chunk.ts';
import { type Coalescer, close, closeAll, createCoalescer, flush, offer, tick, wakeAtMs } from './coalescer.ts';
import { COALESCED_LANES_MAX, DEFAULT_SETTINGS, HALF_PAIR_HOLD_MS } from './settings.ts';

const token = (text: string, atMs = 0) => ({ text, atMs });
const counted = (chunks: readonly Chunk[]) => chunks.reduce((sum, { count }) => sum + count, 0);
const brief = (chunks: readonly Chunk[]) => chunks.map(({ lane, text, reason }) => `${lane} ${text} ${reason}`);

/** Offers one token at each time, with timers that fire exactly on time. */
function run(times: readonly number[], settings = {}): Chunk[] {
  const coalescer = createCoalescer(settings);
  const chunks: Chunk[] = [];
  const fire = (untilMs: number) => {
    for (let wakeMs = wakeAtMs(coalescer); wakeMs !== undefined && wakeMs < untilMs; wakeMs = wakeAtMs(coalescer))
      chunks.push(...tick(coalescer, wakeMs));
  };
  for (const [index, nowMs] of times.entries()) {
    fire(nowMs);
    chunks.push(...offer(coalescer, 'a', token('x', nowMs), nowMs));
    if (times[index + 1] !== nowMs) chunks.push(...tick(coalescer, nowMs));
  }
  fire(Number.POSITIVE_INFINITY);
  return chunks;
}

const every = (gapMs: number, count: number) => Array.from({ length: count }, (_, index) => index * gapMs);

test('the first text of a lane is flushed at once, whatever the event cost and the pace [S0-38]', () => {
  for (const eventCostMs of [1, 120, 60_000]) {
    for (const gapMs of [0.1, 2, 20, 1000]) {
      const [first] = run(every(gapMs, 100), { eventCostMs });
      assert.deepEqual(first && [first.firstAtMs, first.count, first.heldMs, first.reason], [0, 1, 0, 'first'], `${gapMs} ms`);
    }
  }
});

test('first tokens that arrive at the same instant are sent together', () => {
  assert.equal(run([0, 0, 0, 90, 180])[0]!.count, 3);
});

test('the first text of each lane is sent at once, also when a closed lane opens again', () => {
  const coalescer = createCoalescer();
  for (const [nowMs, lane] of ['a', 'b'].entries()) {
    offer(coalescer, lane, token('x'), nowMs);
    assert.deepEqual(brief(tick(coalescer, nowMs)), [`${lane} x first`]);
  }
  offer(coalescer, 'a', token('y'), 2);
  assert.deepEqual(tick(coalescer, 2), [], 'the pace of the lane is learned from its second token on');
  close(coalescer, 'a', 2);
  offer(coalescer, 'a', token('z'), 3);
  assert.deepEqual(brief(tick(coalescer, 3)), ['a z first']);
});

test('a first text with an open end waits for its rest', () => {
  const coalescer = createCoalescer();
  offer(coalescer, 'a', token('👩‍'), 0);
  assert.deepEqual(tick(coalescer, 0), []);
  offer(coalescer, 'a', token('👧'), 5);
  assert.deepEqual(brief(tick(coalescer, 5)), ['a 👩‍👧 first']);
});

test('event cost 0 is pass-through: one chunk per token, at once, empty tokens included [S1-27]', () => {
  const coalescer = createCoalescer({ eventCostMs: 0 });
  for (const [index, text] of ['a', '', ' ', 'a', '👩‍', '\r', '\u0301'].entries()) {
    const chunks = offer(coalescer, 'a', token(text, index), 0);
    assert.deepEqual(
      chunks.map(chunk => [chunk.text, chunk.firstAtMs, chunk.lastAtMs, chunk.count, chunk.reason]),
      [[text, index, index, 1, 'each']],
    );
    assert.equal(wakeAtMs(coalescer), undefined);
  }
});

test('pass-through holds half a pair until the other half arrives, with a timer for the text before it', () => {
  const coalescer = createCoalescer({ eventCostMs: 0 });
  assert.deepEqual(offer(coalescer, 'a', token('x\ud83d'), 10), []);
  assert.equal(wakeAtMs(coalescer), 10 + DEFAULT_SETTINGS.holdMsMax);
  assert.deepEqual(brief(offer(coalescer, 'a', token('\ude00'), 11)), ['a x😀 each']);
  offer(coalescer, 'a', token('y\ud83d'), 12);
  assert.deepEqual(brief(tick(coalescer, 12 + DEFAULT_SETTINGS.holdMsMax)), ['a y age']);
  assert.equal(wakeAtMs(coalescer), 12 + HALF_PAIR_HOLD_MS);
  assert.deepEqual(tick(coalescer, 12 + HALF_PAIR_HOLD_MS - 1), []);
  assert.deepEqual(brief(tick(coalescer, 12 + HALF_PAIR_HOLD_MS)), ['a \ud83d age']);
  assert.equal(wakeAtMs(coalescer), undefined);
});

test('wakeAtMs is defined while text is held, and no text is held longer than holdMsMax', () => {
  const gaps = fc.array(
    fc.oneof(fc.constant(0), fc.double({ min: 0, max: 30, noNaN: true }), fc.integer({ min: 0, max: 3000 })),
    { maxLength: 200 },
  );
  const lanes = fc.array(fc.constantFrom('a', 'b', 'c'), { minLength: 1, maxLength: 9 });
  const texts = fc.array(fc.constantFrom('x', '', ' y', '👩‍', '🇫', '\r'), { minLength: 1, maxLength: 9 });
  fc.assert(
    fc.property(
      gaps,
      lanes,
      texts,
      fc.constantFrom(1, 20, 250),
      fc.constantFrom(0, 10, 120, 60_000),
      (list, names, offered, holdMsMax, eventCostMs) => {
        const coalescer = createCoalescer({ holdMsMax, eventCostMs });
        let nowMs = 0;
        let held = 0;
        const check = (chunks: Chunk[]) => {
          for (const chunk of chunks) assert.ok(chunk.heldMs <= holdMsMax + 1e-9);
          held -= counted(chunks);
          assert.equal(wakeAtMs(coalescer) === undefined, held === 0);
        };
        for (const [index, gap] of list.entries()) {
          const nextMs = nowMs + gap;
          for (let wakeMs = wakeAtMs(coalescer); wakeMs !== undefined && wakeMs < nextMs; wakeMs = wakeAtMs(coalescer))
            check(tick(coalescer, wakeMs));
          nowMs = nextMs;
          held += 1;
          check(offer(coalescer, names[index % names.length]!, token(offered[index % offered.length]!), nowMs, index % 3 === 0));
          if (gap > 1) check(tick(coalescer, nowMs));
        }
      },
    ),
    { numRuns: 300 },
  );
});

test('flush and tick send lanes in the order of their oldest token', () => {
  const coalescer = createCoalescer();
  offer(coalescer, 'b', token('1'), 0);
  offer(coalescer, 'c', token('2'), 0);
  offer(coalescer, 'a', token('3'), 1);
  offer(coalescer, 'b', token('4'), 1);
  assert.deepEqual(brief(flush(coalescer, 1)), ['b 14 boundary', 'c 2 boundary', 'a 3 boundary']);
  assert.deepEqual(flush(coalescer, 1), []);
  // Text that stays after a flush has the age of its own token, not of the chunk that was sent.
  offer(coalescer, 'a', token('5\ud83d'), 2);
  offer(coalescer, 'b', token('6'), 2);
  assert.deepEqual(brief(flush(coalescer, 2)), ['a 5 boundary', 'b 6 boundary']);
  offer(coalescer, 'c', token('7'), 3);
  assert.deepEqual(brief(closeAll(coalescer, 3)), ['a \ud83d close', 'c 7 close']);
});

test('lanes do not mix, and close separately', () => {
  const coalescer = createCoalescer();
  for (const text of ['H', 'ello', ', wor', 'ld']) {
    offer(coalescer, 'one', token(text), 0);
    offer(coalescer, 'two', token(text.toUpperCase()), 0);
  }
  assert.deepEqual(brief(close(coalescer, 'two', 0)), ['two HELLO, WORLD close']);
  assert.deepEqual(close(coalescer, 'two', 0), []);
  assert.deepEqual(close(coalescer, 'never', 0), []);
  assert.deepEqual(brief(flush(coalescer, 0)), ['one Hello, world boundary']);
});

test('chunks end at a token if the source is steady, and after a quiet time if it stalls', () => {
  const steady = run(every(20, 600), { eventCostMs: 100 }).slice(100, -1);
  assert.ok(steady.every(chunk => chunk.reason === 'ready' && chunk.count === 3 && chunk.heldMs === 40));
  const stalled = run([...every(2, 105), 3000]).at(-2)!;
  assert.equal(stalled.reason, 'quiet');
  assert.ok(stalled.heldMs < 40, `${stalled.heldMs} ms: not for the length of the stall`);
});

test('after a late tick, which returns one larger chunk, the lane continues as before', () => {
  const coalescer = createCoalescer({ eventCostMs: 100 });
  for (let nowMs = 0; nowMs < 1000; nowMs += 20) {
    offer(coalescer, 'a', token('x'), nowMs);
    tick(coalescer, nowMs);
  }
  flush(coalescer, 1000);
  for (let nowMs = 1000; nowMs < 1400; nowMs += 20) offer(coalescer, 'a', token('x'), nowMs);
  assert.ok(wakeAtMs(coalescer)! < 1400, 'overdue');
  assert.equal(tick(coalescer, 1400)[0]!.count, 20);
  assert.deepEqual(holdsOf(coalescer, 1400), new Set(['3 tokens, 40 ms, ready']));
  flush(coalescer, 2000);
  offer(coalescer, 'a', token('x'), 2000);
  assert.equal(tick(coalescer, 9000)[0]!.heldMs, 7000, 'the caller was late, not the rule');
  assert.deepEqual(holdsOf(coalescer, 9000), new Set(['3 tokens, 40 ms, ready']));
});

test('text that is sent because of a non-text event does not change the pace of its lane', () => {
  const coalescer = createCoalescer({ eventCostMs: 100 });
  for (let nowMs = 0; nowMs < 4000; nowMs += 20) {
    offer(coalescer, 'a', token('x'), nowMs);
    flush(coalescer, nowMs);
  }
  assert.deepEqual(holdsOf(coalescer, 4000), new Set(['3 tokens, 40 ms, ready']));
});

/** The reason and hold time of each chunk when 30 tokens arrive at 50 tokens/s. */
function holdsOf(coalescer: Coalescer, fromMs: number): Set<string> {
  const holds = new Set<string>();
  for (let nowMs = fromMs; nowMs < fromMs + 600; nowMs += 20) {
    for (let wakeMs = wakeAtMs(coalescer); wakeMs !== undefined && wakeMs < nowMs; wakeMs = wakeAtMs(coalescer))
      for (const { count, heldMs, reason } of tick(coalescer, wakeMs)) holds.add(`${count} tokens, ${heldMs} ms, ${reason}`);
    offer(coalescer, 'a', token('x'), nowMs);
    for (const { count, heldMs, reason } of tick(coalescer, nowMs)) holds.add(`${count} tokens, ${heldMs} ms, ${reason}`);
  }
  return holds;
}

test('time that steps back is ignored: no negative hold time, no chunk lost or repeated', () => {
  const coalescer = createCoalescer();
  offer(coalescer, 'a', token('x'), 5000);
  offer(coalescer, 'a', token('y'), 1000);
  assert.deepEqual(
    tick(coalescer, 1002).map(({ text, heldMs }) => [text, heldMs]),
    [['xy', 0]],
  );
  offer(coalescer, 'a', token('z'), 5002);
  assert.deepEqual(tick(coalescer, 1003), []);
  assert.deepEqual(
    tick(coalescer, wakeAtMs(coalescer)!).map(({ text, heldMs }) => [text, heldMs > 0]),
    [['z', true]],
  );
});

test('one lane above COALESCED_LANES_MAX evicts an idle lane, or the lane with the oldest text', () => {
  const coalescer = createCoalescer();
  for (let index = 0; index < COALESCED_LANES_MAX; index++)
    assert.deepEqual(offer(coalescer, `lane ${index}`, token('x'), index), []);
  assert.deepEqual(brief(offer(coalescer, 'one more', token('y'), 999)), ['lane 0 x size']);
  assert.equal(coalescer.lanes.size, COALESCED_LANES_MAX);
  flush(coalescer, 1000);
  assert.deepEqual(offer(coalescer, 'another', token('z'), 1001), []);
  assert.deepEqual(offer(coalescer, 'a third', token('z'), 1002), [], 'lanes that hold text stay while one is idle');
  assert.equal(coalescer.lanes.size, COALESCED_LANES_MAX);
  assert.equal(counted(closeAll(coalescer, 1003)), 2);
});

test('closeAll also drops lanes that hold nothing, so that their next text counts as a first one', () => {
  const coalescer = createCoalescer();
  offer(coalescer, 'a', token('x'), 0);
  tick(coalescer, 0);
  assert.deepEqual(closeAll(coalescer, 1), []);
  offer(coalescer, 'a', token('y'), 2);
  assert.deepEqual(brief(tick(coalescer, 2)), ['a y first']);
});
