import assert from 'node:assert/strict';
import { test } from 'node:test';
import { OpenAIError } from './openai-error.ts';
import { questionOf } from './question.ts';
import { completionRequestOf, responseRequestOf } from './requests.ts';
import { createdAtOf, responseIdOf, responseRefOf } from './response-id.ts';

const history = [
  { role: 'system', content: 'Be brief.' },
  { role: 'user', content: 'one' },
  { role: 'assistant', content: 'two' },
];

test('the messages after the last answer continue a conversation, and the others are left out', () => {
  const last = { role: 'user', content: 'three' };
  assert.deepEqual(questionOf([...history, last], 'messages', { isContinued: true }), [{ text: 'three' }]);
  const [before, question] = questionOf([...history, last], 'messages', { isContinued: false });
  assert.match(
    before!.text!,
    /^Earlier messages.*\n\nsystem: Be brief\.\n\nuser: one\n\nassistant: two\n\nAnswer this message:\n\n$/,
  );
  assert.deepEqual(question, { text: 'three' });
  assert.deepEqual(questionOf([last], 'messages', { isContinued: false }), [{ text: 'three' }]);
});

test('parts of both APIs become parts of A2A', () => {
  const content = [
    { type: 'input_text', text: 'see' },
    { type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA' } },
    { type: 'input_image', image_url: 'https://x.example/a.png' },
    { type: 'input_file', filename: 'a.pdf', file_data: 'data:application/pdf;base64,BBBB' },
    { type: 'input_audio', input_audio: { data: 'CCCC', format: 'mp3' } },
  ];
  assert.deepEqual(questionOf([{ role: 'user', content }], 'input', { isContinued: false }), [
    { text: 'see' },
    { raw: 'AAAA', mediaType: 'image/png' },
    { url: 'https://x.example/a.png' },
    { raw: 'BBBB', mediaType: 'application/pdf', filename: 'a.pdf' },
    { raw: 'CCCC', mediaType: 'audio/mpeg' },
  ]);
});

function paramOf(read: () => unknown): string | null {
  try {
    read();
  } catch (thrown) {
    assert.ok(thrown instanceof OpenAIError);
    return thrown.param;
  }
  return assert.fail('the request was accepted');
}

test('members that would change the answer are refused by name, and null or default values are not', () => {
  const messages = [{ role: 'user', content: 'x' }];
  const chat = (more: object) => completionRequestOf({ model: 'm', messages, ...more });
  assert.deepEqual(
    [{ n: 2 }, { tools: [{}] }, { logprobs: true }, { response_format: { type: 'json_object' } }, { audio: {} }].map(more =>
      paramOf(() => chat(more)),
    ),
    ['n', 'tools', 'logprobs', 'response_format', 'audio'],
  );
  chat({ n: 1, tools: [], logprobs: null, response_format: { type: 'text' }, temperature: 2, max_tokens: 1, user: 'u' });
  assert.equal(
    paramOf(() => chat({ model: '' })),
    'model',
  );
  assert.equal(
    paramOf(() => chat({ stream: 'yes' })),
    'stream',
  );
  assert.equal(
    paramOf(() => chat({ metadata: { a: 1 } })),
    'metadata',
  );
  const response = (more: object) => responseRequestOf({ model: 'm', input: 'x', ...more });
  assert.equal(
    paramOf(() => response({ text: { format: { type: 'json_schema' } } })),
    'text',
  );
  assert.equal(
    paramOf(() => response({ previous_response_id: 'resp_a', conversation: 'c' })),
    'conversation',
  );
  assert.equal(
    paramOf(() => response({ input: [{ type: 'function_call_output', output: '' }] })),
    'input[0]',
  );
  assert.equal(response({ conversation: { id: 'c' } }).contextId, 'c');
  assert.equal(completionRequestOf({ model: 'm', messages, metadata: { context_id: 'a' } }, { contextId: 'b' }).contextId, 'a');
});

test('the ids of responses name the task and the turn, and their times come from the task ids', () => {
  for (const ref of [
    { taskId: '01b8dac5-b9dd-7000-8000-1c0700000007', turn: 1 },
    { taskId: 'a_b-c', turn: 12 },
  ])
    assert.deepEqual(responseRefOf(responseIdOf(ref)), ref);
  for (const id of ['resp_', 'resp_a.0', 'resp_a.b', 'chatcmpl-a', 7]) assert.equal(responseRefOf(id), 'invalid');
  assert.equal(createdAtOf('01b8dac5-b9dd-7000-8000-1c0700000007'), Math.floor(0x01b8dac5b9dd / 1_000));
  assert.equal(createdAtOf('mine'), 0);
});
