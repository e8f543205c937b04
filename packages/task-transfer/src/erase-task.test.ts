import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Message } from '@hopline/a2a';
import {
  addEnded,
  chosenTaskKey,
  endedKey,
  endedTaskOf,
  isEndedTasks,
  LogConflict,
  LogDenied,
  listKeyOf,
  listPrefixOf,
  messageIdKey,
  type PushConfigEntry,
  type PushProgressEntry,
  putWebhookCount,
  type TaskIndexEntry,
  webhookCountKey,
} from '@hopline/log';
import { createMemoryLog, type MemoryLog } from '@hopline/log/memory';
import { inputRecord } from '@hopline/log/test-kit';
import { StoredScenario, supervisor } from '@hopline/task/test-kit';
import { EraseDenied, EraseRefused, eraseTask } from './erase-task.ts';

const OWNER = { tenant: 'acme', subject: 'ann' };
const ROLE = 'supervisor';
const NOTHING = { work: 0, inputs: 0, facts: 0, indexEntries: 0, listRows: 0, messageIds: 0, webhooks: 0 };
const erase = (log: MemoryLog, taskId: string, listedMsMax = 5_000) =>
  eraseTask(log, taskId, { signal: new AbortController().signal, listedMsMax });

const countKeyOf = (taskId: string) => webhookCountKey(OWNER, `${taskId}.aG9vaw`, 9);

async function storeTask(log: MemoryLog, taskId: string, ends = true): Promise<TaskIndexEntry> {
  const task = new StoredScenario(log.facts, taskId);
  await task.message('my secret', `${taskId}-m1`, ROLE, 'caipe', { owner: OWNER, contextId: 'c1' }).store();
  if (ends) await task.input(supervisor(), { kind: 'status', state: 'TASK_STATE_COMPLETED' }).store();
  const { state, generation, contextId } = task.aggregate!;
  const { seq } = task.newest!;
  const entry: TaskIndexEntry = { contextId, role: ROLE, state, startSeq: 1, generation, at: 5, owner: OWNER, seq };
  await log.tasks.put(taskId, entry);
  await log.inputs.append(taskId, inputRecord(1), { id: `${taskId}:msg` });
  await log.work.request(ROLE, { taskId, turn: 1, owner: OWNER } as never, { id: `${taskId}:work` });
  for (const key of [messageIdKey(OWNER, 'c1', `${taskId}-m1`), chosenTaskKey(taskId)])
    await log.messageIds.put(key, { taskId, fingerprint: 'f' });
  const webhook = { taskId, id: 'hook', url: 'http://x', dialect: '1.0', after: 0, owner: OWNER, bytes: 9 } as PushConfigEntry;
  await putWebhookCount(log.pushConfigs, countKeyOf(taskId));
  await log.pushConfigs.put(`${taskId}.aG9vaw`, webhook);
  await log.pushProgress.put(`${taskId}.aG9vaw`, { config: 1, generation: 1, seq: 1, failures: 0 } as PushProgressEntry);
  const prefix = listPrefixOf(taskId, entry, log.layouts);
  if (ends)
    await addEnded(
      log.taskLists,
      prefix,
      [{ ...entry, listed: { messages: 1, question: 'my secret' } }].map(one => endedTaskOf(taskId, one)),
    );
  else await log.taskLists.put(listKeyOf(taskId, entry, log.layouts), entry);
  return entry;
}

async function listedIn(log: MemoryLog, entry: TaskIndexEntry): Promise<string[]> {
  const value = (await log.taskLists.get(endedKey(listPrefixOf('one', entry, log.layouts))))?.value;
  return value !== undefined && isEndedTasks(value) ? value.ended.map(([taskId]) => taskId) : [];
}

test('an erased task leaves nothing in the log, other tasks keep theirs, and a repetition finds nothing', async () => {
  const log = createMemoryLog({ shards: 1 });
  const entry = await storeTask(log, 'one');
  await storeTask(log, 'two');
  const erased = { work: 1, inputs: 1, facts: 2, indexEntries: 1, listRows: 1, messageIds: 2, webhooks: 1 };
  assert.deepEqual(await erase(log, 'one'), erased);
  assert.equal(await log.facts.last('one'), undefined);
  assert.equal(await log.tasks.get('one'), undefined);
  assert.deepEqual(await log.pushConfigs.under('one'), []);
  assert.equal(await log.pushConfigs.get(countKeyOf('one')), undefined);
  assert.deepEqual(await log.pushProgress.under('one'), []);
  assert.deepEqual(await listedIn(log, entry), ['two']);
  assert.deepEqual(await erase(log, 'one'), NOTHING);
  assert.deepEqual(await erase(log, 'two'), erased);
});

test('an interrupted removal is completed by a repetition, even while relays write the list', async () => {
  const log = createMemoryLog({ shards: 1 });
  const entry = await storeTask(log, 'one');
  const { purgeTask: eraseRecords } = log;
  log.purgeTask = () => Promise.reject(new Error('interrupted'));
  await assert.rejects(erase(log, 'one'), /interrupted/);
  log.purgeTask = eraseRecords;
  await addEnded(log.taskLists, listPrefixOf('one', entry, log.layouts), [endedTaskOf('one', entry)]);
  const { update } = log.taskLists;
  let conflicts = 2;
  log.taskLists.update = (...args) => {
    if (conflicts-- > 0) throw new LogConflict('a relay was first');
    return update.apply(log.taskLists, args);
  };
  assert.deepEqual(await erase(log, 'one'), { ...NOTHING, work: 1, inputs: 1, facts: 2, listRows: 1 });
  assert.deepEqual(await listedIn(log, entry), []);
});

test('a task that has not ended is refused, with or without facts', async () => {
  const log = createMemoryLog({ shards: 1 });
  await storeTask(log, 'open', false);
  const message: Message = { messageId: 'm', role: 'ROLE_USER', parts: [{ text: 'my secret' }] };
  const input = { kind: 'message', message, contextId: 'c1', role: ROLE, profile: 'caipe' } as const;
  await log.inputs.append('sent', { v: 1, at: 1, from: 'client', input }, { id: 'sent:msg' });
  for (const taskId of ['open', 'sent']) {
    await assert.rejects(
      erase(log, taskId),
      new EraseRefused(`task ${taskId} has not ended: end it with \`hopline cancel ${taskId}\`, then repeat the command`),
    );
  }
  assert.notEqual(await log.facts.last('open'), undefined);
});

test('a task whose end no relay has listed yet is refused after a bounded wait, and nothing is removed', async () => {
  const log = createMemoryLog({ shards: 1 });
  const entry = await storeTask(log, 'one');
  await log.taskLists.put(listKeyOf('one', entry, log.layouts), entry);
  await assert.rejects(erase(log, 'one', 0), /not in the list of its owner yet/);
  assert.notEqual(await log.facts.last('one'), undefined);
  const erasing = erase(log, 'one');
  await log.taskLists.purge(listKeyOf('one', entry, log.layouts), Number.MAX_SAFE_INTEGER - 1);
  assert.equal((await erasing).facts, 2);
});

test('a user without the permission learns which one, and that the task is not removed', async () => {
  const log = createMemoryLog({ shards: 1 });
  await storeTask(log, 'one');
  log.messageIds.purge = () => Promise.reject(new LogDenied('NATS does not permit user operator to publish to X'));
  log.pushConfigs.delete = () => Promise.reject(new LogDenied('NATS does not permit user operator to publish to X'));
  await assert.rejects(
    erase(log, 'one'),
    new EraseDenied(
      'task one is not removed: NATS does not permit user operator to publish to X, or repeat the command as the user admin',
    ),
  );
});
