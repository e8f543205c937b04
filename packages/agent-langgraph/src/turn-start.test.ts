import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Turn } from '@hopline/agent';
import type { Graph, ThreadState } from './graph.ts';
import { planTurn, toResume } from './turn-start.ts';

const QUESTION = { id: 'i1', value: 'Which one?' };
const graph = { humanMessage: (text: string, id: string) => ({ type: 'human', content: text, id }) } as Graph;
const answered = { messages: [{ type: 'human', content: 'before', id: 'm1' }] };

function startOf(resume: unknown, state: Partial<ThreadState>) {
  const message = { messageId: 'm2', role: 'ROLE_USER', parts: [{ text: 'next' }] } as const;
  const turn = { taskId: 't2', contextId: 'c', message, metadata: {}, history: [], resume } as unknown as Turn;
  const thread = { values: answered, unfinished: false, interrupts: [], ...state };
  return planTurn({ graph, turn, state: thread, keys: new Set(['messages']) });
}

test('a message runs the graph, even if another adapter left state for the agent', () => {
  const update = { messages: [{ type: 'human', content: 'next', id: 'm2' }] };
  const run = { kind: 'run', input: { kind: 'state', update }, isContinued: false };
  for (const resume of [undefined, { contextId: 'theirs' }, { taskId: 'asks' }, 'text', null, { interrupts: 'i1' }]) {
    assert.deepEqual(startOf(resume, {}), run, JSON.stringify(resume));
    assert.deepEqual(startOf(resume, { interrupts: [QUESTION], taskId: 'abandoned' }), run, JSON.stringify(resume));
  }
});

test('the answer to a shown interrupt resumes it; once the thread has the answer, only the end of the turn is missing', () => {
  const resume = toResume([QUESTION]);
  const asked = startOf(resume, { interrupts: [QUESTION], unfinished: true });
  assert.deepEqual(asked, { kind: 'run', input: { kind: 'resume', answer: 'next', update: {} }, isContinued: false });
  assert.deepEqual(startOf(resume, {}), { kind: 'finished', values: answered });
});
