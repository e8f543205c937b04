import assert from 'node:assert/strict';
import { test } from 'node:test';
import { approvalRequestParts, approvalResponsePart, type Message, type StreamResponse, type TaskState } from '@hopline/a2a';
import { TurnEncoder, turnToResume } from './turn-encoder.ts';
import type { UiChunk } from './ui-chunk.ts';

const IDS = { taskId: 't1', contextId: 'c1' };
let time = 0;
const at = () => new Date(Date.UTC(2030, 0, 1) + ++time * 1_000).toISOString();
const status = (state: TaskState, message?: Message): StreamResponse => ({
  statusUpdate: { ...IDS, status: { state, timestamp: at(), ...(message && { message }) } },
});
const working = () => status('TASK_STATE_WORKING');
const asks = (callId: string) =>
  status('TASK_STATE_INPUT_REQUIRED', {
    messageId: `q-${callId}`,
    role: 'ROLE_AGENT',
    parts: approvalRequestParts({ callId, tool: 'refund', arguments: { order: callId } }, 'Refund it?'),
  });
const notice = (phase: 'start' | 'end', id: string, metadata: object = {}): StreamResponse => ({
  artifactUpdate: {
    ...IDS,
    artifact: {
      artifactId: `${phase}-${id}-${++time}`,
      name: `tool_notification_${phase}`,
      parts: [{ text: `${phase} refund` }],
      metadata: { toolCallId: id, tool: 'refund', ...metadata },
    },
    lastChunk: true,
  },
});
const text = (id: string, value: string): StreamResponse => ({
  artifactUpdate: { ...IDS, artifact: { artifactId: id, name: 'streaming_result', parts: [{ text: value }] }, lastChunk: true },
});
const created = (): StreamResponse => ({
  task: { id: 't1', contextId: 'c1', status: { state: 'TASK_STATE_SUBMITTED', timestamp: at() } },
});

/** Two calls are asked about: the first is approved and runs, the second is refused. */
const FIRST = [created(), working(), notice('start', 'call-1-1/a', { arguments: { order: 'a' } })];
const ASKS_A = [notice('end', 'call-1-1/a', { waiting: true }), asks('a')];
const RUNS_A = [
  working(),
  notice('start', 'call-2-1/a', { arguments: { order: 'a' } }),
  notice('end', 'call-2-1/a', { result: 'paid' }),
];
const ASKS_B = [text('x', 'One is paid. '), asks('b')];
const ENDS = [
  working(),
  notice('start', 'b'),
  notice('end', 'b', { failed: true, result: 'no' }),
  text('y', 'Done.'),
  status('TASK_STATE_COMPLETED'),
];

const brief = (chunks: readonly UiChunk[]) =>
  chunks.flatMap(chunk => {
    if (chunk.type === 'text-delta') return [chunk.delta];
    const { type, toolCallId, approved, output } = chunk as {
      type: string;
      toolCallId?: string;
      approved?: boolean;
      output?: unknown;
    };
    if (!/^(tool|start-step|finish)/.test(type)) return [];
    return [[type, toolCallId, approved, output].filter(value => value !== undefined).join(' ')];
  });
const encode = (turn: TurnEncoder, events: readonly StreamResponse[]) => events.flatMap(event => turn.add({ event }));

const statusOf = (event: StreamResponse) => ('statusUpdate' in event ? event.statusUpdate.status : assert.fail());
/** The task as the stream of a message begins with it. */
const snapshotOf = (question: StreamResponse): StreamResponse => ({
  task: { id: 't1', contextId: 'c1', status: statusOf(question) },
});

const APPROVED_A = { callId: 'a', approved: true };
const REFUSED_B = { callId: 'b', approved: false, reason: 'no' };
const TURN_1 = [
  'tool-input-available call-1-1/a',
  'tool-input-available call-1-1/a',
  'tool-input-available call-1-1/a',
  'tool-approval-request call-1-1/a',
  'Refund it?',
];
const TURN_2 = [
  'start-step',
  'tool-output-available call-1-1/a paid',
  'One is paid. ',
  'tool-input-available b',
  'tool-approval-request b',
  'Refund it?',
];

test('a question for an approval is a request of the AI SDK, and the decision continues the message', () => {
  const asked = encode(new TurnEncoder({ messageId: 'm' }), [...FIRST, ...ASKS_A]);
  assert.deepEqual(brief(asked), [...TURN_1, 'finish']);
  const request = asked.find(({ type }) => type === 'tool-approval-request');
  assert.deepEqual(request, { type: 'tool-approval-request', approvalId: 'a', toolCallId: 'call-1-1/a' });

  const second = new TurnEncoder({ messageId: 'm', continues: true, approvals: [{ ...APPROVED_A, toolCallId: 'call-1-1/a' }] });
  const snapshot = snapshotOf(ASKS_A[1]!);
  assert.deepEqual(brief(encode(second, [snapshot, ...RUNS_A, ...ASKS_B])), [...TURN_2, 'finish']);

  const third = new TurnEncoder({ messageId: 'm', continues: true, approvals: [{ ...REFUSED_B, toolCallId: 'b' }] });
  assert.deepEqual(brief(encode(third, [snapshot, ...ENDS])), ['tool-output-denied b', 'start-step', 'Done.', 'finish']);
});

test('a page that resumes gets the whole message, with its decisions', () => {
  const events = [...FIRST, ...ASKS_A, ...RUNS_A, ...ASKS_B, ...ENDS];
  const last = statusOf(events.at(-1)!);
  const history: Message[] = [
    { messageId: 'u1', role: 'ROLE_USER', parts: [{ text: 'refund both' }] },
    { messageId: 'q-a', role: 'ROLE_AGENT', parts: [] },
    { messageId: 'approval-a', role: 'ROLE_USER', parts: [approvalResponsePart(APPROVED_A)] },
    { messageId: 'approval-b', role: 'ROLE_USER', parts: [approvalResponsePart(REFUSED_B)] },
  ];
  const resumed = turnToResume([{ id: 't1', contextId: 'c1', status: last, history }], Date.parse(last.timestamp!))!;
  assert.deepEqual(resumed.turn, { messageId: 'answer-u1', statusAt: last.timestamp, approvals: [APPROVED_A, REFUSED_B] });
  assert.deepEqual(brief(encode(new TurnEncoder(resumed.turn), events)), [
    ...TURN_1,
    'tool-approval-response true',
    ...TURN_2,
    'tool-approval-response false',
    'tool-output-denied b',
    'start-step',
    'Done.',
    'finish',
  ]);
});

test('a call whose result no notice shows has ended with its turn, and other open calls wait', () => {
  const outer = {
    artifactUpdate: {
      ...IDS,
      artifact: {
        artifactId: 'o',
        name: 'tool_notification_start',
        parts: [],
        metadata: { toolCallId: 'call-1-1', tool: 'refunds' },
      },
      lastChunk: true,
    },
  };
  const asked = encode(new TurnEncoder({ messageId: 'm' }), [created(), working(), outer, asks('a')]);
  assert.deepEqual(brief(asked).slice(1, 4), [
    'tool-output-available call-1-1 waits for an approval',
    'tool-input-available a',
    'tool-approval-request a',
  ]);
  for (const [state, end] of [
    ['TASK_STATE_COMPLETED', 'tool-output-available a '],
    ['TASK_STATE_FAILED', 'tool-output-error a'],
  ] as const) {
    const turn = new TurnEncoder({ messageId: 'm', continues: true, approvals: [{ ...APPROVED_A, toolCallId: 'a' }] });
    assert.ok(brief(encode(turn, [snapshotOf(asks('a')), working(), status(state)])).includes(end), end);
  }
});
