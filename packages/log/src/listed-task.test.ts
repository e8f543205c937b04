import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Message, Task } from '@hopline/a2a';
import {
  agentsOf,
  hasText,
  LISTED_AGENTS_BYTES_MAX,
  LISTED_TASK_BYTES_MAX,
  LISTED_TEXT_BYTES_MAX,
  listedTaskOf,
  taskOfRow,
} from './listed-task.ts';

const AT = 1_790_000_000_000;
const timestamp = new Date(AT).toISOString();
const user = (text: string, n = 1): Message => ({ messageId: `m${n}`, role: 'ROLE_USER', parts: [{ text }] });
const taskOf = (more: Partial<Task>): Task => ({
  id: 't',
  contextId: 'c',
  status: { state: 'TASK_STATE_COMPLETED', timestamp },
  ...more,
});
const bytesOf = (value: unknown) => Buffer.byteLength(JSON.stringify(value));
const answer = (...texts: string[]) => ({ artifacts: texts.map((text, n) => ({ artifactId: `a${n}`, parts: [{ text }] })) });

test('a short task is listed with its whole history, its metadata and the beginning of its newest text', () => {
  const history = [user('which one?')];
  const metadata = { a: 1 };
  const listed = listedTaskOf(taskOf({ history, metadata, ...answer('a plan', 'this one', '') }), AT);
  assert.deepEqual(listed, { messages: 1, history, metadata, answer: 'this one', agents: [] });
});

test('a history is listed if it fits to the byte; a longer one is listed without its oldest messages', () => {
  const room = LISTED_TASK_BYTES_MAX - bytesOf({ messages: 1, agents: [], history: [user('')] });
  const fits = listedTaskOf(taskOf({ history: [user('x'.repeat(room))] }), AT);
  assert.equal(bytesOf(fits), LISTED_TASK_BYTES_MAX);
  assert.equal(fits.history?.length, 1);
  const longer = listedTaskOf(taskOf({ history: [user('x'.repeat(room + 1))] }), AT);
  assert.deepEqual(longer, { messages: 1, question: 'x'.repeat(LISTED_TEXT_BYTES_MAX - 2), agents: [] });
  const many = Array.from({ length: 40 }, (_, n) => user(`question ${n}`, n));
  const listed = listedTaskOf(taskOf({ history: many }), AT);
  assert.ok(bytesOf(listed) <= LISTED_TASK_BYTES_MAX);
  assert.deepEqual(listed.history, many.slice(-listed.history!.length));
  assert.deepEqual([listed.messages, listed.question], [40, 'question 0']);
});

test('no task takes more bytes than a row has room for, whatever its characters', () => {
  for (const character of ['x', 'ä', '€', '🚂', '"', '\u0000', '\ud800']) {
    const text = character.repeat(3_000);
    const message: Message = { messageId: 'm', role: 'ROLE_AGENT', parts: [{ text }] };
    const status = { state: 'TASK_STATE_FAILED', timestamp, message } as const;
    for (const more of [{}, { status }, { metadata: { text } }]) {
      const listed = listedTaskOf(taskOf({ history: [user(text)], ...answer(text), ...more }), AT);
      assert.ok(bytesOf(listed) <= LISTED_TASK_BYTES_MAX, `${bytesOf(listed)}`);
      assert.ok(bytesOf(listed.question) <= LISTED_TEXT_BYTES_MAX && bytesOf(listed.answer) <= LISTED_TEXT_BYTES_MAX);
      assert.ok(text.startsWith(listed.question!) && listed.question !== '');
      assert.equal(listed.cut === true, 'status' in more || 'metadata' in more, 'a list reads the task');
    }
  }
});

test('a row has each agent of its task once, up to the last byte that fits, even if the task is too large for the row', () => {
  const by = (...names: unknown[]) => names.map(sourceAgent => ({ artifactId: 'a', parts: [], metadata: { sourceAgent } }));
  const asks = (agent: unknown) => ({ ...user('q'), metadata: { agent } });
  const task = taskOf({ artifacts: by('guide', 'files', 'guide', 7), history: [asks('painter'), asks({}), user('r', 2)] });
  assert.deepEqual(agentsOf(task), ['guide', 'files', 'painter']);
  assert.deepEqual(listedTaskOf(task, AT).agents, agentsOf(task));
  const metadata = { text: 'x'.repeat(LISTED_TASK_BYTES_MAX) };
  const large = listedTaskOf({ ...task, metadata }, AT);
  assert.deepEqual([large.cut, large.agents], [true, agentsOf(task)]);
  const longest = 'x'.repeat(LISTED_AGENTS_BYTES_MAX - bytesOf(['']));
  const full = taskOf({ history: [user('x'.repeat(3_000))], ...answer('y'.repeat(3_000)), metadata });
  const withAgent = (name: string) => listedTaskOf({ ...full, artifacts: [...full.artifacts!, ...by(name)] }, AT + 1);
  assert.deepEqual(withAgent(longest).agents, [longest]);
  assert.ok(bytesOf(withAgent(longest)) <= LISTED_TASK_BYTES_MAX);
  assert.equal(withAgent(`${longest}x`).agents, undefined);
});

test('a row leaves out only the task ids of its messages, and the list restores them', () => {
  const ids = { taskId: 't', contextId: 'c' };
  const history = [{ ...user('a'), ...ids }, user('b', 2), { ...user('c', 3), ...ids, contextId: 'another' }];
  const status = { state: 'TASK_STATE_FAILED', timestamp, message: { ...user('d', 4), ...ids } } as const;
  const task = taskOf({ history, status });
  const listed = listedTaskOf(task, AT);
  assert.equal(JSON.stringify(listed).includes('"t"'), false);
  assert.deepEqual(taskOfRow({ taskId: 't', contextId: 'c', state: status.state, at: AT, listed }), task);
});

test('a status time that differs from the time of the row is listed', () => {
  assert.equal(listedTaskOf(taskOf({}), AT).timestamp, undefined);
  assert.equal(listedTaskOf(taskOf({}), AT + 1).timestamp, timestamp);
});

test('text is found in questions, in the beginning of the answer and in the message of the status, in upper and lower case', () => {
  const agent: Message = { messageId: 'r', role: 'ROLE_AGENT', parts: [{ text: 'refused Politely' }] };
  const status = { state: 'TASK_STATE_REJECTED', message: agent } as const;
  const history = [user('Explain Ärger'), { ...agent, messageId: 'h', parts: [{ text: 'not searched' }] }];
  const listed = listedTaskOf(taskOf({ status, history, ...answer('The Answer') }));
  for (const text of ['explain', 'ÄRGER', 'the answer', 'POLITELY']) assert.ok(hasText(listed, text), text);
  for (const text of ['not searched', 'explain the', 'Ärger The']) assert.equal(hasText(listed, text), false, text);
});
