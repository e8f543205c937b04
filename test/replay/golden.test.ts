import assert from 'node:assert/strict';
import { createReadStream, globSync } from 'node:fs';
import { basename, dirname } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { readStoredTasks, type StoredTask, verifyTask } from '@hopline/replay';
import { decide } from '@hopline/task';
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
  const path = FILES.find(one => one.endsWith('/cancel.hopline.jsonl'))!;
  // A change after which each fact still looks right: a cancel no longer closes the open artifacts.
  const rules: typeof decide = (aggregate, command, at) => {
    const { facts, rejected } = decide(aggregate, command, at);
    const isCancel = command.kind === 'client' && command.input.kind === 'cancel';
    const kept = facts
      .filter(({ kind }) => kind !== 'artifact.updated')
      .map(fact => ({ ...fact, generation: (aggregate?.generation ?? 0) + 1 }));
    return isCancel && rejected === undefined ? { facts: kept as typeof facts } : decide(aggregate, command, at);
  };
  const verdict = verifyTask(await read(path), { rules });
  assert.equal(verdict.verdict, 'differs');
  assert.ok(verdict.verdict === 'differs' && verdict.expected?.kind === 'artifact.updated', JSON.stringify(verdict));
  assert.equal(verdict.got?.kind, 'status.changed');
});
