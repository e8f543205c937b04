import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Message, Part } from '@hopline/a2a';
import { agent, Scenario, supervisor, taskOfArtifacts } from '@hopline/task/test-kit';
import { bytesAllocated } from '../../../test/support/counted-work.ts';
import { TurnView } from './turn-view.ts';

test('a supervisor that follows a task does not copy it for each of its artifacts', async () => {
  const { facts, aggregate } = taskOfArtifacts(5_000);
  const view = new TurnView();
  const bytes = await bytesAllocated(() => {
    for (const [index, fact] of facts.entries())
      view.apply({ seq: index + 1, record: { v: 1, facts: [fact], aggregate, startSeq: 1, startStoredAt: 1 } });
  });
  // Copying the list for each fact would allocate 100 MB.
  assert.ok(bytes < 20_000_000, `${bytes} bytes`);
  assert.deepEqual(
    view.artifactsOf('supervisor').map(({ artifactId }) => artifactId),
    Array.from({ length: 5_000 }, (_, index) => `${index}`),
  );
});

function viewOf({ facts, aggregate }: Scenario, answerName?: string): TurnView {
  const view = new TurnView(answerName);
  view.apply({ seq: 1, record: { v: 1, facts, aggregate: aggregate!, startSeq: 0, startStoredAt: 0 } });
  return view;
}

test('each question of a turn leads to one call in the next turn, in the same order; a call that has ended leads to none', () => {
  const task = new Scenario().message('go');
  const calls = ['call-1-1', 'call-1-2', 'call-1-3'];
  for (const call of calls) task.input(supervisor(), { kind: 'call', call, agent: 'argocd' });
  const question = (messageId: string): Message => ({ messageId, role: 'ROLE_AGENT', parts: [{ text: 'which?' }] });
  const asks = (call: string) => {
    const content = { message: question(call), resume: { of: call } };
    task.input(agent(call), { kind: 'ended', call, state: 'TASK_STATE_INPUT_REQUIRED', ...content });
  };
  asks('call-1-1');
  task.input(agent('call-1-2'), { kind: 'ended', call: 'call-1-2', state: 'TASK_STATE_COMPLETED' });
  asks('call-1-3');
  task.input(supervisor(), { kind: 'status', state: 'TASK_STATE_INPUT_REQUIRED' }).message('both', 'm2');
  const view = viewOf(task);
  assert.deepEqual(task.rejected, []);
  assert.deepEqual(view.waiting, [
    { call: 'call-1-1', agent: 'argocd', resume: { of: 'call-1-1' } },
    { call: 'call-1-3', agent: 'argocd', resume: { of: 'call-1-3' } },
  ]);
  assert.deepEqual(
    calls.map(call => view.continuation(call)?.call),
    ['call-2-1', undefined, 'call-2-2'],
  );
});

test('a call that waits for credentials keeps its agent in the next turn, even if its beginning and its request are in one record', () => {
  const task = new Scenario().message('go').input(supervisor(), { kind: 'call', call: 'call-1-1', agent: 'argocd' });
  const message: Message = { messageId: 'login', role: 'ROLE_AGENT', parts: [{ text: 'Log in first.' }] };
  task.input(agent('call-1-1'), { kind: 'status', state: 'TASK_STATE_AUTH_REQUIRED', message, resume: { of: 'login' } });
  assert.deepEqual(viewOf(task.message('I have', 'm2')).waiting, [
    { call: 'call-1-1', agent: 'argocd', resume: { of: 'login' } },
  ]);
});

test("the text of agents comes before the supervisor's own, whichever was written first [C-28]", () => {
  const task = new Scenario().message('go').input(supervisor(), { kind: 'call', call: 'call-1-1', agent: 'argocd' });
  task.open(supervisor(), 'own').text(supervisor(), 'own', 'mine').open(agent(), 'a').text(agent(), 'a', 'theirs ');
  const view = viewOf(task, 'answer');
  assert.equal(view.answerText(), 'theirs mine');
  assert.equal(view.supervisorText(), 'mine');
});

test('a supervisor keeps the text of answers and the data of its agents, and no bytes of their files', () => {
  const task = new Scenario().message('go').input(supervisor(), { kind: 'call', call: 'call-1-1', agent: 'argocd' });
  const artifact = (name: string, parts: Part[], append = false) =>
    task.input(agent('call-1-1'), { kind: 'artifact', lane: name, artifact: { name }, parts, append, last: false });
  artifact('answer', [{ text: 'Here' }]);
  artifact('answer', [{ text: ' it is' }, { raw: 'aGk=' }], true);
  artifact('report', [{ text: 'x'.repeat(1_000) }, { data: { rows: 1 } }]);
  for (let chunk = 0; chunk < 10; chunk += 1) artifact('file', [{ raw: 'aGk='.repeat(1_000) }], chunk > 0);
  const view = viewOf(task, 'answer');
  assert.equal(view.answerOf('call-1-1'), 'Here it is');
  assert.deepEqual(
    view.artifactsOf('call-1-1').map(({ parts }) => parts),
    [[{ text: 'Here it is' }], [{ data: { rows: 1 } }], []],
  );
});
