import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readMessage } from './graph-message.ts';
import { INVOCATIONS_MAX, Invocations } from './invocations.ts';

const origin = { node: 'n', namespace: 'n:1' };
const chunk = (id: string | undefined, content: unknown, more: object = {}) =>
  readMessage({ type: 'AIMessageChunk', id, content, ...more })!;
const whole = (id: string | undefined, content: string) => readMessage({ type: 'ai', id, content })!;

test('chunks belong to the invocation with their id, even when interleaved [S1-25]', () => {
  const invocations = new Invocations();
  const events = [
    ...invocations.add(chunk('a', 'A'), origin),
    ...invocations.add(chunk('b', 'B'), origin),
    ...invocations.add(chunk('a', 'a'), origin),
  ];
  assert.deepEqual(
    events.map(event => event.type === 'text' && [event.stream, event.text]),
    [
      ['a', 'A'],
      ['b', 'B'],
      ['a', 'a'],
    ],
  );
  assert.ok(invocations.has('Aa') && invocations.has('B') && !invocations.has('A'));
});

test('a model that changes its id before its first text is one invocation; chunks without an id are grouped by namespace', () => {
  const invocations = new Invocations();
  assert.deepEqual([...invocations.add(chunk('msg_1', ''), origin)], []);
  const [first] = invocations.add(chunk('run-1', [{ type: 'text', text: 'x' }]), origin);
  assert.equal(first?.type === 'text' && first.stream, 'run-1');
  const [unnamed] = invocations.add(chunk(undefined, 'y'), origin);
  assert.equal(unnamed?.type === 'text' && unnamed.stream, 'in n:1');
});

test('an invocation ends once, with its last chunk or with its node', () => {
  const invocations = new Invocations();
  assert.deepEqual(
    [...invocations.add(chunk('a', 'A', { chunk_position: 'last' }), origin)].map(event => event.type),
    ['text', 'text-end'],
  );
  assert.deepEqual([...invocations.endOf('n', [])], []);
  [...invocations.add(chunk('b', 'B'), { node: 'n', namespace: 'sub:7|n:1' })];
  assert.deepEqual([...invocations.endOf('n', [])], [], 'the node of another graph');
  assert.deepEqual([...invocations.endOf('n', ['sub:7'])], [{ type: 'text-end', stream: 'b' }]);
});

test('a whole message that was streamed adds nothing: with the same id every time, as a copy only once [S2-2]', () => {
  const invocations = new Invocations();
  [...invocations.add(chunk('a', 'yes'), origin)];
  assert.deepEqual([...invocations.add(whole('a', 'yes'), origin)], []);
  assert.deepEqual([...invocations.add(whole('copy', 'yes'), origin)], []);
  assert.equal([...invocations.add(whole('another', 'yes'), origin)].length, 2, 'another model may produce the same text');
  assert.equal([...invocations.add(whole('later', 'yes'), origin)].length, 2);
});

test('the number of tracked invocations is bounded: the oldest ended one is dropped first', () => {
  const invocations = new Invocations();
  for (let index = 0; index < INVOCATIONS_MAX; index++)
    [...invocations.add(chunk(`i${index}`, `${index}`, index === 1 ? { chunk_position: 'last' } : {}), origin)];
  assert.ok(invocations.has('1'));
  [...invocations.add(chunk('more', 'more'), origin)];
  assert.ok(invocations.has('0') && invocations.has('more') && !invocations.has('1'));
});

test('with more open invocations than the limit the oldest one ends, and the others keep their texts', () => {
  const invocations = new Invocations();
  for (let index = 0; index < INVOCATIONS_MAX; index++) [...invocations.add(chunk(`i${index}`, `${index}`), origin)];
  assert.deepEqual(
    [...invocations.add(chunk('more', 'more'), origin)].map(event => [event.type, 'stream' in event && event.stream]),
    [
      ['text-end', 'i0'],
      ['text', 'more'],
    ],
  );
  assert.ok(!invocations.has('0') && invocations.has('1') && invocations.has('more'));
  const ends = [...invocations.endOf('n', [])];
  assert.equal(ends.length, INVOCATIONS_MAX);
});
