import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Part } from '@hopline/a2a';
import { answerParts, openQuestion, withText } from './open-question.ts';

const asked = (...parts: Part[]) => openQuestion({ messageId: 'm', role: 'ROLE_AGENT', parts });
const call = (name: string, more = {}): Part => ({
  data: { id: `id-${name}`, name, args: {} },
  metadata: { adk_type: 'function_call', adk_is_long_running: true, ...more },
});
const interrupts = (...ids: unknown[]): Part => ({ data: { interrupts: ids.map(interruptId => ({ interruptId, name: 'x' })) } });

test('text becomes the result of the call of Google ADK, or the response to the interrupt of Strands, that asked', () => {
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

test('an answer with data or a file, and one to several questions or to another one, stays as it is', () => {
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
    withText({ messageId: 'm', role: 'ROLE_AGENT', parts }).parts.flatMap(({ text }) => text ?? []);
  assert.deepEqual(textsOf({ text: 'Color?' }, call('choose')), ['Color?']);
  assert.deepEqual(textsOf(call('choose')), ['The agent waits for an answer.']);
  assert.deepEqual(textsOf({ data: { name: 'adk_request_input', args: { message: 'Color?' } } }), ['Color?']);
});
