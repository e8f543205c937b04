import assert from 'node:assert/strict';
import { test } from 'node:test';
import { plainAnswer, taskFileOf } from '@hopline/replay/test-kit';
import { compareTasks, readTaskFacts } from './read-task-facts.ts';

/** The file in chunks of a few bytes, which split lines and characters. */
function inChunks(file: string | Uint8Array, size = 7): ReadableStream<Uint8Array> {
  const bytes = Buffer.from(file);
  return new ReadableStream({
    start: controller => {
      for (let from = 0; from < bytes.length; from += size) controller.enqueue(bytes.subarray(from, from + size));
      controller.close();
    },
  });
}

test('an export has the facts of its task, however it is split', async () => {
  const task = plainAnswer().stored();
  const file = await taskFileOf(task);
  const read = await readTaskFacts(inChunks(file));
  assert.deepEqual(
    read.map(({ record }) => record.facts),
    task.facts.map(({ record }) => record.facts),
  );
  assert.equal(compareTasks(read, task.facts).same, true);
  assert.deepEqual(compareTasks(read, task.facts), compareTasks(task.facts, task.facts));
});

test('an export that is cut, too large, or of a later version is refused', async () => {
  const file = Buffer.from(await taskFileOf(plainAnswer().stored()));
  assert.equal((await readTaskFacts(inChunks(file), file.length)).length > 0, true);
  await assert.rejects(readTaskFacts(inChunks(file), file.length - 1), { message: /MiB; compare it with hopline diff$/ });
  await assert.rejects(readTaskFacts(inChunks(file.subarray(0, file.length - 20))), { message: /ended early; retry$/ });
  const later = file.toString().replace('"version":1', '"version":2');
  await assert.rejects(readTaskFacts(inChunks(later)), { message: /version 2 of the format; this console reads version 1$/ });
});
