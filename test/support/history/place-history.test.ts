import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Task, TaskState } from '@hopline/a2a';
import type { Fact } from '@hopline/events';
import type { Operation } from './history.ts';
import { placeHistory } from './place-history.ts';

const ids = { taskId: 't', contextId: 'c' };
const message = (messageId: string) => ({ messageId, role: 'ROLE_USER' as const, parts: [{ text: messageId }] });
const timestampOf = (at: number) => new Date(at).toISOString();

const created: Fact = {
  kind: 'task.created',
  at: 1,
  generation: 1,
  role: 'supervisor',
  profile: 'caipe',
  event: {
    task: {
      id: 't',
      contextId: 'c',
      status: { state: 'TASK_STATE_SUBMITTED', timestamp: timestampOf(1) },
      history: [message('m1')],
    },
  },
};
const status = (at: number, generation: number, state: TaskState): Fact => ({
  kind: 'status.changed',
  at,
  generation,
  event: { statusUpdate: { ...ids, status: { state, timestamp: timestampOf(at) } } },
});
const text = (at: number, generation: number, piece: string): Fact => ({
  kind: 'artifact.updated',
  at,
  generation,
  lane: 'lane',
  producer: 'call-1-1',
  attempt: 1,
  event: {
    artifactUpdate: { ...ids, artifact: { artifactId: 'a', parts: [{ text: piece }] }, append: generation > 3, lastChunk: false },
  },
});
const FACTS: Fact[] = [
  created,
  status(2, 2, 'TASK_STATE_WORKING'),
  text(3, 3, 'one '),
  text(4, 4, 'two'),
  { kind: 'message.received', at: 5, message: message('m2') } as Fact,
  status(6, 5, 'TASK_STATE_COMPLETED'),
];

function working(answer: string, messageIds = ['m1']): Task {
  return {
    id: 't',
    contextId: 'c',
    status: { state: 'TASK_STATE_WORKING', timestamp: timestampOf(2) },
    history: messageIds.map(message),
    ...(answer !== '' && { artifacts: [{ artifactId: 'a', parts: [{ text: answer }] }] }),
  };
}

const request = { client: 'one', caller: 'anna', replica: 'a', begunAt: 0, endedAt: 1 };

function placesOf(operation: Operation<Task>, mayHaveLost = false) {
  const rules: string[] = [];
  const history = placeHistory(
    [operation],
    taskId => (taskId === 't' ? FACTS : undefined),
    mayHaveLost,
    rule => rules.push(rule),
  );
  const places = history.flatMap(one => {
    if (one.kind === 'list') return one.tasks.map(({ task }) => task.generation);
    return 'result' in one && typeof one.result === 'object' ? [one.result.task.generation] : [];
  });
  return { places, rules };
}

const read = (task: Task): Operation<Task> => ({ ...request, kind: 'read', taskId: 't', result: { task } });
const listed = (task: Task): Operation<Task> => ({
  ...request,
  kind: 'list',
  contextId: undefined,
  pages: 1,
  tasks: [{ task, begunAt: 0, endedAt: 1 }],
});

test('a read is placed by its state, texts and messages', () => {
  assert.deepEqual(placesOf(read(working(''))).places, [{ from: 2, to: 2 }]);
  assert.deepEqual(placesOf(read(working('one '))).places, [{ from: 3, to: 3 }]);
  assert.deepEqual(placesOf(read(working('one two'))).places, [{ from: 4, to: 4 }]);
  assert.deepEqual(placesOf(read(working('one two', ['m1', 'm2']))).places, [{ from: 4, to: 4 }]);
});

test('a task in a list is placed by its status, because a list leaves artifacts and messages out', () => {
  assert.deepEqual(placesOf(listed(working(''))).places, [{ from: 2, to: 4 }]);
});

test('a response that shows its task as it never was is reported, unless the log may have lost facts', () => {
  for (const task of [working('two'), working('one ', ['m1', 'm2']), { ...working(''), id: 'u' }]) {
    assert.deepEqual(placesOf(read(task)), { places: [], rules: ['a response shows the task as the log had it'] });
    assert.deepEqual(placesOf(read(task), true), { places: [], rules: [] });
  }
});
