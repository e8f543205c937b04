import assert from 'node:assert/strict';
import { Readable } from 'node:stream';
import { test } from 'node:test';
import { taskIdsIn } from './task-id-list.ts';

const read = (text: string) => taskIdsIn(Readable.from([text]), 'tasks.txt');

test('a list of task ids may have comments and empty lines; up to 10,000 ids are taken', async () => {
  assert.deepEqual(await read('# last week\na-1\n\n  b_2  \r\n'), ['a-1', 'b_2']);
  const ids = Array.from({ length: 10_000 }, (_, index) => `t${index}`);
  assert.equal((await read(ids.join('\n'))).length, 10_000);
  await assert.rejects(read([...ids, 'one-more'].join('\n')), /^UsageError: tasks.txt has more than 10000 task ids$/);
  await assert.rejects(read('# nothing\n'), /^UsageError: tasks.txt has no task id$/);
  await assert.rejects(read('a\nno id\n'), /^UsageError: tasks.txt, line 2: this is no task id$/);
});
