import assert from 'node:assert/strict';
import { it } from 'node:test';
import { Scenario } from '@hopline/task/test-kit';
import { rebindRecord } from './rebind-record.ts';

/** The last time that a `Date` holds. */
const LAST_MS = 8.64e15;

it('recorded times are shifted, except a time that would then be out of the range of Date', () => {
  for (const [at, shiftMs, expected] of [
    [1_000, 500, 1_500],
    [LAST_MS - 500, 500, LAST_MS],
    [LAST_MS - 500, 501, LAST_MS - 500],
    [0, -LAST_MS, -LAST_MS],
    [0, -LAST_MS - 1, 0],
  ] as const) {
    const task = new Scenario('t1', () => at).message('hi', 'm1');
    const record = { v: 1, facts: task.facts, aggregate: { ...task.aggregate!, at }, startSeq: 0, startStoredAt: 0 } as const;
    const rebound = rebindRecord(record, { taskId: 't2', contextId: 'c2', shiftMs });
    const [created] = rebound.facts;
    assert.ok(created?.kind === 'task.created');
    assert.deepEqual([created.at, rebound.aggregate.at], [expected, expected]);
    assert.equal(created.event.task.status.timestamp, new Date(expected).toISOString());
  }
});
