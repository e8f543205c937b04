import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Message } from '@hopline/a2a';
import { createMemoryLog, type MemoryLog } from '@hopline/log/memory';
import fc from 'fast-check';
import { CONTEXT_HISTORY_LIMITS } from './limits.ts';
import { type ContextHistory, readContextHistory } from './read-context-history.ts';
import { ToldTask, user } from './task-facts.test-kit.ts';

const brief = ({ messages }: ContextHistory) => messages.map(line);
const line = ({ role, parts }: Message) =>
  `${role === 'ROLE_USER' ? 'user' : 'agent'}: ${parts.map(({ text }) => text).join(' | ')}`;

/** A task in profile `caipe` that answers with a text. */
async function answered(log: MemoryLog, taskId: string, text: string, answer: string, more: object = {}): Promise<ToldTask> {
  const task = await ToldTask.begin(log, taskId, { text, ...more });
  await task.shows('execution_plan_update', '⟦plan⟧', 'plan');
  await task.shows('tool_notification_start', '🔧 Calling', 'start');
  await task.shows('streaming_result', answer.slice(0, 1), 'one');
  await task.shows('streaming_result', answer.slice(1), 'two');
  await task.shows('tool_notification_end', '✅ done', 'end');
  await task.shows('partial_result', answer, 'result');
  return task.ends('COMPLETED');
}

test('the tasks of a context are one conversation: what was asked, and the answers without notices and plan [S3-17]', async () => {
  const log = createMemoryLog();
  await answered(log, 't1', '2+2', '4');
  await answered(log, 't2', '3+3', '6', { earlierTasks: ['t1'] });
  const { newest } = await ToldTask.begin(log, 't3', { text: 'add them', earlierTasks: ['t1', 't2'] });
  const conversation = await readContextHistory(log, newest, 1);
  assert.deepEqual(brief(conversation), ['user: 2+2', 'agent: 4', 'user: 3+3', 'agent: 6']);
  assert.deepEqual(conversation.messages[0], user('2+2', 't1-m1'), 'as it came');
  assert.deepEqual(conversation.messages[1], {
    messageId: 't1-answer-1',
    role: 'ROLE_AGENT',
    parts: [{ text: '4' }],
    taskId: 't1',
    contextId: 'c1',
  });
});

test('turns of the task itself come after those of earlier tasks, and the turn that is worked on is not among them [S0-4]', async () => {
  const log = createMemoryLog();
  await answered(log, 't1', '2+2', '4');
  const task = await ToldTask.begin(log, 't2', { text: 'deploy', earlierTasks: ['t1'] });
  await task.ends('INPUT_REQUIRED', 'where to?');
  await task.message('prod');
  await task.shows('streaming_result', 'half of ', 'a');
  await task.message('no, staging');
  const before = ['user: 2+2', 'agent: 4', 'user: deploy', 'agent: where to?'];
  assert.deepEqual(brief(await readContextHistory(log, task.newest, 2)), before);
  const third = brief(await readContextHistory(log, task.newest, 3));
  assert.deepEqual(third, [...before, 'user: prod', 'agent: half of '], 'what was overtaken had been said');
});

test('another owner’s tasks of the same context, and another context’s, are nobody’s conversation whatever the list says', async () => {
  const log = createMemoryLog();
  const ann = { tenant: 't', subject: 'ann' };
  await answered(log, 'bobs', 'secret of bob', 'yes', { owner: { tenant: 't', subject: 'bob' } });
  await answered(log, 'nobodys', 'secret of nobody', 'yes');
  await answered(log, 'elsewhere', 'another context', 'yes', { owner: ann, contextId: 'c2' });
  await answered(log, 'other-door', 'asked elsewhere', 'yes', { owner: ann, role: 'agent.echo' });
  await answered(log, 'own', 'mine', 'yes', { owner: ann });
  const earlier = ['bobs', 'nobodys', 'elsewhere', 'other-door', 'own'];
  const { newest } = await ToldTask.begin(log, 't2', { text: 'x', owner: ann, earlierTasks: earlier });
  assert.deepEqual(brief(await readContextHistory(log, newest, 1)), ['user: mine', 'agent: yes']);
});

test('a task that is gone, or whose beginning is, is passed over', async () => {
  const log = createMemoryLog();
  await answered(log, 't1', 'one', '1');
  const cut = await answered(log, 't2', 'two', '2');
  log.expire('facts', 't2', cut.newest.seq);
  const { newest } = await ToldTask.begin(log, 't3', { text: 'x', earlierTasks: ['gone', 't1', 't2'] });
  assert.deepEqual(brief(await readContextHistory(log, newest, 1)), ['user: one', 'agent: 1']);
});

test('an agent’s own artifacts are parts of its answer, and the message it ends with is said once', async () => {
  const log = createMemoryLog();
  const own = { role: 'agent.echo', profile: 'transparent' } as const;
  const plain = await ToldTask.begin(log, 't1', { text: 'a', ...own });
  await plain.shows('response', 'said');
  await plain.shows('progress', '50 %');
  await plain.shows('table', 'a,b');
  await plain.ends('COMPLETED', 'a,b');
  const message = await ToldTask.begin(log, 't2', { text: 'b', ...own });
  await message.ends('COMPLETED', '42');
  const failed = await ToldTask.begin(log, 't3', { text: 'c', ...own });
  await failed.shows('response', 'so f');
  await failed.ends('FAILED', 'it broke');
  const running = await ToldTask.begin(log, 't4', { text: 'd', ...own });
  await running.shows('response', 'not yet');
  const { newest } = await ToldTask.begin(log, 't5', { text: 'x', ...own, earlierTasks: ['t1', 't2', 't3', 't4'] });
  assert.deepEqual(brief(await readContextHistory(log, newest, 1)), [
    'user: a',
    'agent: said | a,b',
    'user: b',
    'agent: 42',
    'user: c',
    'agent: so f | it broke',
    'user: d',
  ]);
});

test('what an agent left comes back: of a question to the turn that answers it, of a good end to every later one', async () => {
  const log = createMemoryLog();
  const own = { role: 'agent.echo', profile: 'transparent' } as const;
  const first = await ToldTask.begin(log, 't1', { text: 'a', ...own });
  await first.ends('COMPLETED', 'ok', { contextId: 'theirs' });
  const task = await ToldTask.begin(log, 't2', { text: 'b', ...own, earlierTasks: ['t1'] });
  const resume = async (turn: number) => (await readContextHistory(log, task.newest, turn)).resumes.get('echo');
  assert.deepEqual(await resume(1), { contextId: 'theirs' });
  await task.ends('INPUT_REQUIRED', 'which?', { taskId: 'asks' });
  await task.message('that one');
  assert.deepEqual(await resume(2), { taskId: 'asks' });
  await task.message('never mind');
  assert.deepEqual(await resume(3), { contextId: 'theirs' }, 'the question was overtaken');
  assert.ok(!JSON.stringify(task.newest.record.facts.map(fact => 'event' in fact && fact.event)).includes('theirs'));
});

test('a call’s end leaves it to the next call of the same agent; a call that waits is the supervisor’s business', async () => {
  const log = createMemoryLog();
  const task = await ToldTask.begin(log, 't1', { text: 'a' });
  for (const [call, agent] of [
    ['call-1-1', 'argocd'],
    ['call-1-2', 'files'],
  ] as const)
    await task.says({ kind: 'call', call, agent });
  await task.says({ kind: 'ended', call: 'call-1-1', state: 'TASK_STATE_COMPLETED', resume: { contextId: 'a' } }, 'call-1-1');
  await task.says({ kind: 'ended', call: 'call-1-2', state: 'TASK_STATE_INPUT_REQUIRED', resume: { taskId: 'f' } }, 'call-1-2');
  await task.ends('INPUT_REQUIRED', 'which?');
  await task.message('that one');
  const { resumes } = await readContextHistory(log, task.newest, 2);
  assert.deepEqual([...resumes], [['argocd', { contextId: 'a' }]]);
});

test('a first turn without earlier tasks reads nothing', async () => {
  const log = createMemoryLog();
  const { newest } = await ToldTask.begin(log, 't1', { text: 'a' });
  const noLog = { facts: new Proxy(log.facts, { get: () => assert.fail('it was read') }) };
  assert.deepEqual((await readContextHistory(noLog, newest, 1)).messages, []);
});

test('bounds: tasks, messages and characters, each at its edge; the newest win, and there is no hole', async () => {
  const log = createMemoryLog();
  const earlier: string[] = [];
  for (let index = 1; index <= 4; index += 1) {
    await answered(log, `t${index}`, `q${index}`, `a${index}`, { earlierTasks: [...earlier] });
    earlier.push(`t${index}`);
  }
  const { newest } = await ToldTask.begin(log, 't9', { text: 'x', earlierTasks: earlier });
  const whole = brief(await readContextHistory(log, newest, 1));
  const read = async (limits: object) =>
    brief(await readContextHistory(log, newest, 1, { ...CONTEXT_HISTORY_LIMITS, ...limits }));
  assert.equal(whole.length, 8);
  assert.deepEqual(await read({ tasksMax: 2 }), whole.slice(-4));
  assert.deepEqual(await read({ messagesMax: 3 }), whole.slice(-3));
  const two = 2 * '[{"text":"a4"}]'.length;
  assert.deepEqual(await read({ charactersMax: two }), whole.slice(-2));
  assert.deepEqual(await read({ charactersMax: two - 1 }), whole.slice(-1));
  await fc.assert(
    fc.asyncProperty(fc.nat(10), fc.nat(150), async (messagesMax, charactersMax) => {
      const said = await read({ messagesMax, charactersMax });
      assert.deepEqual(said, said.length === 0 ? [] : whole.slice(-said.length));
    }),
  );
});
