import assert from 'node:assert/strict';
import { test } from 'node:test';
import { executedFilesOf, TOKEN_PATH } from './code-paths.ts';
import { filesExecutedBy } from './executed-files.ts';

// Imported after the coverage has begun.
const { openStreamedTask } = await import('./one-process-cluster.ts');

test('path of a token: its files are exactly those that execute while one token passes through a cluster', async t => {
  const task = await openStreamedTask();
  t.after(() => task.close());
  const executed = await filesExecutedBy(task.pass);
  const listed = executedFilesOf(TOKEN_PATH);
  t.diagnostic(`files that execute for a token: ${executed.length}`);
  assert.deepEqual(
    {
      notListed: executed.filter(file => !listed.includes(file)),
      notExecuted: listed.filter(file => !executed.includes(file)),
      listedTwice: listed.filter((file, index) => listed.indexOf(file) !== index),
    },
    { notListed: [], notExecuted: [], listedTwice: [] },
    'update test/repo/code-paths.ts',
  );
  assert.ok(executed.length <= TOKEN_PATH.executedMax, `${executed.length} files`);
});
