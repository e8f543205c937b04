import assert from 'node:assert/strict';
import { test } from 'node:test';
import { LogDenied, type RecordMark } from '@hopline/log';
import { RecordChecks } from './record-checks.ts';

const MARKS: RecordMark[] = ['a', 'b', 'c'].map((taskId, index) => ({ seq: index + 1, id: `${taskId}:relay:1` }));

/** The log has lost the record of task `c`. */
function checksOf(newest: (taskIds: readonly string[]) => Promise<ReadonlyMap<string, RecordMark>>) {
  const asked: string[] = [];
  const isLost = async ({ id }: RecordMark) => {
    asked.push(id);
    return id === MARKS[2]!.id;
  };
  return { asked, checks: new RecordChecks({ newest, isLost }) };
}

test('checks that begin together share a request, and only those that it does not answer are made one by one', async () => {
  const requests: (readonly string[])[] = [];
  const stored = new Map([
    ['a', MARKS[0]!],
    ['b', MARKS[1]!],
  ]);
  const { asked, checks } = checksOf(async taskIds => {
    requests.push(taskIds);
    return stored;
  });
  assert.deepEqual(await Promise.all(MARKS.map(mark => checks.isLost(mark))), [false, false, true]);
  assert.deepEqual([requests, asked], [[['a', 'b', 'c']], [MARKS[2]!.id]]);
});

test('without the permission for a shared request, each check has its own request', async () => {
  const { asked, checks } = checksOf(() => Promise.reject(new LogDenied('direct get')));
  assert.deepEqual(await Promise.all(MARKS.map(mark => checks.isLost(mark))), [false, false, true]);
  assert.equal(asked.length, MARKS.length);
});
