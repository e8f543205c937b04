import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test } from 'node:test';
import { approvalRequestParts, type Message, readApprovalResponse } from '@hopline/a2a';
import type { AgentInput, Producer } from '@hopline/events';
import type { StoredFacts } from '@hopline/log';
import { CAIPE } from '@hopline/profiles';
import { type Command, decide, evolve } from '@hopline/task';
import { conversation, RESULT_UNITS_MAX, readOf } from './model-conversation.ts';
import type { ModelStep } from './model-step.ts';
import { TurnView } from './turn-view.ts';

/** A task that goes through the decider, as seen by a supervisor. */
class TaskStory {
  readonly view = new TurnView(CAIPE.answer.name);
  #aggregate: StoredFacts['record']['aggregate'] | undefined;
  #at = 0;

  item(item: Command): this {
    this.#at += 1;
    const { facts } = decide(this.#aggregate, item, this.#at);
    for (const fact of facts) this.#aggregate = evolve(this.#aggregate, fact);
    this.view.apply({ seq: this.#at, record: { v: 1, facts, aggregate: this.#aggregate!, startSeq: 1 } } as StoredFacts);
    return this;
  }

  message(text: string, messageId = text): this {
    const message: Message = { messageId, role: 'ROLE_USER', parts: [{ text }] };
    const rest = { contextId: 'c', role: 'supervisor' as const, profile: 'caipe' as const };
    return this.item({ kind: 'client', taskId: 't', input: { kind: 'message', message, ...rest } });
  }

  appends(id: string, input: Exclude<AgentInput, { kind: 'text' }>, turn = 1): this {
    const agent = id === 'supervisor' ? id : 'argocd';
    const from: Producer = { id, agent, turn, attempt: 1 };
    return this.item({ kind: 'agent', from, input });
  }

  /** An agent's whole answer, and its end. */
  answers(call: string, text: string, end: Partial<Extract<AgentInput, { kind: 'ended' }>> = {}, turn = 1): this {
    this.appends('supervisor', { kind: 'call', call, agent: 'argocd' }, turn);
    const artifact = { name: CAIPE.answer.name };
    this.appends(
      call,
      { kind: 'artifact', lane: `${call}/answer`, artifact, parts: [{ text }], append: false, last: true },
      turn,
    );
    return this.appends(call, { kind: 'ended', call, state: 'TASK_STATE_COMPLETED', ...end }, turn);
  }
}

const step = (...calls: string[]): ModelStep => ({
  turn: 1,
  text: 'I call.',
  calls: calls.map(call => ({ id: `id-${call}`, name: 'argocd', args: { request: 'go' }, call, agent: 'argocd' })),
  read: [],
});
const results = (story: TaskStory, ...steps: ModelStep[]) =>
  conversation('orders', [], story.view, steps).flatMap(message => (message.role === 'tool' ? [message.text] : []));

test('the prompt has instructions, the question, its own steps, and the results of its calls', () => {
  const story = new TaskStory().message('version?').answers('call-1-1-1', ' v3 \n');
  const messages = conversation('orders', [], story.view, [step('call-1-1-1')]);
  assert.deepEqual(
    messages.map(({ role, text }) => [role, text]),
    [
      ['system', 'orders'],
      ['user', 'version?'],
      ['assistant', 'I call.'],
      ['tool', ' v3 \n'],
    ],
  );
});

test('a hash of the whole text that the model has read from a call is recorded [S2-11]', () => {
  const story = new TaskStory().message('version?').answers('call-1-1-1', 'v3 ✅');
  const sha256 = createHash('sha256').update('v3 ✅').digest('hex');
  assert.deepEqual(readOf(step('call-1-1-1'), story.view), [{ call: 'call-1-1-1', sha256, units: 4 }]);
  assert.deepEqual(readOf(undefined, story.view), []);
});

test('a failure, a stopped call, data, and a text beyond the limit are marked', () => {
  const reason = 'out of order';
  const story = new TaskStory().message('x').answers('call-1-1-1', 'so far', { state: 'TASK_STATE_FAILED', reason });
  story.appends('supervisor', { kind: 'call', call: 'call-1-1-2', agent: 'argocd' });
  const parts = [{ data: { a: 1 } }];
  story.appends('call-1-1-2', { kind: 'artifact', lane: 'd', artifact: { name: 'table' }, parts, append: false, last: true });
  assert.deepEqual(results(story, step('call-1-1-1', 'call-1-1-2')), [
    'so far\n[the agent failed: out of order]',
    '{"a":1}\n[the call was stopped]',
  ]);
  const edge = 'x'.repeat(RESULT_UNITS_MAX);
  assert.deepEqual(results(new TaskStory().message('x').answers('c', edge), step('c')), [edge]);
  assert.match(results(new TaskStory().message('x').answers('c', `${edge}y`), step('c'))[0]!, /x\n\[cut: 1 more characters\]$/);
});

test('data of an agent beyond the limit is cut with a mark, like its text', () => {
  const story = new TaskStory().message('go');
  story.appends('supervisor', { kind: 'call', call: 'call-1-1-1', agent: 'argocd' });
  const parts = [{ data: { rows: 'x'.repeat(RESULT_UNITS_MAX / 2) } }];
  for (const lane of ['1', '2', '3'])
    story.appends('call-1-1-1', { kind: 'artifact', lane, artifact: { name: 'rows' }, parts, append: false, last: true });
  story.appends('call-1-1-1', { kind: 'ended', call: 'call-1-1-1', state: 'TASK_STATE_COMPLETED' });
  const [result = ''] = results(story, step('call-1-1-1'));
  const [, mark = ''] = /\n(\[cut: \d+ more characters\])$/.exec(result) ?? [];
  assert.equal(mark, `[cut: ${RESULT_UNITS_MAX / 2 + 3 * '{"rows":""}'.length + 2} more characters]`);
  assert.equal(result.length, RESULT_UNITS_MAX + 1 + mark.length);
});

test('a call that asked a question continues under a new id in the next turn, and gives the model one result', () => {
  const question: Message = { messageId: 'q', role: 'ROLE_AGENT', parts: [{ text: 'Which?' }] };
  const story = new TaskStory().message('version?');
  story.appends('supervisor', { kind: 'step', step: '1', payload: step('call-1-1-1') });
  story.answers('call-1-1-1', 'Hm. ', { state: 'TASK_STATE_INPUT_REQUIRED', message: question, resume: { id: 7 } });
  story.appends('supervisor', { kind: 'status', state: 'TASK_STATE_INPUT_REQUIRED', message: question });
  story.message('blue', 'm2');
  assert.deepEqual(story.view.waiting, [{ call: 'call-1-1-1', agent: 'argocd', resume: { id: 7 } }]);
  assert.equal(story.view.steps.size, 1);
  story.answers('call-2-1', 'v3', {}, 2);
  assert.deepEqual(results(story, step('call-1-1-1')), ['Hm. \n[the agent asked: Which?]\n[the user answered: blue]\nv3']);
  assert.deepEqual(
    readOf(step('call-1-1-1'), story.view).map(({ call }) => call),
    ['call-1-1-1', 'call-2-1'],
  );
  assert.deepEqual([story.view.requestTurn, story.view.messageOf(1)?.messageId], [1, 'version?']);
});

test('the answer to one question refuses a call whose own question has not been shown', () => {
  const shown: Message = { messageId: 'q', role: 'ROLE_AGENT', parts: [{ text: 'Continue?' }] };
  const parts = approvalRequestParts({ callId: 'c-2', tool: 'refund', arguments: {} });
  const story = new TaskStory().message('go');
  story.appends('supervisor', { kind: 'step', step: '1', payload: step('call-1-1-1', 'call-1-1-2') });
  story.answers('call-1-1-1', '', { state: 'TASK_STATE_INPUT_REQUIRED', message: shown });
  story.answers('call-1-1-2', '', { state: 'TASK_STATE_INPUT_REQUIRED', message: { ...shown, messageId: 'q2', parts } });
  story.appends('supervisor', { kind: 'status', state: 'TASK_STATE_INPUT_REQUIRED', message: shown });
  story.message('yes', 'm2');
  const [first, second] = story.view.waiting;
  assert.equal(first?.message, undefined);
  const { approved, reason } = readApprovalResponse(second!.message!.parts, { callId: 'c-2' });
  assert.deepEqual([approved, reason], [false, 'another question was open, and the user has not seen this one']);
});

test('a call that waits for credentials is answered like one that asked; concurrent calls were stopped', () => {
  const story = new TaskStory().message('version?');
  story.appends('supervisor', { kind: 'status', state: 'TASK_STATE_WORKING' });
  story.appends('supervisor', { kind: 'step', step: '1', payload: step('call-1-1-1', 'call-1-1-2') });
  for (const call of ['call-1-1-1', 'call-1-1-2']) story.appends('supervisor', { kind: 'call', call, agent: 'argocd' });
  const question: Message = { messageId: 'q', role: 'ROLE_AGENT', parts: [{ text: 'Log in.' }] };
  story.appends('call-1-1-2', { kind: 'status', state: 'TASK_STATE_AUTH_REQUIRED', message: question, resume: { id: 7 } });
  assert.deepEqual([story.view.waitsForClient, story.view.needsCredentials('call-1-1-2')], [false, true]);
  story.message('I did', 'm2');
  assert.deepEqual(story.view.waiting, [{ call: 'call-1-1-2', agent: 'argocd', resume: { id: 7 } }]);
  assert.deepEqual([story.view.steps.size, story.view.requestTurn], [1, 1]);
  story.answers('call-2-1', 'v3', {}, 2);
  assert.deepEqual(results(story, step('call-1-1-1', 'call-1-1-2')), [
    '[the call was stopped]',
    '[the agent asked: Log in.]\n[the user answered: I did]\nv3',
  ]);
  // The request ends with this turn, because the next message begins a new one.
  story.message('more', 'm3');
  assert.deepEqual([story.view.waiting.length, story.view.requestTurn], [0, 3]);
});

test('a message that does not answer a question begins a new request, without earlier steps and with the context as its history', () => {
  const story = new TaskStory().message('one');
  story.appends('supervisor', { kind: 'step', step: '1', payload: step() });
  story.message('two', 'm2');
  assert.equal(story.view.steps.size, 0);
  const answer: Message = { messageId: 'a', role: 'ROLE_AGENT', parts: [{ text: 'first' }] };
  const earlier = [story.view.messageOf(1)!, answer];
  assert.deepEqual(
    conversation('orders', earlier, story.view, []).map(({ role, text }) => [role, text]),
    [
      ['system', 'orders'],
      ['user', 'one'],
      ['assistant', 'first'],
      ['user', 'two'],
    ],
  );
});
