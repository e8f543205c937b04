import assert from 'node:assert/strict';
import { test } from 'node:test';
import { RunInputError, runRequestOf } from './run-input.ts';

const user = (content: unknown, id = 'u') => ({ id, role: 'user', content });
const input = (more: object) => ({ threadId: 't', runId: 'r', messages: [user('hello')], ...more });

test('the last message of the user is the question, with its parts', () => {
  const image = { type: 'image', source: { type: 'data', value: 'AAAA', mimeType: 'image/png' } };
  const content = [{ type: 'text', text: 'see' }, image, { type: 'document', source: { type: 'url', value: 'https://x/a' } }];
  const messages = [
    user('old', 'o'),
    { id: 'a', role: 'assistant', content: 'answer' },
    user(content),
    { id: 'b', role: 'assistant' },
  ];
  const asked = runRequestOf(input({ messages, state: { mine: 1 } }));
  assert.deepEqual(asked.parts, [{ text: 'see' }, { raw: 'AAAA', mediaType: 'image/png' }, { url: 'https://x/a' }]);
  assert.deepEqual([asked.messages.length, asked.state, asked.interrupt], [3, { mine: 1 }, undefined]);
});

test('an answer to an interrupt is its payload', () => {
  const resumed = (payload: unknown, status = 'resolved') =>
    runRequestOf(input({ resume: [{ interruptId: 'task-1.2', status, payload }] }));
  assert.deepEqual(resumed('blue').parts, [{ text: 'blue' }]);
  assert.deepEqual(resumed({ answer: 'blue' }).parts, [{ text: 'blue' }]);
  assert.deepEqual(resumed({ ok: true, answer: 'blue' }).parts, [{ data: { ok: true, answer: 'blue' } }]);
  assert.deepEqual(resumed(false).parts, [{ data: false }]);
  assert.deepEqual(resumed(undefined, 'cancelled').interrupt, { taskId: 'task-1', turn: 2, isCancelled: true });
});

test('invalid input is refused, and the error names the member', () => {
  const wrong: [object, RegExp][] = [
    [input({ threadId: '' }), /^threadId/],
    [input({ runId: 1 }), /^runId/],
    [input({ messages: 'x' }), /^messages must/],
    [input({ messages: [] }), /^messages\[0\]\.content/],
    [input({ messages: [user([{ type: 'image', source: { type: 'file', value: 'f' } }])] }), /^messages\[0\]\.content\[0\]/],
    [input({ resume: [{ interruptId: 'x', status: 'resolved' }] }), /^resume\[0\]\.interruptId/],
    [input({ resume: [{ interruptId: 'x.1', status: 'resolved' }] }), /^resume\[0\]\.payload/],
    [input({ resume: [{}, {}] }), /^resume must/],
  ];
  for (const [body, message] of wrong)
    assert.throws(
      () => runRequestOf(body),
      thrown => thrown instanceof RunInputError && message.test(thrown.message),
    );
});
