import assert from 'node:assert/strict';
import { test } from 'node:test';
import { approvalRequestParts, type StreamResponse, type TaskState } from '@hopline/a2a';
import { Output } from './output.ts';
import { StreamPrinter } from './stream-printer.ts';

/** Collects everything on one display, with notes and warnings as lines. */
function printed(events: StreamResponse[], answerNames: string[] = [], resumed = false): string {
  let text = '';
  const line = (content: string) => {
    text += `${text === '' || text.endsWith('\n') ? '' : '\n'}${content}\n`;
  };
  const answer = (piece: string) => {
    text += piece;
  };
  const display = { answer, note: line, warn: line, heading: line };
  const printer = new StreamPrinter(display, { answerNames, resumed });
  for (const event of events) printer.print({ cursor: undefined, event });
  return text;
}

const ids = { taskId: 't-1', contextId: 'c-1' };
const chunk = (artifactId: string, name: string, text: string, append = false, lastChunk = false): StreamResponse => ({
  artifactUpdate: { ...ids, artifact: { artifactId, name, parts: [{ text }] }, append, lastChunk },
});
const status = (state: TaskState, text?: string): StreamResponse => ({
  statusUpdate: {
    ...ids,
    status: {
      state,
      ...(text !== undefined && { message: { messageId: 'm', role: 'ROLE_AGENT', parts: [{ text }] } }),
    },
  },
});

test('texts of two agents, and of two calls of one agent, are separated even if there is no line feed between them', () => {
  const of = (sourceAgent: string, toolCallId: string, text: string, append = false, lastChunk = false): StreamResponse => {
    const artifact = {
      artifactId: toolCallId,
      name: 'streaming_result',
      parts: [{ text }],
      metadata: { sourceAgent, toolCallId },
    };
    return { artifactUpdate: { ...ids, artifact, append, lastChunk } };
  };
  let out = '';
  const output = new Output({ write: text => (out += text) }, { write: () => {} }, {});
  const printer = new StreamPrinter(output);
  const events = [
    of('files', 'call-1', '[DIR] webhook-'),
    of('files', 'call-1', 'guard', true, true),
    of('guide', 'call-2', '## How Hopline streams'),
    of('guide', 'call-2', ' it\n', true, true),
    of('guide', 'call-3', 'Again'),
    of('guide', 'call-3', '.', true, true),
    chunk('w', 'partial_result', '[DIR] webhook-guard## How Hopline streams it\nAgain.', false, true),
    status('TASK_STATE_COMPLETED'),
  ];
  for (const event of events) printer.print({ cursor: undefined, event });
  assert.equal(out, '[DIR] webhook-guard\n## How Hopline streams it\nAgain.');
});

test('each artifact has a heading over its text, and a whole answer that repeats the stream is only named', () => {
  const text = printed([
    { task: { id: 't-1', contextId: 'c-1', status: { state: 'TASK_STATE_SUBMITTED' } } },
    chunk('a', 'streaming_result', 'Hel'),
    chunk('a', 'streaming_result', 'lo', true, true),
    chunk('n', 'tool_notification_start', '🔧 calling Guide\n', false, true),
    chunk('b', 'streaming_result', 'Two\n'),
    chunk('b', 'streaming_result', 'Three\n', true, true),
    chunk('c', 'partial_result', 'HelloTwo\nThree\n', false, true),
    status('TASK_STATE_COMPLETED'),
  ]);
  const lines = [
    'task t-1 submitted',
    '── streaming_result',
    'Hello',
    '── tool_notification_start',
    '🔧 calling Guide',
    '── streaming_result',
    'Two',
    'Three',
    '── partial_result',
    '(15 characters, equal to the text streamed above)',
    'task t-1 completed',
    '',
  ];
  assert.equal(text, lines.join('\n'));
});

test('the description of an artifact is part of its heading', () => {
  const artifact = { artifactId: 'a', name: 'response', description: 'of the guide', parts: [{ text: 'Hi' }] };
  assert.equal(printed([{ artifactUpdate: { ...ids, artifact } }]), '── response · of the guide\nHi');
});

test('the same artifact under another name has its own heading', () => {
  const text = printed([chunk('p', 'tool_notification_start', 'a'), chunk('p', 'tool_notification_end', 'b')]);
  assert.equal(text, '── tool_notification_start\na\n── tool_notification_end\nb\n');
});

test('a whole answer that differs from the streamed text is printed, not called a repetition', () => {
  const text = printed([chunk('a', 'streaming_result', 'Hello'), chunk('b', 'partial_result', 'Hello, changed', false, true)]);
  assert.match(text, /── partial_result\n, changed$/);
  const other = printed([chunk('a', 'streaming_result', 'Hello'), chunk('b', 'partial_result', 'Good day', false, true)]);
  assert.match(
    other,
    /\(the complete answer differs from the text that was streamed, and follows\)\n── partial_result\nGood day$/,
  );
});

test('a failed task shows its reason', () => {
  assert.match(printed([status('TASK_STATE_FAILED', 'agent is down')]), /task t-1 failed: agent is down/);
  const bare = {
    statusUpdate: { ...ids, status: { state: 'TASK_STATE_FAILED' as const }, metadata: { reason: 'no agent fits' } },
  };
  assert.match(
    printed([bare]),
    /task t-1 failed: no agent fits/,
    'a profile without messages has the reason only in the metadata',
  );
});

test('progress and artifacts with unknown names are not part of the answer, and are not compared with a whole answer', () => {
  const text = printed([
    chunk('n', 'progress', 'Choosing a greeting'),
    chunk('a', 'streaming_result', 'Hello\n'),
    chunk('f', 'card.md', '# For '),
    chunk('f', 'card.md', 'Ada\n', true, true),
    chunk('n', 'progress', '', true, true),
    chunk('a', 'streaming_result', '', true, true),
    chunk('b', 'partial_result', 'Hello\n', false, true),
    status('TASK_STATE_COMPLETED'),
  ]);
  assert.deepEqual(text.trimEnd().split('\n'), [
    '── progress',
    'Choosing a greeting',
    '── streaming_result',
    'Hello',
    'card.md, 10 bytes',
    '── partial_result',
    '(6 characters, equal to the text streamed above)',
    'task t-1 completed',
  ]);
});

test('artifacts of a custom profile are printed by their recorded kind', () => {
  const kinded = (artifactId: string, name: string, artifactKind: string, text: string): StreamResponse => ({
    artifactUpdate: { ...ids, artifact: { artifactId, name, metadata: { artifactKind }, parts: [{ text }] }, lastChunk: true },
  });
  const acme = [
    kinded('c', 'acme_call', 'call-start', 'calls adder\n'),
    kinded('a', 'acme_answer', 'answer', '2 + 2 = 4'),
    kinded('r', 'acme_result', 'result', '2 + 2 = 4'),
  ];
  const builtIn = [
    chunk('c', 'tool_notification_start', 'calls adder\n', false, true),
    chunk('a', 'streaming_result', '2 + 2 = 4', false, true),
    chunk('r', 'partial_result', '2 + 2 = 4', false, true),
  ];
  const names = { acme_call: 'tool_notification_start', acme_answer: 'streaming_result', acme_result: 'partial_result' };
  const renamed = printed(acme).replace(/acme_\w+/g, name => names[name as keyof typeof names]);
  assert.equal(renamed, printed(builtIn));
});

test('an artifact without a name is part of the answer, and so is one that the user names', () => {
  const unnamed = { artifactId: 'a', parts: [{ text: 'Hi' }] };
  assert.match(printed([{ artifactUpdate: { ...ids, artifact: unnamed, lastChunk: true } }]), /^── a\nHi$/);
  const events = [chunk('a', 'report', 'Good day', false, true), status('TASK_STATE_COMPLETED')];
  assert.match(printed(events), /^report, 8 bytes\n\(the answer has no text; --answer NAME prints/);
  assert.match(printed(events, ['report']), /^── report\nGood day\n/);
});

test('a task that completes without an answer is named; the end of a resumed stream is not', () => {
  const events = [status('TASK_STATE_WORKING'), status('TASK_STATE_COMPLETED')];
  assert.match(printed(events), /\(the answer is empty: no agent sent text, a file or a message\)\ntask t-1 completed\n$/);
  assert.doesNotMatch(printed(events, [], true), /empty/);
});

test('a call that waits for an approval is printed with all of its arguments, even if its question leaves them out', () => {
  const approval = { callId: 'c1', tool: 'refund', arguments: { order: '17', items: [1] } };
  const message = { messageId: 'm', role: 'ROLE_AGENT' as const, parts: approvalRequestParts(approval, 'Refund it?') };
  assert.equal(
    printed([{ statusUpdate: { ...ids, status: { state: 'TASK_STATE_INPUT_REQUIRED', message } } }]),
    'task t-1 input required: Refund it?\nrefund {\n  "order": "17",\n  "items": [\n    1\n  ]\n}\n',
  );
});
