import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Layouts } from '@hopline/events';
import { type Log, listKeyOf, type TaskIndexEntry } from '@hopline/log';
import { createMemoryLog } from '@hopline/log/memory';
import { createLogger } from '@hopline/telemetry';
import { until } from '../../../test/kit/until.ts';
import { EndedLists } from './ended-lists.ts';
import { ShardTasks } from './shard-tasks.ts';

const OPEN: TaskIndexEntry = {
  contextId: 'c',
  role: 'agent.echo',
  state: 'TASK_STATE_WORKING',
  startSeq: 1,
  generation: 1,
  at: 1,
};

test('a task may be open until all open tasks of its shard have been read; then only if it is one of them', async t => {
  const log = createMemoryLog({ shards: 1 });
  const logger = createLogger({ service: 'relay', instance: 'test', level: 'silent' });
  const ended = new EndedLists({ log, logger });
  const tasks = new ShardTasks({ log, ended, now: Date.now, logger, onChange: () => {} });
  t.after(() => {
    ended.stop();
    tasks.stop();
  });
  await log.taskLists.create(listKeyOf('open', OPEN, Layouts.one(1)), OPEN);
  assert.ok(tasks.mayBeOpen('unknown', 0));
  tasks.begin(0);
  assert.ok(tasks.mayBeOpen('unknown', 0));
  await until(() => tasks.open.has('open'));
  assert.equal(tasks.mayBeOpen('unknown', 0), false);
  assert.ok(tasks.mayBeOpen('open', 0));
  tasks.apply('open', { entry: { ...OPEN, state: 'TASK_STATE_COMPLETED' }, revision: 9 });
  assert.equal(tasks.mayBeOpen('open', 0), false);
  tasks.end(0);
  assert.ok(tasks.mayBeOpen('open', 0));
});

test('a read that ends after its shard was released does not count for the next tenure of the shard', async t => {
  const log = createMemoryLog({ shards: 1 });
  const logger = createLogger({ service: 'relay', instance: 'test', level: 'silent' });
  const ended = new EndedLists({ log, logger });
  const reads: PromiseWithResolvers<[]>[] = [];
  const match = () => {
    reads.push(Promise.withResolvers());
    return reads.at(-1)!.promise;
  };
  const { tasks: byId, facts, layouts } = log;
  const taskLists = { match } as Partial<Log['taskLists']> as Log['taskLists'];
  const options = { ended, now: Date.now, logger, onChange: () => {} };
  const tasks = new ShardTasks({ ...options, log: { tasks: byId, facts, layouts, taskLists } });
  t.after(() => {
    ended.stop();
    tasks.stop();
  });
  tasks.begin(0);
  tasks.end(0);
  tasks.begin(0);
  reads[0]!.resolve([]);
  await reads[0]!.promise;
  assert.ok(tasks.mayBeOpen('unknown', 0));
  reads[1]!.resolve([]);
  await until(() => !tasks.mayBeOpen('unknown', 0));
});
