import assert from 'node:assert/strict';
import { test } from 'node:test';
import { frameText } from './frame-text.ts';

const ids = { taskId: '01a2', contextId: 'c-1' };

test('a row of a frame shows its state, its artifact and its text, in every dialect', () => {
  const artifact = { artifactId: 'a', name: 'answer', parts: [{ text: 'two\nlines' }] };
  assert.equal(frameText({ artifactUpdate: { ...ids, artifact } } as object), 'answer  "two\\nlines"');
  assert.equal(
    frameText({ statusUpdate: { ...ids, status: { state: 'TASK_STATE_INPUT_REQUIRED' } } } as object),
    'input-required',
  );
  const message = { parts: [{ text: 'Which one?' }] };
  const result = { kind: 'status-update', ...ids, status: { state: 'working', message } };
  assert.equal(frameText({ jsonrpc: '2.0', id: '1', result } as object), 'working  "Which one?"');
  const file = { artifact: { name: 'plan', parts: [{ url: 'https://a/b', filename: 'b.pdf', mediaType: 'application/pdf' }] } };
  assert.equal(frameText({ artifactUpdate: file } as object), 'plan  "[file b.pdf (application/pdf)]\\n"');
  assert.equal(frameText({ task: { id: '01a2', status: { state: 'TASK_STATE_SUBMITTED' } } } as object), 'submitted');
});

test('a frame of an unknown kind is shown unchanged', () => {
  assert.equal(frameText({ error: { code: -32001 } } as object), '{"error":{"code":-32001}}');
});
