import assert from 'node:assert/strict';
import { test } from 'node:test';
import { approvalRequestParts, cutIndex, Fold, type StreamResponse } from '@hopline/a2a';
import { type Block, Conversation, SEGMENT_CHARS_MAX, textOfParts } from './conversation.ts';

const ids = { taskId: 't', contextId: 'c' };
const task: StreamResponse = {
  task: {
    id: 't',
    contextId: 'c',
    status: { state: 'TASK_STATE_SUBMITTED' },
    history: [{ messageId: 'm', role: 'ROLE_USER', parts: [{ text: 'why?' }] }],
  },
};
const state = (name: string, text?: string): StreamResponse => {
  const message = text === undefined ? {} : { message: { messageId: 's', role: 'ROLE_AGENT' as const, parts: [{ text }] } };
  return { statusUpdate: { ...ids, status: { state: `TASK_STATE_${name}` as 'TASK_STATE_WORKING', ...message } } };
};
const chunk = (artifactId: string, text: string, append: boolean, lastChunk = false): StreamResponse => ({
  artifactUpdate: { ...ids, artifact: { artifactId, name: artifactId, parts: [{ text }] }, append, lastChunk },
});

const textOf = (block: Block | undefined) => (block !== undefined && 'segments' in block ? block.segments.join('') : '');

/** Two artifacts whose chunks alternate, with line ends at every place. */
function longTask(chunks: number): StreamResponse[] {
  const events = [task, state('WORKING')];
  for (let index = 0; index < chunks; index += 1)
    events.push(chunk(index % 3 === 0 ? 'a' : 'b', `${index}${index % 7 === 0 ? '\n' : ' '}`, index > 2));
  return [...events, state('COMPLETED')];
}

test('at every position, forwards and backwards, the text matches the reference fold', () => {
  const events = longTask(2_600);
  const conversation = new Conversation();
  for (const event of events) conversation.add(event);
  for (const count of [1, 2, 500, 501, 1_700, 499, 3, events.length, 2_000, 2_001, 1_000, 0]) {
    const fold = new Fold();
    for (const event of events.slice(0, count)) fold.add(event);
    const { blocks } = conversation.at(count);
    const shown = blocks.filter(block => block.kind === 'artifact').map(block => [block.key, textOf(block)]);
    assert.deepEqual(
      shown,
      [...fold.artifacts.values()].map(({ artifactId, text }) => [artifactId, text]),
      `after ${count} events`,
    );
  }
});

test('complete segments stay the same, so that only new text is rendered', () => {
  const conversation = new Conversation();
  conversation.add(task);
  conversation.add(chunk('a', `${'line\n'.repeat(1_000)}rest`, false));
  const before = conversation.at(2).blocks.at(-1)!;
  conversation.add(chunk('a', ' and more', true));
  const after = conversation.at(3).blocks.at(-1)!;
  assert.ok('segments' in before && 'segments' in after && before.segments.length > 2);
  assert.deepEqual(after.segments.slice(0, -1), before.segments.slice(0, -1));
  assert.ok(after.segments.at(-1)!.endsWith('\nrest and more'));
  for (const segment of after.segments.slice(0, -1)) assert.ok(segment.endsWith('\n'));
});

test('a line of any length becomes bounded segments that are cut at spaces, never inside a character', () => {
  const word = 'ab🎯 ';
  for (const text of [
    word.repeat(5_000),
    `x${'🎯'.repeat(5_000)}`,
    '\n'.repeat(9_000),
    `${'y'.repeat(3_999)}\n${'z'.repeat(3_999)} end`,
  ]) {
    for (const size of [7, 1_000, text.length]) {
      const conversation = new Conversation();
      for (let from = 0; from < text.length; ) {
        const to = cutIndex(text, from + size);
        conversation.add(chunk('a', text.slice(from, to), from > 0));
        from = to;
      }
      const [block] = conversation.at(conversation.length).blocks;
      assert.ok(block !== undefined && 'segments' in block);
      assert.equal(block.segments.join(''), text);
      for (const segment of block.segments) assert.ok(segment.length <= SEGMENT_CHARS_MAX && segment.isWellFormed());
      if (text.startsWith(word)) for (const segment of block.segments) assert.ok(segment.endsWith(' '));
    }
  }
});

test('a chunk that replaces an artifact replaces its text in the same place', () => {
  const conversation = new Conversation();
  for (const event of [task, chunk('a', 'one', false), chunk('b', 'x', false), chunk('a', 'two', false, true)])
    conversation.add(event);
  const { blocks } = conversation.at(4);
  assert.deepEqual(blocks.map(textOf), ['why?', 'two', 'x']);
});

test('the role of an artifact comes from the names of all profiles, or from the kind that a custom profile recorded', () => {
  const conversation = new Conversation();
  const roleOf = (name: string, metadata?: { artifactKind: string }) => {
    const artifact = { artifactId: name, name, parts: [{ text: 'x' }], ...(metadata && { metadata }) };
    conversation.add({ artifactUpdate: { ...ids, artifact, lastChunk: true } });
    const block = conversation.at(conversation.length).blocks.at(-1)!;
    return block.kind === 'artifact' ? block.role : block.kind;
  };
  const names = ['execution_plan_streaming', 'tool_notification_end', 'final_result', 'response', 'card.md'];
  assert.deepEqual(
    names.map(name => roleOf(name)),
    ['plan', 'call-end', 'result', 'answer', undefined],
  );
  assert.equal(roleOf('acme_plan', { artifactKind: 'plan' }), 'plan');
});

test("the client's answer appears where the next turn begins", () => {
  const conversation = new Conversation();
  for (const event of [task, state('WORKING'), state('INPUT_REQUIRED', 'which?'), state('WORKING')]) conversation.add(event);
  assert.equal(conversation.at(4).blocks.filter(({ kind }) => kind === 'message').length, 1);
  const asked = (text: string) => ({ messageId: text, role: 'ROLE_USER' as const, parts: [{ text }] });
  conversation.setHistory([asked('why?'), asked('that one')]);
  assert.deepEqual(conversation.at(4).blocks.map(textOf), ['why?', '', 'which?', 'that one', '']);
});

test('after expired events the current task replaces the conversation', () => {
  const conversation = new Conversation();
  const { status } = task.task;
  const current = { ...task.task, status, artifacts: [{ artifactId: 'a', name: 'a', parts: [{ text: 'whole' }] }] };
  for (const event of [task, chunk('a', 'who', false), 'gap' as const, { task: current }]) conversation.add(event);
  const { blocks } = conversation.at(4);
  assert.deepEqual(
    blocks.map(block => [block.kind, textOf(block)]),
    [
      ['gap', ''],
      ['message', 'why?'],
      ['artifact', 'whole'],
      ['state', ''],
    ],
  );
});

test('data and files are shown by name, never opened', () => {
  const conversation = new Conversation();
  const parts = [{ data: { a: 1 } }, { url: 'https://example.org/x', filename: 'x.svg', mediaType: 'image/svg+xml' }];
  conversation.add({ artifactUpdate: { ...ids, artifact: { artifactId: 'a', parts } } });
  assert.equal(textOf(conversation.at(1).blocks[0]), '```json\n{\n  "a": 1\n}\n```\n[file x.svg (image/svg+xml)]\n');
});

test('a call that waits for an approval is shown whole, and its answer by its text', () => {
  const approval = { callId: 'c1', tool: 'refund', arguments: { order: '17' } };
  const message = { messageId: 'q', role: 'ROLE_AGENT' as const, parts: approvalRequestParts(approval, 'Refund it?') };
  const conversation = new Conversation();
  conversation.add(task);
  conversation.add({ statusUpdate: { ...ids, status: { state: 'TASK_STATE_INPUT_REQUIRED', message } } });
  assert.deepEqual(conversation.approval, approval);
  assert.equal(
    textOf(conversation.at(2).blocks.at(-1)),
    `Refund it?\n\n\`\`\`json\n${JSON.stringify({ tool: 'refund', arguments: { order: '17' } }, null, 2)}\n\`\`\`\n`,
  );
  conversation.add(state('WORKING'));
  assert.equal(conversation.approval, undefined);
  const data = { approvalResponse: { callId: 'c1', approved: false } };
  assert.equal(textOfParts([{ text: 'Refused' }, { data }]), 'Refused');
  assert.match(textOfParts([{ data }]), /^```json\n/);
});
