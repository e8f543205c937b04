import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Fact, FactRecord, TaskAggregate } from '@hopline/events';
import { evolve } from './evolve.ts';
import { project, projectRecord } from './project.ts';

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
const aggregateOf = (facts: Fact[]): TaskAggregate => facts.reduce(evolve, undefined as TaskAggregate | undefined)!;

test('a record is applied fact by fact, with a callback after each', () => {
  const facts = [created, working];
  const seen: [string, number][] = [];
  const view = projectRecord(undefined, recordOf(aggregateOf(facts), facts), ({ generation }, { kind }) =>
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

test('a log without its beginning is projected from the aggregate of its oldest record', () => {
  const aggregate = aggregateOf([created, working, completed]);
  const view = projectRecord(undefined, recordOf(aggregate, [completed]));
  assert.deepEqual(
    [view.task.id, view.task.contextId, view.task.status.state, view.generation],
    ['t', 'c', 'TASK_STATE_COMPLETED', 3],
  );
  const empty = projectRecord(undefined, recordOf(aggregateOf([created, working]), []));
  assert.deepEqual([empty.task.status.state, empty.generation], ['TASK_STATE_WORKING', 2]);
});
