import assert from 'node:assert/strict';
import { test } from 'node:test';
import { EventSchemas } from '@ag-ui/core/schemas';
import type { JsonObject } from '@hopline/a2a';
import { RunFault } from './run-fault.ts';
import { STATE_UNITS_MAX } from './run-input.ts';
import { RunReader } from './run-reader.ts';

const RUN = { threadId: 'c', runId: 'm1' };
const finished = (outcome?: object) => ({ type: 'RUN_FINISHED', ...RUN, ...(outcome && { outcome }) });
const text = (messageId: string, ...deltas: string[]) => [
  { type: 'TEXT_MESSAGE_START', messageId, role: 'assistant' },
  ...deltas.map(delta => ({ type: 'TEXT_MESSAGE_CONTENT', messageId, delta })),
  { type: 'TEXT_MESSAGE_END', messageId },
];

/** Events of the schemas of AG-UI 1.0. */
function readAll(events: object[], state?: JsonObject) {
  const reader = new RunReader('m1', state);
  return events.flatMap(event => reader.read(EventSchemas.parse(event) as unknown as JsonObject));
}

test('texts are streams, calls have arguments and results, and tokens are counted', () => {
  const call = { toolCallId: 't1' };
  const events = readAll([
    { type: 'RUN_STARTED', ...RUN },
    { type: 'STEP_STARTED', stepName: 'plan' },
    ...text('a', 'one ', 'one '),
    { type: 'TOOL_CALL_START', ...call, toolCallName: 'weather' },
    { type: 'TOOL_CALL_ARGS', ...call, delta: '{"city":' },
    { type: 'TOOL_CALL_ARGS', ...call, delta: '"Oslo"}' },
    { type: 'TOOL_CALL_END', ...call },
    { type: 'TOOL_CALL_RESULT', ...call, messageId: 'r', content: 'rain' },
    ...text('b', 'two'),
    {
      ...finished({ type: 'success' }),
      usage: [
        { inputTokens: 2, cachedInputTokens: 1 },
        { inputTokens: 3, outputTokens: 4 },
      ],
    },
  ]);
  assert.deepEqual(events, [
    { type: 'step', step: 'plan' },
    { type: 'text', text: 'one ', stream: 'a' },
    { type: 'text', text: 'one ', stream: 'a' },
    { type: 'text-end', stream: 'a' },
    { type: 'tool', phase: 'start', callId: 't1', tool: 'weather', arguments: { city: 'Oslo' } },
    { type: 'tool', phase: 'end', callId: 't1', tool: 'weather', result: 'rain' },
    { type: 'text', text: 'two', stream: 'b' },
    { type: 'text-end', stream: 'b' },
    { type: 'usage', usage: { inputTokens: 5, cachedTokens: 1, outputTokens: 4 } },
    { type: 'done', resume: { state: {} } },
  ]);
});

test('chunks begin and end texts and calls by themselves', () => {
  const events = readAll([
    { type: 'TEXT_MESSAGE_CHUNK', messageId: 'a', role: 'assistant', delta: 'one' },
    { type: 'TEXT_MESSAGE_CHUNK', delta: ' two' },
    { type: 'TOOL_CALL_CHUNK', toolCallId: 't', toolCallName: 'go', delta: '{}' },
    { type: 'TEXT_MESSAGE_CHUNK', messageId: 'b', delta: 'three' },
    { type: 'TEXT_MESSAGE_CHUNK', messageId: 'u', role: 'user', delta: 'not the answer' },
    finished(),
  ]);
  assert.deepEqual(
    events.map(event => (event.type === 'text' ? event.text : event.type)),
    ['one', ' two', 'text-end', 'tool', 'three', 'text-end', 'done'],
  );
});

test('a question ends the turn, with the state of the thread for the next one', () => {
  const events = readAll(
    [
      { type: 'STATE_DELTA', delta: [{ op: 'replace', path: '/n', value: 2 }] },
      finished({ type: 'interrupt', interrupts: [{ id: 'q', reason: 'approval', message: 'Delete it?' }] }),
    ],
    { n: 1 },
  );
  const [asked] = events;
  assert.ok(events.length === 1 && asked?.type === 'interrupted');
  assert.deepEqual([asked.state, asked.message.parts], ['TASK_STATE_INPUT_REQUIRED', [{ text: 'Delete it?' }]]);
  assert.deepEqual(asked.resume, { state: { n: 2 }, interruptId: 'q' });
  const two = { type: 'interrupt', interrupts: ['a', 'b'].map(id => ({ id, reason: 'approval' })) };
  assert.match(JSON.stringify(readAll([finished(two)])), /several questions at once/);
});

test('a state above its bound is not kept, and a change that does not fit the state ends the run', () => {
  const snapshot = { type: 'STATE_SNAPSHOT', snapshot: { long: 'x'.repeat(STATE_UNITS_MAX) } };
  assert.deepEqual(readAll([snapshot, finished()]), [{ type: 'done', resume: {} }]);
  for (const path of ['/absent/member', '/__proto__/polluted'])
    assert.throws(() => readAll([{ type: 'STATE_DELTA', delta: [{ op: 'add', path, value: 1 }] }]), RunFault, path);
});

test('a snapshot with other text replaces the answer at the end, and one with the same text changes nothing', () => {
  const asked = { id: 'm1', role: 'user', content: 'go' };
  const snapshot = (...messages: object[]) => ({ type: 'MESSAGES_SNAPSHOT', messages: [asked, ...messages] });
  const same = readAll([...text('a', 'one'), snapshot({ id: 'a', role: 'assistant', content: 'one' }), finished()]);
  assert.deepEqual(same.at(-1), { type: 'done', resume: { state: {} } });
  const other = readAll([...text('a', 'one'), snapshot({ id: 'b', role: 'assistant', content: 'two' }), finished()]).at(-1);
  assert.ok(other?.type === 'done' && other.standing === 'replaces');
  assert.deepEqual(other.message?.parts, [{ text: 'two' }]);
  const whole = readAll([snapshot({ id: 'b', role: 'assistant', content: 'two' }), finished()]).at(-1);
  assert.ok(whole?.type === 'done' && whole.standing === undefined && whole.message?.parts[0]?.text === 'two');
});

test('an error of the agent is a failure whose text is only in its message, and a cancel is a failure too', () => {
  const [failed] = readAll([{ type: 'RUN_ERROR', message: 'no ink', code: 'x' }]);
  assert.ok(failed?.type === 'failed' && !failed.reason.includes('ink') && failed.message?.parts[0]?.text === 'no ink');
  const [canceled] = readAll([finished({ type: 'cancelled' })]);
  assert.ok(canceled?.type === 'failed' && canceled.state === 'TASK_STATE_CANCELED');
});
