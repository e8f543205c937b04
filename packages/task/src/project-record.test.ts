import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Fact, FactRecord, TaskAggregate } from '@hopline/events';
import { evolve } from './evolve.ts';
import { project } from './project.ts';
import { projectRecord } from './project-record.ts';

const ids = { taskId: 't', contextId: 'c' };
const created: Fact = {
  kind: 'task.created',
  at: 1,
  generation: 1,
  event: {
    task: {
      id: 't',
      contextId: 'c',
      status: { state: 'TASK_STATE_SUBMITTED' },
      history: [{ messageId: 'm', role: 'ROLE_USER', parts: [{ text: 'hi' }] }],
    },
  },
  role: 'agent.a',
  profile: 'transparent',
};
const status = (generation: number, state: 'TASK_STATE_WORKING' | 'TASK_STATE_COMPLETED'): Fact => ({
  kind: 'status.changed',
  at: generation,
  generation,
  event: { statusUpdate: { ...ids, status: { state } } },
});
const working = status(2, 'TASK_STATE_WORKING');
const completed = status(3, 'TASK_STATE_COMPLETED');

const recordOf = (aggregate: TaskAggregate, facts: Fact[]): FactRecord => ({
  v: 1,
  facts,
  aggregate,
  startSeq: 0,
  startStoredAt: 1,
});
const controlOf = (facts: Fact[]): TaskAggregate => facts.reduce(evolve, undefined as TaskAggregate | undefined)!;

test('a record is folded fact by fact, and the view after each is told', () => {
  const facts = [created, working];
  const seen: [string, number][] = [];
  const view = projectRecord(undefined, recordOf(controlOf(facts), facts), ({ generation }, { kind }) =>
    seen.push([kind, generation]),
  );
  assert.deepEqual(seen, [
    ['task.created', 1],
    ['status.changed', 2],
  ]);
  assert.deepEqual(
    view,
    facts.reduce((folded, fact) => project(folded, fact), undefined as ReturnType<typeof project> | undefined),
  );
});

test('a log whose beginning is gone is folded from what its oldest record says of the task', () => {
  const aggregate = controlOf([created, working, completed]);
  const view = projectRecord(undefined, recordOf(aggregate, [completed]));
  assert.deepEqual(
    [view.task.id, view.task.contextId, view.task.status.state, view.generation],
    ['t', 'c', 'TASK_STATE_COMPLETED', 3],
  );
  const empty = projectRecord(undefined, recordOf(controlOf([created, working]), []));
  assert.deepEqual([empty.task.status.state, empty.generation], ['TASK_STATE_WORKING', 2]);
});
