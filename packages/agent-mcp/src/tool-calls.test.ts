import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Part } from '@hopline/a2a';
import { MESSAGE_CALLS_MAX, NESTED_MAX } from './limits.ts';
import { findCalls } from './tool-calls.ts';

const TOOLS = new Set(['echo', 'get-sum', 'fs/read_file', 'a.b']);
const find = (...parts: (string | Part)[]) =>
  findCalls(
    parts.map(part => (typeof part === 'string' ? { text: part } : part)),
    name => TOOLS.has(name),
  );

test('a call is found anywhere in the text', () => {
  assert.deepEqual(find('please run `echo {"message":"hi"}`, thanks'), { calls: [{ tool: 'echo', args: { message: 'hi' } }] });
  assert.deepEqual(find('echo{"message":"hi"}').calls?.length, 1);
  assert.deepEqual(find('echo\n{"message":"hi"}').calls?.length, 1);
  assert.deepEqual(find('x fs/read_file {"path":"/a"}').calls?.[0]?.tool, 'fs/read_file');
});

test('braces and quotes inside the arguments do not end them', () => {
  const args = { message: 'echo {"a":1} "}" \\', nested: { deep: [{ x: '{' }] } };
  assert.deepEqual(find(`echo ${JSON.stringify(args)} tail`), { calls: [{ tool: 'echo', args }] });
});

test('several calls keep their order, over text and data parts', () => {
  const found = find('first echo {"n":1} then get-sum {"n":2}', { data: { tool: 'a.b', arguments: { n: 3 } } }, 'echo {"n":4}');
  assert.deepEqual(
    found.calls?.map(call => [call.tool, call.args.n]),
    [
      ['echo', 1],
      ['get-sum', 2],
      ['a.b', 3],
      ['echo', 4],
    ],
  );
});

test('adjacent text parts are read as one text [S1-6]', () => {
  assert.deepEqual(find('ec', 'ho {"mess', 'age":"hi"}'), { calls: [{ tool: 'echo', args: { message: 'hi' } }] });
});

test('a data part may omit the arguments', () => {
  assert.deepEqual(find({ data: { tool: 'echo' } }), { calls: [{ tool: 'echo', args: {} }] });
  assert.match(find({ data: { tool: 'echo', arguments: [1] } }).rejection ?? '', /the arguments of echo are not an object/);
});

test('an unknown tool is rejected without quoting the message', () => {
  for (const found of [find('secret-tool {"a":1}'), find({ data: { tool: 'secret-tool' } }), find('echo {} echoo {"a":1}')]) {
    assert.equal(found.rejection, 'the agent has no tool of that name');
  }
});

test('arguments that are not JSON are rejected', () => {
  for (const text of ['echo {message: hi}', 'echo {"message":"hi"', 'echo {"a":1,}']) {
    assert.equal(find(text).rejection, 'the arguments of echo are not a JSON object');
  }
});

test('prose and bare objects are not calls', () => {
  for (const text of [
    '',
    'hello',
    'a set {a, b}',
    '{"a":1}',
    'list: {"a":1}',
    'unclosed {{{',
    '```\n{"echo {\\"a\\":1}": 2}\n```',
  ]) {
    assert.deepEqual(find(text), { calls: [] }, text);
  }
  assert.deepEqual(find({ data: { other: 1 } }, { url: 'https://x.test/' }), { calls: [] });
});

test('the number of calls is bounded', () => {
  assert.equal(find('echo {}'.repeat(MESSAGE_CALLS_MAX)).calls?.length, MESSAGE_CALLS_MAX);
  assert.equal(find('echo {} '.repeat(MESSAGE_CALLS_MAX)).calls?.length, MESSAGE_CALLS_MAX);
  assert.match(find('echo {} '.repeat(MESSAGE_CALLS_MAX + 1)).rejection ?? '', /more than 32 tool calls/);
});

test('a call nested in NESTED_MAX non-JSON braces is not found, even if they are closed; a call after them is found', () => {
  const inside = (depth: number, end: string) => find(`${'{'.repeat(depth)} echo {"a":1} ${end.repeat(depth)}`).calls?.length;
  for (const end of ['', '}']) {
    assert.equal(inside(NESTED_MAX - 1, end), 1);
    assert.equal(inside(NESTED_MAX, end), 0);
  }
  assert.equal(find(`${'{'.repeat(1_000)}${'}'.repeat(1_000)} echo {"a":1}`).calls?.length, 1);
});
