import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readMessage } from './graph-message.ts';
import { INVOCATIONS_MAX, Invocations } from './invocations.ts';

const origin = { node: 'n', namespace: 'n:1' };
const chunk = (id: string | undefined, content: unknown, more: object = {}) =>
  readMessage({ type: 'AIMessageChunk', id, content, ...more })!;
const whole = (id: string | undefined, content: string) => readMessage({ type: 'ai', id, content })!;

test('chunks belong to the invocation of their id, whatever comes between them [S1-25]', () => {
  const said = new Invocations();
  const events = [
    ...said.say(chunk('a', 'A'), origin),
    ...said.say(chunk('b', 'B'), origin),
    ...said.say(chunk('a', 'a'), origin),
  ];
  assert.deepEqual(
    events.map(event => event.type === 'text' && [event.stream, event.text]),
    [
      ['a', 'A'],
      ['b', 'B'],
      ['a', 'a'],
    ],
  );
  assert.ok(said.has('Aa') && said.has('B') && !said.has('A'));
});

test('a model that changes its id before it says anything is one invocation; one without any id is told by its place', () => {
  const said = new Invocations();
  assert.deepEqual([...said.say(chunk('msg_1', ''), origin)], []);
  const [first] = said.say(chunk('run-1', [{ type: 'text', text: 'x' }]), origin);
  assert.equal(first?.type === 'text' && first.stream, 'run-1');
  const [unnamed] = said.say(chunk(undefined, 'y'), origin);
  assert.equal(unnamed?.type === 'text' && unnamed.stream, 'in n:1');
});

test('an invocation ends with its last chunk, or with its node, and once', () => {
  const said = new Invocations();
  assert.deepEqual(
    [...said.say(chunk('a', 'A', { chunk_position: 'last' }), origin)].map(event => event.type),
    ['text', 'text-end'],
  );
  assert.deepEqual([...said.endOf('n', [])], []);
  [...said.say(chunk('b', 'B'), { node: 'n', namespace: 'sub:7|n:1' })];
  assert.deepEqual([...said.endOf('n', [])], [], 'the node of another graph');
  assert.deepEqual([...said.endOf('n', ['sub:7'])], [{ type: 'text-end', stream: 'b' }]);
});

test('a whole message that was streamed is silent: the same one always, a copy of it once [S2-2]', () => {
  const said = new Invocations();
  [...said.say(chunk('a', 'yes'), origin)];
  assert.deepEqual([...said.say(whole('a', 'yes'), origin)], []);
  assert.deepEqual([...said.say(whole('copy', 'yes'), origin)], []);
  assert.equal([...said.say(whole('another', 'yes'), origin)].length, 2, 'said by somebody else, who may say the same');
  assert.equal([...said.say(whole('later', 'yes'), origin)].length, 2);
});

test('so many invocations are remembered; of more, the oldest that has ended is forgotten', () => {
  const said = new Invocations();
  for (let index = 0; index < INVOCATIONS_MAX; index++)
    [...said.say(chunk(`i${index}`, `${index}`, index === 1 ? { chunk_position: 'last' } : {}), origin)];
  assert.ok(said.has('1'));
  [...said.say(chunk('more', 'more'), origin)];
  assert.ok(said.has('0') && said.has('more') && !said.has('1'));
});
