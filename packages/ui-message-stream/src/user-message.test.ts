import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ChatMessageError, uiChatRequestOf } from './user-message.ts';

const user = (...parts: object[]) => ({ id: 'm1', role: 'user', parts });
const request = (messages: unknown, trigger: unknown = 'submit-message', chatId: unknown = 'chat-1') =>
  uiChatRequestOf({ chatId, messages, trigger }, () => 'new-id');

test('the last message of the user is sent with its text, files and data', () => {
  const message = user(
    { type: 'step-start' },
    { type: 'text', text: 'hello' },
    { type: 'file', url: 'data:image/png;base64,AAAA', mediaType: 'image/png', filename: 'a.png' },
    { type: 'file', url: 'data:text/plain,%C3%B8' },
    { type: 'file', url: 'https://example.org/x', mediaType: 'text/css' },
    { type: 'data-place', data: { lat: 1 } },
  );
  assert.deepEqual(request([{ id: 'a', role: 'assistant', parts: [] }, message]), {
    contextId: 'chat-1',
    messageId: 'm1',
    parts: [
      { text: 'hello' },
      { raw: 'AAAA', mediaType: 'image/png', filename: 'a.png' },
      { raw: 'w7g=', mediaType: 'text/plain' },
      { url: 'https://example.org/x', mediaType: 'text/css' },
      { data: { lat: 1 }, metadata: { type: 'data-place' } },
    ],
    taskId: undefined,
    turn: { messageId: 'answer-m1', continues: false },
  });
});

test('a decision about a call goes to its task, and continues the message that has the call', () => {
  const part = (id: string, approval: object, state = 'approval-responded') => {
    return {
      type: 'dynamic-tool',
      toolName: 'refund',
      toolCallId: `call-1-1/${id}`,
      state,
      input: {},
      approval: { id, ...approval },
    };
  };
  const asking = (...parts: object[]) => {
    return { id: 'answer-m1', role: 'assistant', metadata: { hopline: { taskId: 't1', state: 'input-required' } }, parts };
  };
  const denied = asking(part('c0', { approved: true }, 'output-available'), part('c1', { approved: false, reason: 'too late' }));
  const decided = {
    contextId: 'chat-1',
    messageId: 'approval-c1',
    parts: [{ data: { approvalResponse: { callId: 'c1', approved: false, reason: 'too late' } } }],
    taskId: 't1',
    turn: {
      messageId: 'answer-m1',
      continues: true,
      approvals: [{ callId: 'c1', approved: false, reason: 'too late', toolCallId: 'call-1-1/c1' }],
    },
  };
  assert.deepEqual(request([user({ type: 'text', text: 'x' }), denied]), decided);
  // The user has sent another message before the decision.
  const messages = [denied, user({ type: 'text', text: 'x' })];
  const named = { chatId: 'chat-1', messages, trigger: 'submit-message', messageId: 'answer-m1' };
  assert.deepEqual(
    uiChatRequestOf(named, () => 'new-id'),
    decided,
  );
  assert.equal(request(messages).messageId, 'm1');
  assert.throws(() => request([{ ...denied, metadata: undefined }]), /must keep the metadata/);
  assert.throws(() => request([asking(part('c1', {}, 'approval-requested'))]), /approval-responded/);
});

test('an answer goes to the task that asks, and a regenerated answer is another task', () => {
  const asking = { id: 'a', role: 'assistant', parts: [], metadata: { hopline: { taskId: 't1', state: 'input-required' } } };
  const text = user({ type: 'text', text: 'this one' });
  assert.equal(request([asking, text]).taskId, 't1');
  assert.equal(request([{ ...asking, metadata: { hopline: { taskId: 't1', state: 'completed' } } }, text]).taskId, undefined);
  const again = request([asking, text], 'regenerate-message');
  assert.deepEqual([again.taskId, again.messageId], [undefined, 'new-id']);
});

test('an edited message, which keeps its id in the page, begins another task, even after a question', () => {
  const asking = { id: 'a', role: 'assistant', parts: [], metadata: { hopline: { taskId: 't1', state: 'input-required' } } };
  const messages = [asking, user({ type: 'text', text: 'another' })];
  const edited = (messageId?: string) =>
    uiChatRequestOf({ chatId: 'chat-1', messages, trigger: 'submit-message', messageId }, () => 'new-id');
  assert.deepEqual([edited('m1').messageId, edited('m1').taskId], ['new-id', undefined]);
  assert.deepEqual([edited().messageId, edited('a').messageId], ['m1', 'm1']);
});

test('a wrong request is refused with the path of the wrong member', () => {
  const text = { type: 'text', text: 'x' };
  const cases: [() => unknown, RegExp][] = [
    [() => request([user(text)], 'submit-message', ''), /^id must be/],
    [() => request({}), /^messages must be/],
    [() => request([user(text)], 'resume'), /^trigger must be/],
    [() => request([]), /^messages\[0\] must be a message of the user/],
    [() => request([user(text), { id: 'a', role: 'assistant', parts: [] }]), /^messages\[1\] must be/],
    [() => request([{ role: 'user', parts: [text] }]), /^messages\[0\]\.id must be/],
    [() => request([{ id: 'm', role: 'user' }]), /^messages\[0\]\.parts must be an array/],
    [() => request([user({ type: 'text', text: '' })]), /^messages\[0\]\.parts must have/],
    [() => request([user({ type: 'text' })]), /^messages\[0\]\.parts\[0\]\.text must be/],
    [() => request([user('x' as never)]), /^messages\[0\]\.parts\[0\] must be a part/],
    [() => request([user({ type: 'file', url: 'file:///etc/passwd' })]), /\.url must be a data URL, or one of http/],
    [() => request([user({ type: 'file', url: 'data:text/plain,%E0%A4%A' })]), /\.url must be a valid data URL/],
  ];
  for (const [run, message] of cases)
    assert.throws(run, (thrown: unknown) => thrown instanceof ChatMessageError && message.test(thrown.message));
});
