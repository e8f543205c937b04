import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { bytesAllocated } from '../../../test/support/counted-work.ts';
import { ANSWER_ARTIFACTS_MAX, AnswerDeduplicator, type ArtifactText } from './answer-deduplicator.ts';
import type { TextChange } from './lane-writer.ts';

/** The answer as the client folds it. */
class Shown {
  readonly answer = new AnswerDeduplicator();
  text = '';

  #show(change: TextChange | undefined): this {
    if (change) this.text = change.replace ? change.text : this.text + change.text;
    return this;
  }

  token = (text: string) => this.#show(this.answer.token(text));
  snapshot = (text: string) => this.#show(this.answer.snapshot(text));
  chunk = (id: string, text: string, more: Partial<ArtifactText> = {}) =>
    this.#show(this.answer.artifact({ id, isResult: false, text, append: true, last: false, ...more }));
  first = (id: string, text: string, more: Partial<ArtifactText> = {}) => this.chunk(id, text, { append: false, ...more });
  whole = (id: string, text: string, more: Partial<ArtifactText> = {}) =>
    this.chunk(id, text, { append: false, last: true, ...more });
  ending(text: string): boolean {
    const { covered, change } = this.answer.ending(text);
    this.#show(change);
    return covered;
  }
}

const streamed = (...tokens: string[]) => {
  const shown = new Shown();
  for (const token of tokens) shown.token(token);
  return shown;
};

test('a whole text repeated in an artifact is shown once [S2-2]', () => {
  assert.equal(streamed('Hel', 'lo').whole('a', 'Hello').text, 'Hello');
  assert.equal(streamed('Hel', 'lo').first('a', 'Hel').chunk('a', 'lo').chunk('a', '', { last: true }).text, 'Hello');
  assert.equal(streamed('Hel', 'lo').first('a', 'Hello', { last: false }).text, 'Hello');
});

test('a whole text repeated in the final message is shown once [S2-2]', () => {
  const shown = streamed('Hel', 'lo');
  assert.equal(shown.ending('Hello'), true);
  assert.equal(shown.text, 'Hello');
});

test('a text sent both as tokens and as chunks is shown once [S2-2]', () => {
  const shown = new Shown();
  shown.token('Hel').first('a', 'Hel').token('lo').chunk('a', 'lo').token('!').chunk('a', '!', { last: true });
  assert.equal(shown.text, 'Hello!');
});

test('a partial_result or final_result repeats the answer that was already shown [S0-20 C-25]', () => {
  const shown = new Shown();
  shown.first('one', 'a').first('two', 'x').chunk('one', 'b').chunk('two', 'y');
  assert.equal(shown.text, 'axby');
  shown.whole('r', 'abxy', { isResult: true });
  assert.equal(shown.text, 'abxy');
});

test('an artifact that continues the tokens adds only its rest', () => {
  assert.equal(streamed('Hel').whole('a', 'Hello').text, 'Hello');
  assert.equal(streamed('Hel').first('a', 'He').chunk('a', 'llo').chunk('a', '!').text, 'Hello!');
});

test('an artifact with a different text replaces a shorter text, and is added to a longer one', () => {
  assert.equal(streamed('Looking it up').whole('a', 'The answer is 42.').text, 'The answer is 42.');
  assert.equal(streamed('A long answer, streamed.').whole('a', 'sources').text, 'A long answer, streamed.sources');
  assert.equal(streamed('Hi').first('a', 'Ho').chunk('a', 'use').text, 'HiHouse');
  assert.equal(streamed('Hello').first('a', 'Hel').chunk('a', 'met').text, 'HelloHelmet');
});

test('an artifact that only begins like the tokens is a separate text', () => {
  assert.equal(streamed('Hello').first('a', 'Hel').chunk('a', '', { last: true }).text, 'HelloHel');
});

test('several artifacts are separate texts that do not replace each other', () => {
  assert.equal(new Shown().whole('a', 'one ').whole('b', 'a second one').text, 'one a second one');
  assert.equal(new Shown().first('a', 'ha').first('b', 'ha').text, 'haha');
});

test('an append to an artifact that was never opened opens it', () => {
  assert.equal(new Shown().chunk('a', 'one').chunk('a', ' two').text, 'one two');
});

test('an artifact that starts again may be cumulative, repeated, or changed', () => {
  assert.equal(new Shown().first('a', 'one').first('a', 'one two').first('a', 'one two three').text, 'one two three');
  assert.equal(new Shown().first('a', 'one').chunk('a', ' two').whole('a', 'one two').text, 'one two');
  assert.equal(new Shown().token('x: ').first('a', 'one').whole('a', 'uno').text, 'x: uno');
  assert.equal(new Shown().first('a', 'one').token(' tail').whole('a', 'uno').text, 'uno tail');
});

test('beyond the limit the oldest artifact is dropped, and its text is shown again rather than lost', () => {
  for (const [others, text] of [
    [ANSWER_ARTIFACTS_MAX - 1, ''],
    [ANSWER_ARTIFACTS_MAX, 'first'],
  ] as const) {
    const shown = new Shown().first('1', 'first');
    for (let index = 0; index < others; index += 1) shown.first(`other ${index}`, 'x');
    const before = `first${'x'.repeat(others)}`;
    assert.ok(shown.text === before);
    assert.equal(shown.first('1', 'first').text.slice(before.length), text);
  }
});

test('the cost of a token does not grow when there are more artifacts than are tracked', async () => {
  const shown = new Shown().token('a');
  for (let index = 0; index < 20 * ANSWER_ARTIFACTS_MAX; index += 1) shown.first(`${index}`, '');
  const bytes = await bytesAllocated(() => {
    for (let index = 0; index < 200; index += 1) shown.answer.token('b');
  });
  // If each artifact that repeats the answer kept some 30 bytes per token, 20,480 artifacts would take 130 MB.
  assert.ok(bytes < 40_000_000, `${bytes} bytes`);
});

test('the final message may be the only answer, a longer form of the tokens, or a closing remark', () => {
  const alone = new Shown();
  assert.equal(alone.ending('42'), true);
  assert.equal(alone.text, '42');
  const progress = streamed('Looking…');
  assert.equal(progress.ending('The answer is 42.'), true);
  assert.equal(progress.text, 'The answer is 42.');
  const farewell = streamed('The answer is 42.');
  assert.equal(farewell.ending('Done.'), false);
  assert.equal(farewell.text, 'The answer is 42.');
  const result = new Shown().whole('a', '42');
  assert.equal(result.ending('I have computed the answer for you.'), false);
  assert.equal(result.text, '42', 'an artifact is never replaced by a message');
  const repeated = streamed('Thinking. ', '42');
  assert.equal(repeated.ending('42'), true);
  assert.equal(repeated.text, 'Thinking. 42');
});

test('a snapshot replaces all text, from tokens and artifacts', () => {
  assert.equal(streamed('a').first('x', 'b').snapshot('c').text, 'c');
  assert.equal(streamed('a').first('x', 'b').snapshot('c').whole('x', 'b').text, 'cb');
});

test('an artifact is folded like in a client, however it is split', () => {
  const text = fc.string({ unit: fc.constantFrom('a', 'b', ' '), minLength: 1, maxLength: 12 });
  fc.assert(
    fc.property(fc.array(text, { minLength: 1, maxLength: 8 }), chunks => {
      const shown = new Shown();
      for (const [index, chunk] of chunks.entries()) shown.chunk('a', chunk, { append: index > 0 });
      assert.equal(shown.text, chunks.join(''));
    }),
  );
});

test('tokens that an artifact repeats in different chunks are shown once, however both are split and mixed [S2-2]', () => {
  const cuts = fc.array(fc.nat({ max: 5 }), { maxLength: 20 });
  fc.assert(
    fc.property(
      fc.string({ minLength: 1, maxLength: 30 }),
      cuts,
      cuts,
      fc.array(fc.boolean()),
      (whole, tokenCuts, chunkCuts, order) => {
        const tokens = pieces(whole, tokenCuts);
        const chunks = pieces(whole, chunkCuts);
        const shown = new Shown();
        let behind = '';
        let opened = false;
        // The artifact follows the tokens, sometimes immediately.
        for (const token of tokens) {
          shown.token(token);
          behind += token;
          while (chunks.length > 0 && chunks[0]!.length <= behind.length && (order.pop() ?? false)) {
            const chunk = chunks.shift()!;
            shown.chunk('a', chunk, { append: opened });
            opened = true;
            behind = behind.slice(chunk.length);
          }
        }
        for (const chunk of chunks) {
          shown.chunk('a', chunk, { append: opened });
          opened = true;
        }
        shown.chunk('a', '', { append: true, last: true });
        assert.equal(shown.text, whole);
      },
    ),
  );
});

function pieces(whole: string, cuts: number[]): string[] {
  const all: string[] = [];
  let rest = whole;
  for (const cut of cuts) {
    if (rest.length === 0) break;
    all.push(rest.slice(0, cut + 1));
    rest = rest.slice(cut + 1);
  }
  if (rest.length > 0) all.push(rest);
  return all;
}
