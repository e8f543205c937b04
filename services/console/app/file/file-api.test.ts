import assert from 'node:assert/strict';
import { createReadStream } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { test } from 'node:test';
import type { Task } from '@hopline/a2a';
import { sleep } from '@hopline/client/sleep';
import type { EventExplanation, TaskReport } from '@hopline/task-audit';
import { Connection } from '../connection.ts';
import { followTask } from '../follow-task.ts';
import { readTaskFacts } from '../read-task-facts.ts';
import { fileApi } from './file-api.ts';
import { readTasks, UnreadableFile } from './read-tasks.ts';

const GOLDEN = new URL('../../../../packages/task-file/golden/version-1.hopline.jsonl', import.meta.url);
const ID = '01a1fc64-e2c9-7e6c-b06a-b36271f9e46f';
const bytesOf = async function* (text: string) {
  yield new TextEncoder().encode(text);
};

test('the page reads a task, its events, its audit and its lists from a file as from ingress', async () => {
  const connection = new Connection(fileApi(await readTasks(createReadStream(GOLDEN))));
  const task = await connection.json<Task>(`/api/tasks/${ID}`);
  assert.deepEqual([task.id, task.history?.[0]?.parts], [ID, [{ text: 'explain hopline' }]]);
  const { signal } = new AbortController();
  const open = (cursor: string) => connection.open(`/api/tasks/${ID}:subscribe`, { headers: { 'last-event-id': cursor } });
  const cursors: string[] = [];
  const kinds: string[] = [];
  const read = async () => {
    for await (const item of followTask({ taskId: ID, open, sleep: (ms, abort) => sleep(Math.min(ms, 1), abort), signal })) {
      if (!('event' in item)) continue;
      cursors.push(item.cursor!);
      kinds.push(Object.keys(item.event)[0]!);
    }
  };
  // The golden task was exported while it was open: its stream ends with a sentence, not with another attempt.
  await assert.rejects(read, { status: 410, message: /^The file ends here: the task had not ended/ });
  assert.deepEqual(kinds, ['task', 'artifactUpdate', 'artifactUpdate', 'artifactUpdate']);
  const report = await connection.json<TaskReport>(`/api/tasks/${ID}/audit`);
  assert.deepEqual(
    report.events.map(({ generation, seq }) => `${generation}.${seq}`),
    cursors,
  );
  const why = await connection.json<EventExplanation>(`/api/tasks/${ID}/audit/${cursors[2]}`);
  assert.deepEqual([why.cursor, why.kind], [cursors[2], 'artifact']);
  const { tasks } = await connection.json<{ tasks: Task[] }>('/api/tasks?pageSize=50');
  assert.deepEqual(
    tasks.map(one => one.id),
    [ID],
  );
  assert.deepEqual(await connection.json('/api/tasks?status=TASK_STATE_FAILED'), { tasks: [], totalSize: 1, nextPageToken: '' });
  const { body } = await connection.open(`/api/tasks/${ID}/export?records=facts`);
  assert.equal((await readTaskFacts(body!)).length, 4);
  await assert.rejects(connection.json('/api/tasks/other'), { status: 404 });
  await assert.rejects(connection.json('/api/agents'), { status: 404 });
});

test('a file that cannot be shown is refused with one sentence', async () => {
  const text = await readFile(GOLDEN, 'utf8');
  const lines = text.trimEnd().split('\n');
  const cases: [string, RegExp][] = [
    ['', /^the file is empty$/],
    ['hello\n', /^not a task file: its first line must be a header/],
    [text.replace('it works', 'it fails'), /^line 5: the sum does not match/],
    [`${lines.slice(0, 3).join('\n')}\n`, /^the end of the task is missing after line 3/],
    [text + text, /^the file has task \S+ twice$/],
  ];
  for (const [bytes, message] of cases)
    await assert.rejects(
      readTasks(bytesOf(bytes)),
      (error: Error) => error instanceof UnreadableFile && message.test(error.message),
    );
});

test('a file of the maximum size is read; one byte more is refused, with a hint what opens it', async () => {
  const text = await readFile(GOLDEN, 'utf8');
  const bytes = Buffer.byteLength(text);
  assert.equal((await readTasks(bytesOf(text), bytes)).length, 1);
  await assert.rejects(
    readTasks(bytesOf(text), bytes - 1),
    /^UnreadableFile: the file has more than \S+ MiB; open it with hopline serve/,
  );
});
