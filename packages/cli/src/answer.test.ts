import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { Answer } from './answer.ts';

/** What a reader has who throws away what is void. */
function reader(resumed = false) {
  const seen = { text: '', voids: 0 };
  const again = () => {
    seen.text = '';
    seen.voids += 1;
  };
  const answer = new Answer({ text: text => (seen.text += text), again }, resumed);
  const say = (artifactId: string, text: string, { append = true, last = false, name = 'streaming_result' } = {}) =>
    answer.update({ taskId: 't', contextId: 'c', artifact: { artifactId, name, parts: [{ text }] }, append, lastChunk: last });
  const whole = (text: string, id = 'whole') => say(id, text, { append: false, last: true, name: 'partial_result' });
  return { answer, seen, say, whole };
}

type Op = { id: string; text: string; replace: boolean; last: boolean };

const ops = fc.array(
  fc.record({
    id: fc.constantFrom('a', 'b', 'c'),
    text: fc.string({ unit: fc.constantFrom('x', 'y', '\n', '🎯'), maxLength: 3 }),
    replace: fc.boolean(),
    last: fc.boolean(),
  }),
  { maxLength: 30 },
);

function fold(list: readonly Op[]): string {
  const texts = new Map<string, string>();
  for (const { id, text, replace } of list) texts.set(id, replace ? text : (texts.get(id) ?? '') + text);
  return [...texts.values()].join('');
}

test('whatever agents say at the same time and say anew, the reader has every text once, in order of opening', () => {
  fc.assert(
    fc.property(ops, fc.boolean(), (list, withWhole) => {
      const { answer, seen, say, whole } = reader();
      const closed = new Set<string>();
      const legal = list.filter(({ id, last }) => {
        if (closed.has(id)) return false;
        if (last) closed.add(id);
        return true;
      });
      for (const { id, text, replace, last } of legal) say(id, text, { append: !replace, last });
      if (withWhole) whole(fold(legal));
      answer.end();
      assert.equal(seen.text, fold(legal));
    }),
  );
});

test('text is shown as it comes, and that of a second agent when the first has ended', () => {
  const { seen, say } = reader();
  say('a', 'one ', { append: false });
  assert.equal(seen.text, 'one ');
  say('b', 'three', { append: false });
  say('a', 'two ');
  assert.equal(seen.text, 'one two ');
  say('a', '', { last: true });
  assert.equal(seen.text, 'one two three');
});

test('an attempt that says the same again is not shown again; one that says something else begins anew', () => {
  const { seen, say, whole } = reader();
  say('a', 'one two', { append: false });
  for (const [text, append] of [
    ['one', false],
    [' two', true],
    [' three', true],
  ] as const)
    say('a', text, { append });
  assert.deepEqual(seen, { text: 'one two three', voids: 0 });
  say('a', 'on second', { append: false });
  assert.deepEqual(seen, { text: 'on second', voids: 1 });
  say('a', ' thought', { last: true });
  whole('on second thought');
  assert.deepEqual(seen, { text: 'on second thought', voids: 1 });
});

test('an attempt that ends earlier than the dead one had come is shown as it is', () => {
  const { seen, say } = reader();
  say('a', 'one two', { append: false });
  say('a', 'one', { append: false, last: true });
  assert.deepEqual(seen, { text: 'one', voids: 1 });
});

test('the whole answer at the end adds what was missing, also when it comes in pieces, and is all there is where nothing was streamed', () => {
  const streamed = reader();
  streamed.say('a', 'one ', { append: false });
  streamed.whole('one two');
  assert.deepEqual(streamed.seen, { text: 'one two', voids: 0 });
  const alone = reader();
  alone.say('w', 'one ', { append: false, name: 'final_result' });
  assert.equal(alone.seen.text, '');
  alone.say('w', 'two', { last: true, name: 'final_result' });
  assert.equal(alone.seen.text, 'one two');
});

test('turns follow each other, and a snapshot after a gap shows nothing twice', () => {
  const { answer, seen, say, whole } = reader();
  say('a', 'one ', { append: false, last: true });
  whole('one ', 'w1');
  say('b', 'two ', { append: false, last: true });
  answer.end();
  say('c', 'thr', { append: false });
  const artifact = (artifactId: string, text: string, name = 'streaming_result') => ({ artifactId, name, parts: [{ text }] });
  answer.snapshot([
    artifact('a', 'one '),
    artifact('w1', 'one ', 'partial_result'),
    artifact('b', 'two '),
    artifact('c', 'three'),
  ]);
  say('c', '!', { last: true });
  whole('three!', 'w2');
  assert.deepEqual(seen, { text: 'one two three!', voids: 0 });
});

test('a whole answer of the newest turn alone is no contradiction to a turn that was broken off', () => {
  const { seen, say, whole } = reader();
  say('a', 'broken', { append: false, last: true });
  say('b', 'new', { append: false, last: true });
  whole('new');
  assert.deepEqual(seen, { text: 'brokennew', voids: 0 });
});

test('who begins within an answer is not shown its beginning', () => {
  const { seen, say, whole } = reader(true);
  say('a', ' two');
  whole('one two');
  assert.deepEqual(seen, { text: ' two', voids: 0 });
});

test('what earlier turns said is not part of a later one', () => {
  const { answer, seen } = reader();
  answer.skip([{ artifactId: 'a', parts: [{ text: 'old' }] }]);
  answer.snapshot([
    { artifactId: 'a', parts: [{ text: 'old' }] },
    { artifactId: 'b', parts: [{ text: 'new' }] },
  ]);
  assert.equal(seen.text, 'new');
});
