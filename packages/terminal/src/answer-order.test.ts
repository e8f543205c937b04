import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Artifact, TaskState } from '@hopline/a2a';
import { type ViewChange, ViewFold } from '@hopline/task-view';
import fc from 'fast-check';
import { AnswerOrder } from './answer-order.ts';

/** Collects the printed text, and discards void text as a reader does. */
function reader(resumed = false) {
  const seen = { text: '', restarts: 0 };
  const restart = () => {
    seen.text = '';
    seen.restarts += 1;
  };
  const append = (text: string) => {
    seen.text += text;
  };
  const fold = new ViewFold({ resumed, answerNames: [] });
  const order = new AnswerOrder({ text: append, restart });
  const print = (changes: readonly ViewChange[]) => order.add(changes, () => fold.view.texts);
  const write = (artifactId: string, text: string, { append = true, last = false, name = 'streaming_result' } = {}) => {
    const artifact = { artifactId, name, parts: [{ text }] };
    print(fold.add({ event: { artifactUpdate: { taskId: 't', contextId: 'c', artifact, append, lastChunk: last } } }));
  };
  const whole = (text: string, id = 'whole') => write(id, text, { append: false, last: true, name: 'partial_result' });
  const task = (state: TaskState, artifacts: Artifact[]) =>
    print(fold.add({ event: { task: { id: 't', contextId: 'c', status: { state }, artifacts } } }));
  const status = (state: TaskState) =>
    print(fold.add({ event: { statusUpdate: { taskId: 't', contextId: 'c', status: { state } } } }));
  return { seen, write, whole, task, status, end: () => print(fold.end()), answer: () => fold.view.answer };
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

/** An artifact opens with its first text. */
function fold(list: readonly Op[]): string {
  const texts = new Map<string, string>();
  for (const { id, text, replace } of list)
    if (text !== '' || texts.has(id)) texts.set(id, replace ? text : (texts.get(id) ?? '') + text);
  return [...texts.values()].join('');
}

test('concurrent and replaced texts each reach the reader once, in the order in which their artifacts opened', () => {
  fc.assert(
    fc.property(ops, fc.boolean(), (list, withWhole) => {
      const { seen, write, whole, end } = reader();
      const closed = new Set<string>();
      const legal = list.filter(({ id, last }) => {
        if (closed.has(id)) return false;
        if (last) closed.add(id);
        return true;
      });
      for (const { id, text, replace, last } of legal) write(id, text, { append: !replace, last });
      if (withWhole) whole(fold(legal));
      end();
      assert.equal(seen.text, fold(legal));
    }),
  );
});

test('the printed text equals the answer of the view, even when an agent writes again after its last chunk', () => {
  fc.assert(
    fc.property(ops, list => {
      const { seen, write, end, answer } = reader();
      for (const { id, text, replace, last } of list) write(id, text, { append: !replace, last });
      end();
      assert.equal(seen.text, answer());
    }),
  );
});

test('text is printed as it arrives; the text of a second agent waits until the first has ended', () => {
  const { seen, write } = reader();
  write('a', 'one ', { append: false });
  assert.equal(seen.text, 'one ');
  write('b', 'three', { append: false });
  write('a', 'two ');
  assert.equal(seen.text, 'one two ');
  write('a', '', { last: true });
  assert.equal(seen.text, 'one two three');
});

test('a retry that repeats its text is not printed again; a retry that differs starts the answer over', () => {
  const { seen, write, whole } = reader();
  write('a', 'one two', { append: false });
  for (const [text, append] of [
    ['one', false],
    [' two', true],
    [' three', true],
  ] as const)
    write('a', text, { append });
  assert.deepEqual(seen, { text: 'one two three', restarts: 0 });
  write('a', 'on second', { append: false });
  assert.deepEqual(seen, { text: 'on second', restarts: 1 });
  write('a', ' thought', { last: true });
  whole('on second thought');
  assert.deepEqual(seen, { text: 'on second thought', restarts: 1 });
});

test('a retry that ends with less text than the failed attempt starts the answer over', () => {
  const { seen, write } = reader();
  write('a', 'one two', { append: false });
  write('a', 'one', { append: false, last: true });
  assert.deepEqual(seen, { text: 'one', restarts: 1 });
});

test('the whole answer at the end adds missing text, even if it comes in pieces, and is printed if nothing was streamed', () => {
  const streamed = reader();
  streamed.write('a', 'one ', { append: false });
  streamed.whole('one two');
  assert.deepEqual(streamed.seen, { text: 'one two', restarts: 0 });
  const alone = reader();
  alone.write('w', 'one ', { append: false, name: 'final_result' });
  assert.equal(alone.seen.text, '');
  alone.write('w', 'two', { last: true, name: 'final_result' });
  assert.equal(alone.seen.text, 'one two');
});

test('turns follow each other, and a snapshot after a gap does not repeat text', () => {
  const { seen, write, whole, task, status } = reader();
  task('TASK_STATE_WORKING', []);
  write('a', 'one ', { append: false, last: true });
  whole('one ', 'w1');
  status('TASK_STATE_INPUT_REQUIRED');
  write('b', 'two ', { append: false, last: true });
  status('TASK_STATE_INPUT_REQUIRED');
  write('c', 'thr', { append: false });
  const artifact = (artifactId: string, text: string, name = 'streaming_result') => ({ artifactId, name, parts: [{ text }] });
  task('TASK_STATE_WORKING', [
    artifact('a', 'one '),
    artifact('w1', 'one ', 'partial_result'),
    artifact('b', 'two '),
    artifact('c', 'three'),
  ]);
  write('c', '!', { last: true });
  whole('three!', 'w2');
  assert.deepEqual(seen, { text: 'one two three!', restarts: 0 });
});

test('a whole answer with only the newest turn does not contradict an interrupted earlier turn', () => {
  const { seen, write, whole } = reader();
  write('a', 'broken', { append: false, last: true });
  write('b', 'new', { append: false, last: true });
  whole('new');
  assert.deepEqual(seen, { text: 'brokennew', restarts: 0 });
});

test("a stream that begins within an answer does not print the answer's beginning", () => {
  const { seen, write, whole } = reader(true);
  write('a', ' two');
  whole('one two');
  assert.deepEqual(seen, { text: ' two', restarts: 0 });
});

test('a whole answer after thousands of artifacts is compared without a copy of the text for each', () => {
  const { seen, write, whole } = reader();
  const text = (index: number) => `${index} `.padEnd(1_000, '.');
  const texts = Array.from({ length: 5_000 }, (_, index) => text(index));
  for (const [index, one] of texts.entries()) write(`a${index}`, one, { append: false, last: true });
  whole(`${texts.join('')}the end`);
  assert.deepEqual([seen.text.length, seen.text.endsWith('the end'), seen.restarts], [5_000_007, true, 0]);
});

test('a retry that repeats a long text in small parts is compared part by part', () => {
  const { seen, write } = reader();
  const text = Array.from({ length: 100_000 }, (_, index) => `word ${index} `);
  write('a', text.join(''), { append: false });
  for (const [index, word] of text.entries()) write('a', word, { append: index > 0 });
  write('a', 'new');
  assert.deepEqual([seen.text, seen.restarts], [`${text.join('')}new`, 0]);
});

test('a retry that differs after a repeated part starts over with all of its own text', () => {
  const { seen, write } = reader();
  write('a', 'one two three', { append: false });
  write('a', 'one ', { append: false });
  write('a', 'two ');
  write('a', 'four');
  assert.deepEqual([seen.text, seen.restarts], ['one two four', 1]);
});
