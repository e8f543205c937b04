import assert from 'node:assert/strict';
import { createReadStream, globSync } from 'node:fs';
import { basename, dirname } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import type { Fact, StatusChanged } from '@hopline/events';
import { readStoredTasks, type StoredTask, verifyTask } from '@hopline/replay';
import { GOLDEN } from './record-golden/golden-tasks.ts';

/**
 * Tasks that this and earlier versions recorded. Today's rules must decide the same facts, because an upgraded cluster continues the tasks
 * of its predecessor.
 */
const FOLDER = fileURLToPath(new URL('golden/', import.meta.url));
const FILES = globSync('*/*.hopline.jsonl', { cwd: FOLDER }).sort();

async function read(path: string): Promise<StoredTask> {
  for await (const task of readStoredTasks(createReadStream(`${FOLDER}${path}`))) {
    if ('unreadable' in task) assert.fail(`${path}: ${task.unreadable}`);
    return task;
  }
  return assert.fail(`${path} is empty`);
}

test('a recorded task of every kind exists', () => {
  const names = new Set(FILES.map(path => basename(path, '.hopline.jsonl')));
  assert.deepEqual(
    GOLDEN.filter(({ name }) => !names.has(name)).map(({ name }) => name),
    [],
    'node test/replay/record-golden/main.ts records them',
  );
});

for (const path of FILES) {
  test(`today's rules decide the facts of ${basename(path, '.hopline.jsonl')}, recorded by ${dirname(path)}`, async () => {
    const { verdict, ...rest } = verifyTask(await read(path));
    assert.equal(verdict, 'same', JSON.stringify(rest));
  });
}

test('a recorded task shows that a rule was changed', async () => {
  const task = await read(FILES.find(one => one.endsWith('/cancel.hopline.jsonl'))!);
  // As if a cancel had not closed the open artifacts. Every fact still looks right.
  const isKept = ({ kind }: Fact, index: number, all: readonly Fact[]) =>
    kind !== 'artifact.updated' || !all.slice(index).some(fact => fact.kind === 'status.changed' && isCanceled(fact));
  for (const { record } of task.facts) record.facts = record.facts.filter(isKept);
  const verdict = verifyTask(task);
  assert.equal(verdict.verdict, 'differs');
  assert.ok(verdict.verdict === 'differs' && verdict.expected?.kind === 'status.changed', JSON.stringify(verdict));
  assert.equal(verdict.got?.kind, 'artifact.updated');
});

function isCanceled({ event }: StatusChanged): boolean {
  return event.statusUpdate.status.state === 'TASK_STATE_CANCELED';
}
