import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ContextEntry, MessageIdEntry, PushConfigEntry, PushProgressEntry, TaskIndexEntry } from '@hopline/log';
import { ENTRY_CHECKS, type EntryCheck } from './entry-checks.ts';

const owner = { tenant: 't', subject: 's' };
const task: TaskIndexEntry = {
  contextId: 'c',
  role: 'agent.painter',
  owner,
  state: 'TASK_STATE_INPUT_REQUIRED',
  startSeq: 1,
  startStoredAt: 1,
  generation: 1,
  foldedSeq: 1,
  seq: 1,
  storedBytes: 1,
  at: 1,
  inputRequest: { n: 1, at: 1 },
  authRequest: { n: 1, at: 1 },
};
const messageId: MessageIdEntry = { taskId: 't1', fingerprint: 'f' };
const context: ContextEntry = { tasks: ['t1', 't2'] };
const webhook: PushConfigEntry = {
  taskId: 't1',
  id: 'é',
  url: 'https://example.org/hook',
  dialect: '1.0',
  owner,
  after: 0,
  waitsUntil: 1,
  token: 'x',
  authentication: { scheme: 'Bearer', credentials: 'x' },
  sealed: '1.a.b',
};
const progress: PushProgressEntry = {
  config: 1,
  generation: 1,
  seq: 1,
  sending: 1,
  failures: 1,
  failingSince: 1,
  retryAt: 1,
  retryMs: 1,
};

const cases: [EntryCheck, object, optional: string[]][] = [
  [ENTRY_CHECKS.tasks, task, ['owner', 'startStoredAt', 'foldedSeq', 'seq', 'storedBytes', 'inputRequest', 'authRequest']],
  [ENTRY_CHECKS.messageIds, messageId, []],
  [ENTRY_CHECKS.contexts, context, []],
  [ENTRY_CHECKS.pushConfigs, webhook, ['owner', 'waitsUntil', 'token', 'authentication', 'sealed']],
  [ENTRY_CHECKS.pushProgress, progress, ['sending', 'failingSince', 'retryAt', 'retryMs']],
];

test('an entry needs every member that readers rely on, with the right type', () => {
  for (const [isValid, entry, optional] of cases) {
    const members = { ...entry } as Record<string, unknown>;
    assert.equal(isValid(members, 't1'), true);
    for (const name of Object.keys(members)) {
      const { [name]: _left, ...rest } = members;
      assert.equal(isValid(rest, 't1'), optional.includes(name), `without ${name}`);
      for (const value of [null, true, ['a.b'], {}])
        if (name !== 'owner' || value === null) assert.equal(isValid({ ...rest, [name]: value }, 't1'), false, name);
    }
  }
});

test('the bytes of a tenant are pairs of numbers', () => {
  const isValid = (stored: unknown) => ENTRY_CHECKS.taskLists({ v: 1, stored }, 'tenant.0.stored');
  assert.deepEqual([isValid([]), isValid([[1, 2]])], [true, true]);
  for (const stored of [undefined, {}, [1], [[1]], [[1, 2, 3]], [[1, '2']], [[1, null]]]) assert.equal(isValid(stored), false);
});

test('ids of tasks, roles, URLs and times are checked as their readers need them', () => {
  const entry = { ...task } as Record<string, unknown>;
  assert.equal(ENTRY_CHECKS.tasks(entry, 'a/b'), false);
  for (const more of [{ role: 'agent.' }, { owner: { tenant: 1 } }, { inputRequest: { n: 1 } }, { authRequest: { at: 1 } }])
    assert.equal(ENTRY_CHECKS.tasks({ ...entry, ...more }, 't1'), false, JSON.stringify(more));
  // A `Date` holds times up to 8.64e15; a later one cannot be formatted.
  for (const [at, isValid] of [
    [8.64e15, true],
    [8.64e15 + 1, false],
  ] as const) {
    for (const more of [{ at }, { startStoredAt: at }, { inputRequest: { n: 1, at } }, { authRequest: { n: 1, at } }])
      assert.equal(ENTRY_CHECKS.tasks({ ...entry, ...more }, 't1'), isValid, JSON.stringify(more));
    assert.equal(ENTRY_CHECKS.pushConfigs({ ...webhook, waitsUntil: at }, 'k'), isValid);
    for (const more of [{ failingSince: at }, { retryAt: at }])
      assert.equal(ENTRY_CHECKS.pushProgress({ ...progress, ...more }, 'k'), isValid, JSON.stringify(more));
  }
  for (const [agents, isValid] of [
    [undefined, true],
    [['guide'], true],
    ['guide', false],
    [[7], false],
  ] as const)
    assert.equal(ENTRY_CHECKS.tasks({ ...entry, listed: { messages: 1, agents } }, 't1'), isValid, JSON.stringify(agents));
  assert.equal(ENTRY_CHECKS.contexts({ tasks: ['t1', 'a.b'] }, 'k'), false);
  assert.equal(ENTRY_CHECKS.messageIds({ ...messageId, taskId: '' }, 'k'), false);
  assert.equal(ENTRY_CHECKS.pushConfigs({ ...webhook, url: 'no url' }, 'k'), false);
});
