import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { AgentEvent } from '@hopline/agent';
import fc from 'fast-check';
import type { Deltas } from './options.ts';
import { CUMULATIVE_STEPS, HELD_TEXTS_MAX, StatusTexts } from './status-texts.ts';

/** The answer after each text and at the end. Fails when a snapshot takes back what was sent. */
function fold(texts: readonly string[], { deltas, whole }: { deltas?: Deltas; whole?: string } = {}) {
  let count = 0;
  const status = new StatusTexts(deltas, () => (count += 1));
  let answer = '';
  const apply = (read: (events: AgentEvent[]) => void) => {
    const events: AgentEvent[] = [];
    read(events);
    for (const event of events) {
      if (event.type === 'text') answer += event.text;
      else if (event.type === 'snapshot') {
        assert.ok(event.text.startsWith(answer), `"${event.text}" takes "${answer}" back`);
        answer = event.text;
      }
    }
    return answer;
  };
  const answers = texts.map((text, index) => apply(events => status.take({ text, id: `${index}` }, events)));
  if (whole !== undefined) apply(events => status.compare(whole, events));
  return { answers, end: apply(events => status.end(events)), count };
}

/** Texts that begin with CUMULATIVE_STEPS, each of which repeats its predecessor and adds to it. */
function looksCumulative(texts: readonly string[]): boolean {
  let steps = 0;
  for (const [index, text] of texts.slice(1).entries()) {
    const before = texts[index]!;
    if (index >= HELD_TEXTS_MAX || !text.startsWith(before)) return false;
    if (text.length > before.length) steps += 1;
    if (steps === CUMULATIVE_STEPS) return true;
  }
  return false;
}

const pieces = fc.array(fc.string({ unit: fc.constantFrom('h', 'a', ' ', '\n', '-'), minLength: 1, maxLength: 4 }), {
  maxLength: 30,
});

test('pieces of the answer are added up, even if a piece repeats the previous one', () => {
  assert.deepEqual(fold(['ha', 'ha', 'haha']).end, 'hahahaha');
  assert.deepEqual(fold(['Here', ' is', ' it']).answers, ['Here', 'Here is', 'Here is it']);
  fc.assert(
    fc.property(pieces, texts => {
      fc.pre(!looksCumulative(texts));
      assert.equal(fold(texts).end, texts.join(''));
    }),
  );
});

test('texts that contain the previous ones are the answer so far, and text that was sent is never taken back', () => {
  const { answers, count } = fold(['Here', 'Here is', 'Here is', 'Here is the', 'Here is the text', 'Here is the text.']);
  assert.deepEqual(answers, ['Here', 'Here', 'Here', 'Here', 'Here is the text', 'Here is the text.']);
  assert.equal(count, 1);
  const grown = fc.array(fc.string({ minLength: 1, maxLength: 5 }), { minLength: CUMULATIVE_STEPS + 1, maxLength: 20 });
  fc.assert(
    fc.property(grown, parts => {
      const texts = parts.map((_part, index) => parts.slice(0, index + 1).join(''));
      assert.equal(fold(texts).end, parts.join(''));
    }),
  );
});

test('a whole text after a short answer decides its meaning; without a whole text the texts are pieces', () => {
  const texts = ['Hi', 'Hi there'];
  assert.equal(fold(texts, { whole: 'Hi there' }).end, 'Hi there');
  assert.equal(fold(texts, { whole: 'HiHi there' }).end, 'HiHi there');
  assert.equal(fold(texts, { whole: 'a file' }).end, 'HiHi there');
  assert.equal(fold(texts).end, 'HiHi there');
});

test('a text is held only while it may repeat the previous one, and only a few are held', () => {
  assert.deepEqual(fold(['a', 'ab', 'c']).answers, ['a', 'a', 'aabc']);
  const same = Array.from({ length: HELD_TEXTS_MAX + 3 }, () => '-');
  const lengths = fold(same).answers.map(answer => answer.length);
  assert.deepEqual(
    lengths.slice(0, -2),
    Array.from({ length: HELD_TEXTS_MAX + 1 }, () => 1),
  );
  assert.deepEqual(lengths.slice(-2), [HELD_TEXTS_MAX + 2, HELD_TEXTS_MAX + 3]);
});

test('a setting takes precedence; without one, texts that turn out to be cumulative are reported', () => {
  const texts = ['a', 'ab', 'abc', 'abcd'];
  assert.deepEqual(fold(texts, { deltas: 'incremental' }), {
    answers: ['a', 'aab', 'aababc', 'aababcabcd'],
    end: 'aababcabcd',
    count: 0,
  });
  assert.deepEqual(fold(texts, { deltas: 'cumulative' }), { answers: texts, end: 'abcd', count: 0 });
  assert.equal(fold(['Looking…', ...texts]).count, 1);
  assert.equal(fold(['one', ' two', ' three']).count, 0);
});
