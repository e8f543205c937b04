import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Part } from '@hopline/a2a';
import { answerParts, openQuestion, shownQuestion } from './open-question.ts';

const asked = (...parts: Part[]) => openQuestion({ messageId: 'm', role: 'ROLE_AGENT', parts });
const call = (name: string, more = {}): Part => ({
  data: { id: `id-${name}`, name, args: {} },
  metadata: { adk_type: 'function_call', adk_is_long_running: true, ...more },
});
const interrupts = (...ids: unknown[]): Part => ({ data: { interrupts: ids.map(interruptId => ({ interruptId, name: 'x' })) } });

test('text becomes the result of the Google ADK call, or the response to the Strands interrupt, that asked the question', () => {
  const answer = [{ text: 'blue' }, { text: '-green' }];
  assert.deepEqual(answerParts(answer, asked({ text: 'Color?' }, call('choose'))), [
    {
      data: { id: 'id-choose', name: 'choose', response: { result: 'blue-green' } },
      metadata: { adk_type: 'function_response' },
    },
  ]);
  assert.deepEqual(answerParts(answer, asked({ text: 'Color?' }, interrupts('v1:c'))), [
    { data: { interruptResponse: { interruptId: 'v1:c', response: 'blue-green' } } },
  ]);
});

test('an answer with data or a file, to several questions, or to another question stays as it is', () => {
  const question = asked(interrupts('v1:c'));
  for (const parts of [[{ data: { interruptResponse: {} } }], [{ text: 'look' }, { raw: 'AA==' }]])
    assert.equal(answerParts(parts, question), parts);
  const text = [{ text: 'blue' }];
  const others = [
    asked({ text: 'Color?' }),
    asked(call('a'), call('b')),
    asked(interrupts('a', 'b')),
    asked(interrupts(7)),
    asked(call('a', { adk_is_long_running: false })),
    asked(call('adk_request_confirmation')),
    asked({ data: null }, { data: { interrupts: 'a' } }),
  ];
  for (const other of others) assert.equal(answerParts(text, other), text);
});

test('a question without text gets one for people', () => {
  const textsOf = (...parts: Part[]) =>
    shownQuestion({ messageId: 'm', role: 'ROLE_AGENT', parts }).parts.flatMap(({ text }) => text ?? []);
  assert.deepEqual(textsOf({ text: 'Color?' }, call('choose')), ['Color?']);
  assert.deepEqual(textsOf(call('choose')), ['The agent waits for an answer.']);
  assert.deepEqual(textsOf({ data: { name: 'adk_request_input', args: { message: 'Color?' } } }), ['Color?']);
});

const confirmation = (
  toolConfirmation: object = {},
  original: object = { id: 'c-1', name: 'refund', args: { order: '17' } },
): Part => ({
  data: { id: 'adk-1', name: 'adk_request_confirmation', args: { originalFunctionCall: original, toolConfirmation } },
  metadata: { adk_type: 'function_call', adk_is_long_running: true },
});
const question = (part: Part) => shownQuestion({ messageId: 'm', role: 'ROLE_AGENT', parts: [part] });

test('a confirmation of Google ADK asks for the approval of the original call, and keeps its own part', () => {
  const text = 'Run refund with {"order":"17"}?';
  const request = { data: { approvalRequest: { callId: 'c-1', tool: 'refund', arguments: { order: '17' } } } };
  const part = confirmation({ hint: 'Please approve the tool call refund() by responding with a FunctionResponse.' });
  assert.deepEqual(question(part).parts, [{ text }, request, part]);
  assert.equal(question(confirmation({ hint: 'A large order.' })).parts[0]?.text, `A large order.\n${text}`);
  assert.equal(question(confirmation({}, { id: 'c-1', name: 'refund' })).parts[0]?.text, 'Run refund with {}?');
});

test('an approval or a refusal becomes the result of the confirmation', () => {
  const confirmed = (...parts: Part[]) => {
    const [part, ...more] = answerParts(parts, asked(confirmation()));
    const { response, ...call } = part!.data as { response: { confirmed: boolean } };
    assert.deepEqual(
      [call, part!.metadata, more],
      [{ id: 'adk-1', name: 'adk_request_confirmation' }, { adk_type: 'function_response' }, []],
    );
    return response;
  };
  const response = (approved: boolean, callId = 'c-1') => ({ data: { approvalResponse: { callId, approved } } });
  for (const approving of [
    [{ text: 'Yes.' }],
    [{ text: 'no' }, response(true)],
    [response(true), { data: { confirmed: false } }],
  ])
    assert.deepEqual(confirmed(...approving), { confirmed: true });
  for (const refusing of [
    [{ text: 'not yet' }],
    [{ text: 'yes' }, response(false)],
    [{ text: 'yes' }, response(true, 'c-2')],
    [response(true), response(false)],
    [{ raw: 'AA==' }],
    [{ data: { confirmed: true } }],
  ])
    assert.deepEqual(confirmed(...refusing), { confirmed: false });
  const own = [
    { data: { id: 'adk-1', name: 'adk_request_confirmation', response: {} }, metadata: { adk_type: 'function_response' } },
  ];
  assert.equal(answerParts(own, asked(confirmation())), own);
});

test('a confirmation that expects a payload, has no call, or is one of several keeps its own form', () => {
  const parts = [{ text: 'yes' }];
  const others = [
    [confirmation({ payload: { days: 0 } })],
    [confirmation({}, { id: '', name: 'refund' })],
    [confirmation({}, { id: 'c-1', name: 'refund', args: [] })],
    [confirmation(), confirmation()],
  ];
  for (const other of others) {
    assert.equal(answerParts(parts, asked(...other)), parts);
    const shown = shownQuestion({ messageId: 'm', role: 'ROLE_AGENT', parts: other });
    assert.deepEqual(shown.parts, [{ text: 'The agent waits for an answer.' }, ...other]);
  }
});
