import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  approvalRequestOf,
  approvalRequestParts,
  approvalResponseOf,
  approvalResponsePart,
  isShownCall,
  readApprovalResponse,
} from './approval.ts';
import { DIALECTS } from './dialects.ts';
import type { Message, Part, StreamResponse } from './types.ts';

const REQUEST = { callId: 'c1', tool: 'refund', arguments: { order: '17' } };

test('the question has text for people, and the request is read back from it', () => {
  const parts = approvalRequestParts(REQUEST);
  assert.deepEqual(parts, [{ text: 'Run refund with {"order":"17"}?' }, { data: { approvalRequest: REQUEST } }]);
  assert.deepEqual(approvalRequestOf({ parts }), REQUEST);
  assert.deepEqual(approvalRequestParts(REQUEST, 'Refund it?')[0], { text: 'Refund it?' });
});

test('only a whole request asks for an approval', () => {
  assert.equal(approvalRequestOf(undefined), undefined);
  const malformed: unknown[] = [
    'approvalRequest',
    { approvalRequest: 'c1' },
    { approvalRequest: { ...REQUEST, callId: '' } },
    { approvalRequest: { ...REQUEST, tool: 1 } },
    { approvalRequest: { ...REQUEST, arguments: ['17'] } },
  ];
  for (const data of malformed)
    assert.equal(approvalRequestOf({ parts: [{ text: 'Run it?' }, { data }] }), undefined, JSON.stringify(data));
});

test('every dialect passes the question and the response unchanged', () => {
  const ids = { taskId: 't', contextId: 'c' };
  const message: Message = { messageId: 'q', role: 'ROLE_AGENT', parts: approvalRequestParts(REQUEST) };
  const asked: StreamResponse = { statusUpdate: { ...ids, status: { state: 'TASK_STATE_INPUT_REQUIRED', message } } };
  const response = approvalResponsePart({ callId: 'c1', approved: false, reason: 'no' });
  const answer: Message = { messageId: 'a', role: 'ROLE_USER', parts: [response], taskId: 't' };
  for (const dialect of [DIALECTS['0.3'], DIALECTS['1.0']]) {
    const decoded = dialect.decodeEvent(JSON.parse(JSON.stringify(dialect.encodeEvent(asked))));
    assert.ok('event' in decoded && decoded.event !== undefined && 'statusUpdate' in decoded.event, dialect.name);
    assert.deepEqual(approvalRequestOf(decoded.event.statusUpdate.status.message), REQUEST);
    const sent = dialect.decodeSend(JSON.parse(JSON.stringify(dialect.encodeSend({ message: answer, blocking: true }))));
    assert.deepEqual(readApprovalResponse(sent.message.parts, REQUEST), { approved: false, reason: 'no' });
  }
});

test('a response is recognized without its request, and a call even with the prefixes that supervisors add to its id', () => {
  const refused = { callId: 'c1', approved: false, reason: 'no' };
  assert.deepEqual(approvalResponseOf({ parts: [{ text: 'no' }, approvalResponsePart(refused)] }), refused);
  for (const approvalResponse of [true, { callId: 'c1' }, { approved: true }])
    assert.equal(approvalResponseOf({ parts: [{ text: 'yes' }, { data: { approvalResponse } }] }), undefined);
  const shown = ['c1', 'call-1-1/c1', 'call-1-1/call-2-1/c1', 'xc1', 'c1/2'].map(id => isShownCall(id, 'c1'));
  assert.deepEqual(shown, [true, true, true, false, false]);
});

test('a response decides only the call that it names', () => {
  const read = (...parts: Part[]) => readApprovalResponse(parts, REQUEST);
  assert.deepEqual(read(approvalResponsePart({ callId: 'c1', approved: true })), { approved: true });
  assert.deepEqual(read(approvalResponsePart({ callId: 'c1', approved: false, reason: 'Too late.' })), {
    approved: false,
    reason: 'Too late.',
  });
  assert.deepEqual(read({ text: 'no' }, approvalResponsePart({ callId: 'c1', approved: true })), { approved: true });
  const other = approvalResponsePart({ callId: 'c0', approved: true });
  assert.deepEqual(read(other, approvalResponsePart({ callId: 'c1', approved: true })), { approved: true });
});

test('a response that does not fit refuses the call, with a reason', () => {
  const other = { approved: false, reason: 'The response names a different call; c1 is waiting.' };
  assert.deepEqual(readApprovalResponse([approvalResponsePart({ callId: 'c0', approved: true })], REQUEST), other);
  assert.deepEqual(readApprovalResponse([{ text: 'yes' }, { data: { approvalResponse: true } }], REQUEST), other);
  for (const approved of ['true', 1, null, undefined])
    assert.deepEqual(readApprovalResponse([{ data: { approvalResponse: { callId: 'c1', approved } } }], REQUEST), {
      approved: false,
      reason: 'The response has no boolean `approved`.',
    });
  const both = [true, false].map(approved => approvalResponsePart({ callId: 'c1', approved }));
  assert.deepEqual(readApprovalResponse(both, REQUEST), { approved: false });
});

test('only five texts approve; case and final punctuation are ignored', () => {
  const read = (text: string) => readApprovalResponse([{ text }], REQUEST);
  for (const text of ['yes', 'Y', ' OK. ', 'Approve', 'approved!']) assert.deepEqual(read(text), { approved: true }, text);
  for (const text of ['no', 'yes, but only 10 EUR', 'yes?', 'not ok', 'okay'])
    assert.deepEqual(read(text), { approved: false, reason: text }, text);
  assert.deepEqual(read('  '), { approved: false });
  assert.deepEqual(readApprovalResponse([{ url: 'https://example.com/a.png' }], REQUEST), { approved: false });
});
