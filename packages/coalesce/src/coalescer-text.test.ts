import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { Chunk } from './chunk.ts';
import { type Coalescer, close, closeAll, createCoalescer, flush, offer, tick, wakeAtMs } from './coalescer.ts';
import { HALF_PAIR_HOLD_MS } from './settings.ts';

type Call =
  | { act: 'offer'; lane: string; text: string; isHeld: boolean; dt: number }
  | { act: 'tick' | 'flush'; dt: number }
  | { act: 'close'; lane: string; dt: number };
type Offered = { lane: string; text: string; atMs: number };
/**
 * `first`, `last`: index of the chunk's oldest and newest token among those of its lane, as a caller finds them by `count` and
 * `lastOffset`. `ended`: the lane was closed by this chunk's call.
 */
type Sent = Chunk & { first: number; last: number; ended: boolean };

const FRAGMENTS = ['', ' ', '\n', '\r', '\r\n', '\0', 'H', 'ere', ' is', 'ha', '✅ failed', 'e', '\u0301', '\ufe0f', '\u200d'];
const HALVES = ['\ud83d', '\ude00', '\ud83c', '\uddeb', 'x\ud83d', '\ude00y', '\ud83d\ud83d'];
const EMOJI = ['😀', '👩‍', '👧', '🇫', '🇷', '👩‍👩‍👧‍👦', '👍🏽', 'x'.repeat(40), '👩‍👩‍👧‍👦'.repeat(3), 'é'.repeat(33)];
const laneName = fc.constantFrom('plan', 'argocd', 'github');
const dt = fc.oneof(fc.constant(0), fc.double({ min: 0, max: 3, noNaN: true }), fc.integer({ min: 0, max: 400 }));
const offerCall: fc.Arbitrary<Call> = fc.record({
  act: fc.constant('offer' as const),
  lane: laneName,
  // Half pairs and empty tokens are frequent here, because a cut inside a token other than the last one needs both.
  text: fc.oneof(
    { weight: 4, arbitrary: fc.constantFrom(...FRAGMENTS, ...EMOJI) },
    { weight: 2, arbitrary: fc.constantFrom(...HALVES) },
    { weight: 1, arbitrary: fc.constant('') },
  ),
  isHeld: fc.boolean(),
  dt,
});
const calls = fc.array(
  fc.oneof(
    { weight: 12, arbitrary: offerCall },
    { weight: 4, arbitrary: fc.record({ act: fc.constant('tick' as const), dt }) },
    { weight: 3, arbitrary: fc.record({ act: fc.constant('flush' as const), dt }) },
    { weight: 1, arbitrary: fc.record({ act: fc.constant('close' as const), lane: laneName, dt }) },
  ),
  { maxLength: 120 },
);
const settings = fc.record({
  eventCostMs: fc.constantFrom(0, 5, 120),
  holdMsMax: fc.constantFrom(1, 20, 250),
  chunkBytesMax: fc.constantFrom(4, 7, 16, 64, 32_768),
});

/** Runs the calls. `after` runs after every call. */
function run(
  coalescer: Coalescer,
  list: readonly Call[],
  after: (sent: readonly Sent[], offered: readonly Offered[]) => void = () => {},
): { sent: Sent[]; offered: Offered[] } {
  const sent: Sent[] = [];
  const offered: Offered[] = [];
  let nowMs = 1_700_000_000_000;
  const counts = new Map<string, number>();
  const keep = (chunks: Chunk[], ended: boolean) => {
    for (const chunk of chunks) {
      const first = counts.get(chunk.lane) ?? 0;
      const next = first + chunk.count;
      counts.set(chunk.lane, next);
      sent.push({ ...chunk, first, last: chunk.lastOffset === undefined ? next - 1 : next, ended });
    }
  };
  for (const call of list) {
    nowMs += call.dt;
    if (call.act === 'offer') {
      offered.push({ lane: call.lane, text: call.text, atMs: nowMs });
      keep(offer(coalescer, call.lane, { text: call.text, atMs: nowMs }, nowMs, call.isHeld), false);
    } else if (call.act === 'close') keep(close(coalescer, call.lane, nowMs), true);
    else keep(call.act === 'tick' ? tick(coalescer, nowMs) : flush(coalescer, nowMs), false);
    after(sent, offered);
  }
  keep(closeAll(coalescer, nowMs), true);
  return { sent, offered };
}

const of = <T extends { lane: string }>(list: readonly T[], lane: string) => list.filter(item => item.lane === lane);
const joined = (list: readonly { text: string }[]) => list.map(item => item.text).join('');

function eachRun(check: (sent: Sent[], offered: Offered[], lane: string, chunkBytesMax: number) => void): void {
  fc.assert(
    fc.property(settings, calls, (chosen, list) => {
      const { sent, offered } = run(createCoalescer(chosen), list);
      for (const lane of ['plan', 'argocd', 'github']) check(of(sent, lane), of(offered, lane), lane, chosen.chunkBytesMax);
    }),
    { numRuns: 600 },
  );
}

test('the chunks of a lane join to its tokens, unit by unit, and count every token once [S0-36 S0-22 C-20]', () => {
  eachRun((sent, offered) => {
    assert.equal(joined(sent), joined(offered));
    assert.equal(
      sent.reduce((sum, chunk) => sum + chunk.count, 0),
      offered.length,
    );
  });
});

test('no chunk ends between the halves of a pair unless its lane ends there', () => {
  eachRun(sent => {
    for (const [index, chunk] of sent.entries()) {
      const next = sent[index + 1];
      if (next === undefined || chunk.ended) continue;
      assert.ok(
        !(/[\ud800-\udbff]$/.test(chunk.text) && /^[\udc00-\udfff]/.test(next.text)),
        JSON.stringify([chunk.text, next.text]),
      );
    }
  });
});

test('no chunk exceeds chunkBytesMax in UTF-8', () => {
  eachRun((sent, _offered, _lane, chunkBytesMax) => {
    for (const chunk of sent) assert.ok(Buffer.byteLength(chunk.text) <= chunkBytesMax);
  });
});

test('a reader that restarts after any chunk finds the rest by `count` and `lastOffset`', () => {
  eachRun((sent, offered) => {
    for (const [index, chunk] of sent.entries()) {
      const inside = chunk.lastOffset === undefined ? '' : offered[chunk.last]!.text.slice(chunk.lastOffset);
      assert.equal(joined(sent.slice(index + 1)), inside + joined(offered.slice(chunk.last + 1)));
      assert.ok(chunk.lastOffset === undefined || (chunk.lastOffset > 0 && inside !== ''));
      assert.ok(chunk.first <= chunk.last && chunk.heldMs >= 0);
      assert.deepEqual([chunk.firstAtMs, chunk.lastAtMs], [offered[chunk.first]!.atMs, offered[chunk.last]!.atMs]);
    }
  });
});

test('after every call, all text of every counted token has been sent, and no later token is counted', () => {
  fc.assert(
    fc.property(settings, calls, (chosen, list) => {
      run(createCoalescer(chosen), list, (sent, offered) => {
        for (const lane of ['plan', 'argocd', 'github']) {
          const [left, tokens] = [of(sent, lane), of(offered, lane)];
          const { last = -1, lastOffset } = left.at(-1) ?? {};
          const whole = lastOffset === undefined ? last + 1 : last;
          const part = lastOffset === undefined ? '' : tokens[last]!.text.slice(0, lastOffset);
          assert.equal(joined(left), joined(tokens.slice(0, whole)) + part);
        }
      });
    }),
    { numRuns: 300 },
  );
});

test('the same calls at the same times give the same chunks', () => {
  fc.assert(
    fc.property(settings, calls, (chosen, list) =>
      assert.deepEqual(run(createCoalescer(chosen), list), run(createCoalescer(chosen), list)),
    ),
  );
});

const token = (text: string, atMs = 0) => ({ text, atMs });
const texts = (chunks: readonly Chunk[]) => chunks.map(chunk => chunk.text);

test('half a pair waits for its other half, even across a flush, and is sent unpaired when the lane ends', () => {
  const coalescer = createCoalescer();
  offer(coalescer, 'a', token('ok \ud83d', 1), 0);
  const [before] = flush(coalescer, 1);
  assert.deepEqual(
    { text: before?.text, lastAtMs: before?.lastAtMs, count: before?.count, lastOffset: before?.lastOffset },
    { text: 'ok ', lastAtMs: 1, count: 0, lastOffset: 3 },
  );
  assert.deepEqual(flush(coalescer, 2), []);
  offer(coalescer, 'a', token('\ude00!', 2), 3);
  const [after] = flush(coalescer, 4);
  assert.deepEqual(
    { text: after?.text, firstAtMs: after?.firstAtMs, lastAtMs: after?.lastAtMs, count: after?.count },
    { text: '😀!', firstAtMs: 1, lastAtMs: 2, count: 2 },
  );
  offer(coalescer, 'a', token('\ud83d', 3), 5);
  assert.deepEqual(texts(close(coalescer, 'a', 6)), ['\ud83d']);
});

test('text that remains after a cut has the age of its own token, and the right counts of tokens and units', () => {
  // If the text before the cut still counted, there would be no room for the other half.
  const coalescer = createCoalescer({ chunkBytesMax: 7 });
  for (const [index, text] of ['ok', 'x\ud83d', ''].entries()) offer(coalescer, 'a', token(text, 100 + index), index);
  const reason = 'boundary' as const;
  assert.deepEqual(flush(coalescer, 3), [
    { lane: 'a', text: 'okx', lastOffset: 1, count: 1, reason, heldMs: 3, firstAtMs: 100, lastAtMs: 101 },
  ]);
  assert.deepEqual(offer(coalescer, 'a', token('\ude00', 103), 4), []);
  assert.deepEqual(flush(coalescer, 6), [{ lane: 'a', text: '😀', count: 3, reason, heldMs: 5, firstAtMs: 101, lastAtMs: 103 }]);
});

test('half a surrogate pair whose other half does not come is sent by itself after HALF_PAIR_HOLD_MS, not before', () => {
  for (const forced of [false, true]) {
    const coalescer = createCoalescer();
    offer(coalescer, 'a', token('ok \ud83d', 1), 0);
    const before = forced ? flush(coalescer, 1) : tick(coalescer, 1_000);
    assert.deepEqual(texts(before), ['ok ']);
    assert.equal(wakeAtMs(coalescer), HALF_PAIR_HOLD_MS);
    assert.deepEqual(tick(coalescer, HALF_PAIR_HOLD_MS - 1), []);
    const [half] = tick(coalescer, HALF_PAIR_HOLD_MS);
    assert.deepEqual([half?.text, half?.count, half?.lastOffset], ['\ud83d', 1, undefined]);
    assert.equal(wakeAtMs(coalescer), undefined);
  }
});

test('text with an open end waits for the next token, but no longer than holdMsMax', () => {
  for (const [open, rest] of [
    ['👩‍', '👧'],
    ['🇫', '🇷'],
    ['\r', '\n'],
    ['\ud83d', '\ude00'],
  ] as const) {
    const coalescer = createCoalescer();
    offer(coalescer, 'a', token(open), 0);
    assert.deepEqual(tick(coalescer, 249), []);
    offer(coalescer, 'a', token(rest), 249);
    assert.deepEqual(texts(tick(coalescer, 249)), [open + rest]);
  }
  const coalescer = createCoalescer();
  offer(coalescer, 'a', token('x👩‍'), 0);
  assert.deepEqual(tick(coalescer, 249.9), []);
  assert.deepEqual(
    tick(coalescer, 250).map(chunk => [chunk.text, chunk.reason]),
    [['x👩‍', 'age']],
  );
});

test('a token that begins with a mark, a variation selector or a joiner joins the held text', () => {
  for (const mark of ['\u0301', '\ufe0f', '\u200d👧', '🏽']) {
    const coalescer = createCoalescer();
    offer(coalescer, 'a', token('e'), 0);
    offer(coalescer, 'a', token(mark), 1);
    assert.deepEqual(texts(tick(coalescer, 2)), [`e${mark}`]);
  }
});

test('empty and white-space tokens keep their position', () => {
  const coalescer = createCoalescer();
  for (const [index, text] of ['', ' ', '\n\n', ''].entries()) offer(coalescer, 'a', token(text, index), 0);
  const [chunk] = flush(coalescer, 0);
  assert.deepEqual(
    { text: chunk?.text, firstAtMs: chunk?.firstAtMs, lastAtMs: chunk?.lastAtMs, count: chunk?.count },
    { text: ' \n\n', firstAtMs: 0, lastAtMs: 3, count: 4 },
  );
  offer(coalescer, 'a', token('', 4), 1);
  assert.deepEqual(
    flush(coalescer, 1).map(({ text, count, lastAtMs }) => [text, count, lastAtMs]),
    [['', 1, 4]],
  );
});

test('tokens of chunkBytesMax together are one chunk, and the next byte begins another', () => {
  const coalescer = createCoalescer({ chunkBytesMax: 8 });
  for (const text of ['1234', '56', 'é']) assert.deepEqual(offer(coalescer, 'a', token(text), 0), []);
  assert.deepEqual(texts(offer(coalescer, 'a', token('9'), 0)), ['123456é']);
  assert.deepEqual(texts(flush(coalescer, 0)), ['9']);
});

test('a token of chunkBytesMax is held; one byte more is sent at once, in pieces [C-4]', () => {
  const coalescer = createCoalescer({ chunkBytesMax: 8 });
  assert.deepEqual(offer(coalescer, 'a', token('12345678'), 0), []);
  assert.deepEqual(
    offer(coalescer, 'a', token('9', 1), 0).map(({ text, reason, count }) => [text, reason, count]),
    [['12345678', 'size', 1]],
  );
  const pieces = offer(coalescer, 'a', token('abcdefgh😀x', 2), 0);
  assert.deepEqual(
    pieces.map(({ text, firstAtMs, lastAtMs, lastOffset, count }) => [text, firstAtMs, lastAtMs, lastOffset, count]),
    [
      ['9', 1, 1, undefined, 1],
      ['abcdefgh', 2, 2, 8, 0],
      ['😀x', 2, 2, undefined, 1],
    ],
  );
  assert.equal(wakeAtMs(coalescer), undefined);
});
