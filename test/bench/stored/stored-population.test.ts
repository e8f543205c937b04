import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Message } from '@hopline/a2a';
import { contextIdOf, isTaskId } from '@hopline/events';
import { CopiedTask, type StoredTask } from './copied-task.ts';
import {
  CALLER,
  CALLER_TASKS,
  CONTEXT_TASKS,
  callerTask,
  callerTasks,
  LARGE_CALLER,
  populationTask,
} from './stored-population.ts';

const UNTIL_MS = 1_790_000_000_000;

for (const total of [1_000, 5_000, 20_000])
  test(`a log of ${total} tasks has ${CALLER_TASKS} of the caller, evenly spread among the others, in contexts of ${CONTEXT_TASKS}`, () => {
    const all = Array.from({ length: total }, (_, k) => populationTask(k, total, UNTIL_MS));
    assert.equal(new Set(all.map(({ taskId }) => taskId)).size, total);
    for (const { taskId } of all) assert.ok(isTaskId(taskId) && contextIdOf(taskId) !== undefined, taskId);
    const ofCaller = all.filter(({ subject }) => subject === CALLER);
    assert.equal(ofCaller.length, CALLER_TASKS);
    assert.equal(callerTasks(total), CALLER_TASKS);
    for (const [n, task] of ofCaller.entries()) assert.deepEqual(task, callerTask(n, total, UNTIL_MS));
    const contexts = Map.groupBy(ofCaller, ({ contextId }) => contextId);
    assert.ok([...contexts.values()].every(tasks => tasks.length === CONTEXT_TASKS));
    assert.equal(ofCaller.filter(({ state }) => state === 'TASK_STATE_FAILED').length, CALLER_TASKS / 10);
    if (total > CALLER_TASKS)
      assert.ok(all.filter(({ subject }) => subject === LARGE_CALLER).length >= (total - CALLER_TASKS) / 4);
  });

test('a copy differs from its task in ids, owner, times, sequences and final state, and has the same length', () => {
  const at = 1_780_000_000_123;
  const original = { taskId: '01a20e0a-2ed1-79dc-9075-94ba7d4fce55', contextId: '01a20e0a-2f8e-89b8-b349-31dd7206b3cb' };
  const named = { messageId: 'bbac275c-9b68-4264-a706-08e85474db97', subject: 'caller-000000' };
  const record = (id: typeof original & typeof named, startSeq: number, timeMs: number, state: string) =>
    JSON.stringify({ ...id, startSeq, at: timeMs, text: 'at 1', timestamp: new Date(timeMs).toISOString(), state });
  const entry = {
    contextId: original.contextId,
    role: 'supervisor',
    state: 'TASK_STATE_COMPLETED',
    startSeq: 7,
    generation: 3,
    at,
  } as const;
  const message = (messageId: string): Message => ({ messageId, role: 'ROLE_USER', parts: [{ text: 'q' }] });
  const listed = { messages: 2, history: [message(named.messageId), message('other')], answer: 'a' };
  const stored: StoredTask = {
    ...original,
    ...named,
    endedAt: at,
    generation: 3,
    facts: [record({ ...original, ...named }, 7, at, 'TASK_STATE_COMPLETED')],
    relay: 'relay-1',
    entry,
    listed,
  };
  const copy = populationTask(0, 1_000, UNTIL_MS);
  const copied = new CopiedTask(stored);
  const { taskId, contextId, messageId, subject, endedAt, state } = copy;
  assert.deepEqual(copied.facts(copy, 9), [record({ taskId, contextId, messageId, subject }, 9, endedAt, state)]);
  assert.deepEqual(copied.row(copy, 9), [
    taskId,
    contextId,
    state,
    endedAt,
    3,
    9,
    { ...listed, history: [message(messageId), message('other')] },
  ]);
  assert.equal(copied.factsId(copy, 1), `${taskId}:relay-1:1`);
  assert.deepEqual(copied.entry(copy, 9).owner, { subject });
});
