import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Message } from '@hopline/a2a';
import { FORK_KEY } from '@hopline/events';
import { CONTEXT_TASKS_MAX } from '@hopline/log';
import { createMemoryLog, type MemoryLog } from '@hopline/log/memory';
import { type ArtifactHeader, answerArtifact, callNotice, laneArtifact } from '@hopline/profiles';
import fc from 'fast-check';
import ACME from '../../../test/support/profiles/acme.ts';
import { joinContext } from './join-context.ts';
import { CONTEXT_HISTORY_LIMITS, type ContextHistory, FORK_PATH_MAX, readContextHistory } from './read-context-history.ts';
import { LoggedTask, user } from './task-facts.test-kit.ts';

const brief = ({ messages }: ContextHistory) => messages.map(line);
const line = ({ role, parts }: Message) =>
  `${role === 'ROLE_USER' ? 'user' : 'agent'}: ${parts.map(({ text }) => text).join(' | ')}`;

/** A task in profile `caipe` that answers with a text. */
async function answered(log: MemoryLog, taskId: string, text: string, answer: string, more: object = {}): Promise<LoggedTask> {
  const task = await LoggedTask.begin(log, taskId, { text, ...more });
  await task.artifact('execution_plan_update', '⟦plan⟧', 'plan');
  await task.artifact('tool_notification_start', '🔧 Calling', 'start');
  await task.artifact('streaming_result', answer.slice(0, 1), 'one');
  await task.artifact('streaming_result', answer.slice(1), 'two');
  await task.artifact('tool_notification_end', '✅ done', 'end');
  await task.artifact('partial_result', answer, 'result');
  return task.end('COMPLETED');
}

test('plans and notices of a custom profile are not part of the answer, and its result is the whole answer', async () => {
  const log = createMemoryLog();
  const header = (of: ArtifactHeader) => laneArtifact(ACME, of, 'Acme');
  for (const [taskId, result] of [
    ['t1', []],
    ['t2', ['all of it']],
  ] as const) {
    const task = await LoggedTask.begin(log, taskId, { text: 'go' });
    await task.artifact(header(ACME.plan.complete), '⟦plan⟧');
    const call = { lane: 'start', agent: 'supervisor', tool: 'adder', callId: 'c1' };
    await task.input(callNotice(ACME.calls, 'start', call));
    await task.artifact(answerArtifact(ACME, 'Acme', 'adder', 'c1'), 'part', 'answer');
    await task.input(callNotice(ACME.calls, 'failed', { ...call, lane: 'end' }));
    for (const text of result) await task.artifact(header(ACME.result), text);
    await task.end('COMPLETED');
  }
  const { newest } = await LoggedTask.begin(log, 't3', { text: 'x', earlierTasks: ['t1', 't2'] });
  const messages = brief(await readContextHistory(log, newest, 1));
  assert.deepEqual(messages, ['user: go', 'agent: part', 'user: go', 'agent: all of it']);
});

test('the history of a context has the requests and answers of its tasks, without notices and plans [S3-17]', async () => {
  const log = createMemoryLog();
  await answered(log, 't1', '2+2', '4');
  await answered(log, 't2', '3+3', '6', { earlierTasks: ['t1'] });
  const { newest } = await LoggedTask.begin(log, 't3', { text: 'add them', earlierTasks: ['t1', 't2'] });
  const conversation = await readContextHistory(log, newest, 1);
  assert.deepEqual(brief(conversation), ['user: 2+2', 'agent: 4', 'user: 3+3', 'agent: 6']);
  assert.deepEqual(conversation.messages[0], { ...user('2+2', 't1-m1'), taskId: 't1', contextId: 'c1' });
  assert.deepEqual(conversation.messages[1], {
    messageId: 't1-answer-1',
    role: 'ROLE_AGENT',
    parts: [{ text: '4' }],
    taskId: 't1',
    contextId: 'c1',
  });
});

test('turns of earlier tasks come first, then the turns of the task itself, without the current one [S0-4]', async () => {
  const log = createMemoryLog();
  await answered(log, 't1', '2+2', '4');
  const task = await LoggedTask.begin(log, 't2', { text: 'deploy', earlierTasks: ['t1'] });
  await task.end('INPUT_REQUIRED', 'where to?');
  await task.message('prod');
  await task.artifact('streaming_result', 'half of ', 'a');
  await task.message('no, staging');
  const before = ['user: 2+2', 'agent: 4', 'user: deploy', 'agent: where to?'];
  assert.deepEqual(brief(await readContextHistory(log, task.newest, 2)), before);
  const third = brief(await readContextHistory(log, task.newest, 3));
  assert.deepEqual(third, [...before, 'user: prod', 'agent: half of '], 'text of a superseded turn stays in the history');
});

test('tasks of another owner, context or role are skipped even if the list names them', async () => {
  const log = createMemoryLog();
  const ann = { tenant: 't', subject: 'ann' };
  await answered(log, 'bobs', 'secret of bob', 'yes', { owner: { tenant: 't', subject: 'bob' } });
  await answered(log, 'no-owner', 'secret without owner', 'yes');
  await answered(log, 'elsewhere', 'another context', 'yes', { owner: ann, contextId: 'c2' });
  await answered(log, 'other-role', 'another role', 'yes', { owner: ann, role: 'agent.echo' });
  await answered(log, 'own', 'mine', 'yes', { owner: ann });
  const earlier = ['bobs', 'no-owner', 'elsewhere', 'other-role', 'own'];
  const { newest } = await LoggedTask.begin(log, 't2', { text: 'x', owner: ann, earlierTasks: earlier });
  assert.deepEqual(brief(await readContextHistory(log, newest, 1)), ['user: mine', 'agent: yes']);
});

test('a task that retention removed, wholly or in part, is skipped', async () => {
  const log = createMemoryLog();
  await answered(log, 't1', 'one', '1');
  const cut = await answered(log, 't2', 'two', '2');
  log.expire('facts', 't2', cut.newest.seq);
  const { newest } = await LoggedTask.begin(log, 't3', { text: 'x', earlierTasks: ['gone', 't1', 't2'] });
  assert.deepEqual(brief(await readContextHistory(log, newest, 1)), ['user: one', 'agent: 1']);
});

test('artifacts of an agent are parts of its answer, and a final message that repeats them is left out', async () => {
  const log = createMemoryLog();
  const ofEcho = { role: 'agent.echo', profile: 'transparent' } as const;
  const plain = await LoggedTask.begin(log, 't1', { text: 'a', ...ofEcho });
  await plain.artifact('response', 'text');
  await plain.artifact('progress', '50 %');
  await plain.artifact('table', 'a,b');
  await plain.end('COMPLETED', 'a,b');
  const message = await LoggedTask.begin(log, 't2', { text: 'b', ...ofEcho });
  await message.end('COMPLETED', '42');
  const failed = await LoggedTask.begin(log, 't3', { text: 'c', ...ofEcho });
  await failed.artifact('response', 'so f');
  await failed.end('FAILED', 'it broke');
  const running = await LoggedTask.begin(log, 't4', { text: 'd', ...ofEcho });
  await running.artifact('response', 'not yet');
  const { newest } = await LoggedTask.begin(log, 't5', { text: 'x', ...ofEcho, earlierTasks: ['t1', 't2', 't3', 't4'] });
  assert.deepEqual(brief(await readContextHistory(log, newest, 1)), [
    'user: a',
    'agent: text | a,b',
    'user: b',
    'agent: 42',
    'user: c',
    'agent: so f | it broke',
    'user: d',
  ]);
});

test('resume state returns to the answering turn after a request for input, and to every later turn after completion', async () => {
  const log = createMemoryLog();
  const ofEcho = { role: 'agent.echo', profile: 'transparent' } as const;
  const first = await LoggedTask.begin(log, 't1', { text: 'a', ...ofEcho });
  await first.end('COMPLETED', 'ok', { contextId: 'theirs' });
  const task = await LoggedTask.begin(log, 't2', { text: 'b', ...ofEcho, earlierTasks: ['t1'] });
  const resume = async (turn: number) => (await readContextHistory(log, task.newest, turn)).resumes.get('echo');
  assert.deepEqual(await resume(1), { contextId: 'theirs' });
  await task.end('INPUT_REQUIRED', 'which?', { taskId: 'asks' });
  await task.message('that one');
  assert.deepEqual(await resume(2), { taskId: 'asks' });
  await task.message('never mind');
  assert.deepEqual(await resume(3), { contextId: 'theirs' }, 'the request for input was superseded');
  assert.ok(!JSON.stringify(task.newest.record.facts.map(fact => 'event' in fact && fact.event)).includes('theirs'));
});

test('the next call of an agent gets the resume state of an ended call, and not of a waiting call', async () => {
  const log = createMemoryLog();
  const task = await LoggedTask.begin(log, 't1', { text: 'a' });
  for (const [call, agent] of [
    ['call-1-1', 'argocd'],
    ['call-1-2', 'files'],
  ] as const)
    await task.input({ kind: 'call', call, agent });
  await task.input({ kind: 'ended', call: 'call-1-1', state: 'TASK_STATE_COMPLETED', resume: { contextId: 'a' } }, 'call-1-1');
  await task.input({ kind: 'ended', call: 'call-1-2', state: 'TASK_STATE_INPUT_REQUIRED', resume: { taskId: 'f' } }, 'call-1-2');
  await task.end('INPUT_REQUIRED', 'which?');
  await task.message('that one');
  const { resumes } = await readContextHistory(log, task.newest, 2);
  assert.deepEqual([...resumes], [['argocd', { contextId: 'a' }]]);
});

test('a first turn without earlier tasks reads nothing', async () => {
  const log = createMemoryLog();
  const { newest } = await LoggedTask.begin(log, 't1', { text: 'a' });
  const noLog = { facts: new Proxy(log.facts, { get: () => assert.fail('it was read') }) };
  assert.deepEqual((await readContextHistory(noLog, newest, 1)).messages, []);
});

test('the bounds (tasks, messages and characters) hold at their edges; the newest win, and no message is left out between them', async () => {
  const log = createMemoryLog();
  const earlier: string[] = [];
  for (let index = 1; index <= 4; index += 1) {
    await answered(log, `t${index}`, `q${index}`, `a${index}`, { earlierTasks: [...earlier] });
    earlier.push(`t${index}`);
  }
  const { newest } = await LoggedTask.begin(log, 't9', { text: 'x', earlierTasks: earlier });
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
      const messages = await read({ messagesMax, charactersMax });
      assert.deepEqual(messages, messages.length === 0 ? [] : whole.slice(-messages.length));
    }),
  );
});

test('a conversation with one question per task is remembered up to the bound in messages, even if many sends failed', async () => {
  const log = createMemoryLog();
  const join = (taskId: string) => joinContext(log, { owner: undefined, contextId: 'c1', taskId });
  const turns = CONTEXT_HISTORY_LIMITS.messagesMax / 2;
  for (let index = 0; index <= turns; index += 1)
    await answered(log, `t${index}`, `q${index}`, `a${index}`, { earlierTasks: await join(`t${index}`) });
  for (let failed = 0; failed < CONTEXT_TASKS_MAX - turns - 1; failed += 1) await join(`never-stored-${failed}`);
  const { newest } = await LoggedTask.begin(log, 'next', { text: 'x', earlierTasks: await join('next') });
  const messages = brief(await readContextHistory(log, newest, 1));
  assert.equal(messages.length, CONTEXT_HISTORY_LIMITS.messagesMax);
  assert.deepEqual([messages[0], messages.at(-1)], ['user: q1', `agent: a${turns}`]);
});

test('forks of forks are followed through FORK_PATH_MAX tasks, and reads stay bounded', async () => {
  const log = createMemoryLog();
  await answered(log, 'f0', 'q0', 'a0', { contextId: 'c-0' });
  for (let n = 1; n <= FORK_PATH_MAX + 2; n += 1)
    await answered(log, `f${n}`, `q${n}`, `a${n}`, { contextId: `c-${n}`, ...forkOf(`f${n - 1}`, '99.1') });
  const paths: number[] = [];
  const last = log.facts.last.bind(log.facts);
  log.facts.last = (taskId, by = []) => {
    paths.push(by.length);
    return last(taskId);
  };
  const options = { text: 'x', contextId: 'c-last', ...forkOf(`f${FORK_PATH_MAX + 2}`, '99.1') };
  const { newest } = await LoggedTask.begin(log, 'next', options);
  const messages = brief(await readContextHistory(log, newest, 1));
  assert.deepEqual([messages[0], messages.length], ['user: q3', 2 * FORK_PATH_MAX]);
  assert.equal(Math.max(...paths), FORK_PATH_MAX);
});

const forkOf = (taskId: string, cursor: string) => ({ metadata: { [FORK_KEY]: { taskId, cursor } } });

test('a fork has the history of its origin up to the cursor, and the history of the tasks before the origin', async () => {
  const log = createMemoryLog();
  await answered(log, 't1', '2+2', '4');
  const origin = await LoggedTask.begin(log, 't2', { text: 'deploy', earlierTasks: ['t1'] });
  await origin.end('INPUT_REQUIRED', 'where to?');
  const asked = origin.newest.record.aggregate.generation;
  await origin.message('prod');
  await origin.artifact('streaming_result', 'half', 'a');
  await origin.artifact('streaming_result', ' of it', 'b');
  await origin.end('COMPLETED');
  const before = structuredClone(origin.newest);
  const forked = async (cursor: string, taskId = `f${cursor.replace('.', '-')}`, more: object = {}) => {
    const { newest } = await LoggedTask.begin(log, taskId, { text: 'x', contextId: taskId, ...forkOf('t2', cursor), ...more });
    return brief(await readContextHistory(log, newest, 1));
  };
  const earlier = ['user: 2+2', 'agent: 4', 'user: deploy'];
  assert.deepEqual(await forked('1.0'), earlier, 'nothing was answered yet');
  assert.deepEqual(await forked(`${asked}.0`), [...earlier, 'agent: where to?'], 'another answer to its question');
  const part = [...earlier, 'agent: where to?', 'user: prod', 'agent: half'];
  assert.deepEqual(await forked(`${asked + 2}.0`), part, 'the text that the client had');
  assert.deepEqual(await forked('99.0'), [...part.slice(0, -1), 'agent: half of it']);
  assert.deepEqual(await forked(`${asked}.1`, 'f', { earlierTasks: ['t1'] }), [...earlier, 'agent: where to?']);
  assert.deepEqual(origin.newest, before);
});

test('later tasks of the context of a fork, and forks of a fork, continue its history', async () => {
  const log = createMemoryLog();
  await answered(log, 't1', 'one', '1');
  await answered(log, 't2', 'two', '2', { earlierTasks: ['t1'] });
  await answered(log, 'f1', 'other', '3', { contextId: 'c2', ...forkOf('t1', '99.1') });
  const next = await answered(log, 'f2', 'next', '4', { contextId: 'c2', earlierTasks: ['f1'] });
  const upToFork = ['user: one', 'agent: 1', 'user: other', 'agent: 3'];
  assert.deepEqual(brief(await readContextHistory(log, next.newest, 1)), upToFork);
  const { newest } = await LoggedTask.begin(log, 'g1', { text: 'x', contextId: 'c3', ...forkOf('f2', '99.1') });
  const whole = [...upToFork, 'user: next', 'agent: 4'];
  assert.deepEqual(brief(await readContextHistory(log, newest, 1)), whole);
  const read = async (limits: object) =>
    brief(await readContextHistory(log, newest, 1, { ...CONTEXT_HISTORY_LIMITS, ...limits }));
  assert.deepEqual(await read({ tasksMax: 2 }), whole.slice(-4));
  assert.deepEqual(await read({ messagesMax: 3 }), whole.slice(-3));
});

test('tasks with large files end the history of a context, and are not read; the newest one counts whatever its size', async () => {
  const log = createMemoryLog();
  const earlier: string[] = [];
  for (let index = 1; index <= 6; index += 1) {
    await answered(log, `t${index}`, `q${index}`, `a${index}`, { earlierTasks: [...earlier] });
    earlier.push(`t${index}`);
  }
  const next = await LoggedTask.begin(log, 't9', { text: 'x', earlierTasks: earlier });
  const fork = await LoggedTask.begin(log, 'f1', { text: 'x', contextId: 'c2', ...forkOf('t6', '99.1') });
  const last = log.facts.last.bind(log.facts);
  log.facts.last = async (...of) => {
    const stored = await last(...of);
    const storedBytes = 100;
    return stored && { ...stored, record: { ...stored.record, aggregate: { ...stored.record.aggregate, storedBytes } } };
  };
  const reads: string[] = [];
  const read = log.facts.read.bind(log.facts);
  log.facts.read = (taskId, ...from) => {
    reads.push(taskId);
    return read(taskId, ...from);
  };
  // The parts of a service's log are getters, which a copy of the log's own members would lack.
  const served: MemoryLog = Object.create(log);
  for (const { newest } of [next, fork]) {
    for (const [bytesMax, tasks] of [
      [1, 1],
      [200, 2],
      [201, 3],
      [500, 5],
      [600, 6],
    ] as const) {
      reads.length = 0;
      const messages = brief(await readContextHistory(served, newest, 1, { ...CONTEXT_HISTORY_LIMITS, bytesMax }));
      assert.equal(messages.length, 2 * tasks);
      assert.deepEqual(messages.slice(-2), ['user: q6', 'agent: a6']);
      assert.ok(reads.length <= tasks + 1, `${reads.length} reads`);
    }
  }
});

test('a fork does not use tasks of another owner or role, or state that an adapter stored for its next turn', async () => {
  const log = createMemoryLog();
  const ann = { tenant: 't', subject: 'ann' };
  await answered(log, 'bobs', 'secret of bob', 'yes', { owner: { tenant: 't', subject: 'bob' } });
  await answered(log, 'other-role', 'another role', 'yes', { owner: ann, role: 'agent.echo' });
  const mine = await LoggedTask.begin(log, 'own', { text: 'mine', owner: ann });
  await mine.end('INPUT_REQUIRED', 'which?', { taskId: 'theirs' });
  let forks = 0;
  const historyOf = async (taskId: string) => {
    forks += 1;
    const options = { text: 'x', contextId: 'c2', owner: ann, ...forkOf(taskId, '99.1') };
    return readContextHistory(log, (await LoggedTask.begin(log, `f${forks}`, options)).newest, 1);
  };
  for (const taskId of ['bobs', 'other-role', 'gone']) assert.deepEqual(brief(await historyOf(taskId)), []);
  const forked = await historyOf('own');
  assert.deepEqual([brief(forked), [...forked.resumes]], [['user: mine', 'agent: which?'], []]);
  log.expire('facts', 'own', mine.newest.seq);
  assert.deepEqual(brief(await historyOf('own')), [], 'retention has removed its beginning');
});
