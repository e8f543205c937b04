import assert from 'node:assert/strict';
import { test } from 'node:test';
import { SHARDS_DEFAULT } from '@hopline/events';
import type { TaskIndexEntry } from '@hopline/log';
import { createMemoryLog } from '@hopline/log/memory';
import { createLogger } from '@hopline/telemetry';
import { blocksRun } from '../../../test/support/counted-work.ts';
import { EndedLists } from './ended-lists.ts';
import { ShardTasks } from './shard-tasks.ts';

const TASKS = 5_000;
/** Number of code blocks that run for an open task when its shard ends. */
const BLOCKS_MAX = 20;

test('a relay that releases its shards examines each open task once, not once for each shard', async t => {
  const log = createMemoryLog({ shards: SHARDS_DEFAULT });
  const logger = createLogger({ service: 'relay', instance: 'test', level: 'silent' });
  const ended = new EndedLists({ log, logger });
  const dropped: string[] = [];
  const onChange = (taskId: string, task: unknown) => task === undefined && void dropped.push(taskId);
  const tasks = new ShardTasks({ log, ended, now: Date.now, logger, onChange });
  t.after(() => {
    ended.stop();
    tasks.stop();
  });
  for (let shard = 0; shard < SHARDS_DEFAULT; shard += 1) tasks.begin(shard);
  const entry: TaskIndexEntry = {
    contextId: 'c',
    role: 'supervisor',
    state: 'TASK_STATE_INPUT_REQUIRED',
    startSeq: 1,
    generation: 1,
    at: 1,
  };
  for (let n = 0; n < TASKS; n += 1) tasks.apply(`task-${n}`, { entry, revision: 1 });
  assert.equal(tasks.open.size, TASKS);
  const blocks = await blocksRun(new URL('./', import.meta.url), () => {
    for (let shard = 0; shard < SHARDS_DEFAULT; shard += 1) tasks.end(shard);
  });
  assert.equal(tasks.open.size, 0);
  assert.equal(new Set(dropped).size, TASKS);
  assert.ok(blocks <= TASKS * BLOCKS_MAX, `${blocks / TASKS} blocks for each task`);
});
