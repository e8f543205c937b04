import assert from 'node:assert/strict';
import { it } from 'node:test';
import { DIALECTS, textOf } from '@hopline/a2a';
import type { FactRecord } from '@hopline/events';
import {
  addEnded,
  endedTaskOf,
  type Log,
  listKeyOf,
  listPrefixOf,
  putTask,
  readTask,
  removedBefore,
  removeEnded,
} from '@hopline/log';
import { createMemoryLog } from '@hopline/log/memory';
import { artifactIdOf, projectRecord, type TaskView } from '@hopline/task';
import { StoredScenario, supervisor } from '@hopline/task/test-kit';
import { type RecordKind, readTaskFile, writeTask } from '@hopline/task-file';
import { collect } from '../../../test/kit/collect.ts';
import { exportTask } from './export-task.ts';
import { checkImport, type ImportedTask, importTasks } from './import-tasks.ts';

const OWNER = { tenant: 'acme', subject: 'ann' };
const OPTIONS = { sameIds: false, newId: () => crypto.randomUUID(), now: () => 99 };

async function storeTask(log: Pick<Log, 'facts'>, taskId: string, contextId = 'c1'): Promise<void> {
  const task = new StoredScenario(log.facts, taskId);
  await task.message('hello', 'm1', 'supervisor', 'caipe', { owner: OWNER, contextId }).store();
  task.aggregate = { ...task.aggregate!, foldedSeq: 12, lastNSeq: 12 };
  await task.open(supervisor(), 'a', { name: 'streaming_result', metadata: { k: [1] } }).store();
  await task.text(supervisor(), 'a', 'How').text(supervisor(), 'a', ' it works 🎯', true).store();
  const message = { messageId: 'done', role: 'ROLE_AGENT' as const, parts: [{ text: 'done' }], taskId, contextId };
  await task.input(supervisor(), { kind: 'status', state: 'TASK_STATE_COMPLETED', message }).store();
}

async function fileOf(
  log: Pick<Log, 'facts' | 'inputs'>,
  taskIds: string[],
  contains: RecordKind[] = ['facts'],
): Promise<string> {
  let text = '';
  for (const taskId of taskIds) {
    const { header, outcome, records } = (await exportTask(log, taskId, { hopline: '0', contains, now: 1 }))!;
    for await (const line of writeTask(header, records(), { outcome })) text += line;
  }
  return text;
}

const entriesOf = (file: string) => readTaskFile([Buffer.from(file)]);

async function importAll(
  log: Log,
  file: string,
  more: Partial<typeof OPTIONS & { owner: object; endsOpen: boolean }> = {},
): Promise<ImportedTask[]> {
  const options = { ...OPTIONS, ...more };
  await checkImport(log, entriesOf(file), options);
  const imported = await collect(importTasks(log, entriesOf(file), options));
  return imported;
}

/** The task as a client reads it in every dialect: each event of its stream, and the task itself. */
async function shown(log: Log, taskId: string): Promise<string> {
  const newest = (await log.facts.last(taskId))!;
  const lines: string[] = [];
  let view: TaskView | undefined;
  for await (const { record } of readTask(log.facts, newest)) {
    for (const fact of record.facts)
      if ('event' in fact)
        for (const dialect of Object.values(DIALECTS)) lines.push(JSON.stringify(dialect.encodeEvent(fact.event)));
    view = projectRecord(view, record);
  }
  for (const dialect of Object.values(DIALECTS)) lines.push(JSON.stringify(dialect.encodeTask(view!.task)));
  return lines.join('\n');
}

it('a task that is exported and imported under its ids is the same to clients of every dialect, byte by byte', async () => {
  const [origin, target] = [createMemoryLog(), createMemoryLog()];
  await storeTask(origin, 'task-1');
  const [imported] = await importAll(target, await fileOf(origin, ['task-1']), { sameIds: true });
  assert.deepEqual(imported, { taskId: 'task-1', contextId: 'c1', origin: 'task-1', records: 4 });
  assert.equal(await shown(target, 'task-1'), await shown(origin, 'task-1'));
  const { aggregate } = (await target.facts.last('task-1'))!.record;
  assert.deepEqual(aggregate.owner, OWNER);
});

it('a task with new ids differs only in them, and links to its origin', async () => {
  const [origin, target] = [createMemoryLog(), createMemoryLog()];
  await storeTask(origin, 'task-1');
  const file = await fileOf(origin, ['task-1']);
  const [first, second] = [...(await importAll(target, file)), ...(await importAll(target, file))];
  assert.notEqual(first!.taskId, second!.taskId);
  const link = `"metadata":{"hopline.origin":"task-1"}`;
  const text = await shown(target, first!.taskId);
  assert.ok(text.includes(link));
  const artifactIds = [first!, second!].map(({ taskId }) => artifactIdOf(taskId, 'a'));
  assert.ok(text.includes(artifactIds[0]!) && (await shown(target, second!.taskId)).includes(artifactIds[1]!));
  const restored = text
    .replaceAll(`,${link}`, '')
    .replaceAll(first!.taskId, 'task-1')
    .replaceAll(first!.contextId, 'c1')
    .replaceAll(artifactIds[0]!, artifactIdOf('task-1', 'a'));
  assert.equal(restored, await shown(origin, 'task-1'));
  const { aggregate } = (await target.facts.last(first!.taskId))!.record;
  assert.deepEqual([aggregate.owner, aggregate.foldedSeq, aggregate.lastNSeq], [undefined, 0, undefined]);
});

it('an imported task is in the lists of its owner and in its context', async () => {
  const [origin, target] = [createMemoryLog(), createMemoryLog()];
  await storeTask(origin, 'task-1');
  await storeTask(origin, 'task-2');
  await storeTask(origin, 'task-3', 'c2');
  const imported = await importAll(target, await fileOf(origin, ['task-1', 'task-2', 'task-3']), { owner: { subject: 'bob' } });
  assert.deepEqual(
    imported.map(({ contextId }) => imported.findIndex(one => one.contextId === contextId)),
    [0, 0, 2],
  );
  for (const { taskId } of imported) {
    const { value } = (await target.tasks.get(taskId))!;
    assert.deepEqual([value.state, value.owner, value.generation], ['TASK_STATE_COMPLETED', { subject: 'bob' }, 5]);
    assert.ok(value.startSeq > 0);
  }
});

it('an imported task leaves the list of its owner when retention has removed its facts', async () => {
  const [origin, target] = [createMemoryLog(), createMemoryLog()];
  await storeTask(origin, 'task-1');
  const [{ taskId }] = (await importAll(target, await fileOf(origin, ['task-1']))) as [ImportedTask];
  const { value } = (await target.tasks.get(taskId))!;
  const prefix = listPrefixOf(taskId, value, target.layouts);
  await addEnded(target.taskLists, prefix, [endedTaskOf(taskId, value)]);
  const { seq } = (await target.facts.last(taskId))!;
  assert.equal(await removeEnded(target.taskLists, prefix, removedBefore(seq)), 0);
  assert.equal(await removeEnded(target.taskLists, prefix, removedBefore(seq + 1)), 1);
});

it('the export of an imported task equals the imported file except for ids and positions in the log', async () => {
  const [origin, target] = [createMemoryLog(), createMemoryLog()];
  await storeTask(origin, 'task-1');
  await importAll(target, await fileOf(origin, ['task-1']), { sameIds: true });
  const factsOf = async (log: Log) => {
    const facts: FactRecord['facts'] = [];
    for await (const entry of entriesOf(await fileOf(log, ['task-1'])))
      if (entry.kind === 'facts') facts.push(...entry.record.facts);
    return facts;
  };
  assert.deepEqual(await factsOf(target), await factsOf(origin));
});

it('nothing is stored from a file with one bad line, wherever that line is', async () => {
  const origin = createMemoryLog();
  await storeTask(origin, 'task-1');
  await storeTask(origin, 'task-2');
  const lines = (await fileOf(origin, ['task-1', 'task-2'])).trimEnd().split('\n');
  for (let bad = 0; bad < lines.length; bad += 1) {
    const target = createMemoryLog();
    const file = `${lines.with(bad, lines[bad]!.replace('"kind"', '"kinD"').replace('hopline.task', 'hopline.tasK')).join('\n')}\n`;
    await assert.rejects(importAll(target, file), /TaskFileError/);
    assert.deepEqual((await target.facts.extent()).lastSeq, 0);
  }
});

const REFUSED: {
  [title: string]: { message: RegExp; sameIds?: boolean; file(log: ReturnType<typeof createMemoryLog>): Promise<string> };
} = {
  'a task that has not ended': {
    message: /^task open is submitted: import it with --end-open, which ends open tasks as canceled$/,
    file: async log => {
      await new StoredScenario(log.facts, 'open').message('hi').store();
      return fileOf(log, ['open']);
    },
  },
  'a file without facts': {
    message: /^the file has no facts of task task-1/,
    file: log => fileOf(log, ['task-1'], ['inputs']),
  },
  'a task whose beginning had expired': {
    message: /^the first facts of task task-1 had expired/,
    file: log => {
      log.expire('facts', 'task-1', 2);
      return fileOf(log, ['task-1']);
    },
  },
  'a task twice': { message: /^task task-1 is in the file twice$/, file: log => fileOf(log, ['task-1', 'task-1']) },
  'another task under the same id': {
    message: /^this cluster has another task of-the-cluster: import the file with new ids$/,
    sameIds: true,
    file: async log => {
      const other = new StoredScenario(log.facts, 'of-the-cluster');
      await other.message('another question').input(supervisor(), { kind: 'status', state: 'TASK_STATE_COMPLETED' }).store();
      return fileOf(log, ['of-the-cluster']);
    },
  },
};

for (const [title, { message, sameIds = false, file }] of Object.entries(REFUSED)) {
  it(`refused, and nothing is stored: ${title}`, async () => {
    const [origin, target] = [createMemoryLog(), createMemoryLog()];
    await storeTask(origin, 'task-1');
    await storeTask(target, 'of-the-cluster');
    const text = await file(origin);
    await assert.rejects(importAll(target, text, { sameIds }), (error: Error) => {
      assert.match(error.message, message);
      return true;
    });
    assert.equal((await target.facts.extent()).lastSeq, 4);
  });
}

for (const endsOpen of [false, true]) {
  it(`an import under the same ids that breaks off after any record is continued${endsOpen ? ', with open tasks' : ''}`, async () => {
    const origin = createMemoryLog();
    await storeTask(origin, 'task-1');
    await storeTask(origin, 'task-2');
    if (endsOpen) await new StoredScenario(origin.facts, 'open').message('hi').store();
    const ids = ['task-1', ...(endsOpen ? ['open'] : []), 'task-2'];
    const file = await fileOf(origin, ids);
    const whole = createMemoryLog();
    const options = { sameIds: true, endsOpen };
    const all = await importAll(whole, file, options);
    const { lastSeq } = await whole.facts.extent();
    for (let stored = 0; stored <= lastSeq; stored += 1) {
      const log = createMemoryLog();
      await assert.rejects(importAll(breaksAfter(log, stored), file, options), /broken off/);
      assert.deepEqual(await importAll(log, file, { ...options, now: () => 5_000 } as never), all);
      assert.equal((await log.facts.extent()).lastSeq, lastSeq);
      for (const id of ids) assert.equal(await shown(log, id), await shown(whole, id));
      for (const id of ids) assert.notEqual(await log.tasks.get(id), undefined);
    }
  });
}

it('an import under the same ids that is repeated when it is complete lists no task again', async () => {
  const [origin, log] = [createMemoryLog(), createMemoryLog()];
  await storeTask(origin, 'task-1');
  const file = await fileOf(origin, ['task-1']);
  const first = await importAll(log, file, { sameIds: true });
  const { value } = (await log.tasks.get('task-1'))!;
  const key = listKeyOf('task-1', value, log.layouts);
  // Moves it into the list of its owner, as a relay does.
  await addEnded(log.taskLists, listPrefixOf('task-1', value, log.layouts), [endedTaskOf('task-1', value)]);
  await log.taskLists.purge(key, (await log.taskLists.get(key))!.revision);
  assert.deepEqual(await importAll(log, file, { sameIds: true }), first);
  assert.equal(await log.taskLists.get(key), undefined);
});

it('an import under the same ids brings back the tasks that are gone, and leaves those that the cluster still has', async () => {
  const log = createMemoryLog();
  for (const taskId of ['task-1', 'task-2']) await storeTask(log, taskId);
  const { contextId, role, state, generation, at, owner } = (await log.facts.last('task-1'))!.record.aggregate;
  await putTask(log, 'task-1', {
    contextId,
    role,
    state,
    startSeq: 1,
    startStoredAt: 1,
    generation,
    at,
    ...(owner && { owner }),
  });
  const [one, two] = [await shown(log, 'task-1'), await shown(log, 'task-2')];
  const file = await fileOf(log, ['task-1', 'task-2']);
  await log.purgeTask('task-2');
  const { seq } = (await log.facts.last('task-1'))!;
  const { revision } = (await log.tasks.get('task-1'))!;
  const imported = await importAll(log, file, { sameIds: true });
  assert.deepEqual(
    imported.map(({ taskId }) => taskId),
    ['task-1', 'task-2'],
  );
  assert.deepEqual([(await log.facts.last('task-1'))!.seq, (await log.tasks.get('task-1'))!.revision], [seq, revision]);
  assert.deepEqual([await shown(log, 'task-1'), await shown(log, 'task-2')], [one, two]);
});

it('a task that is imported under its id keeps its earlier tasks and the point that it continues', async () => {
  const [origin, target] = [createMemoryLog(), createMemoryLog()];
  const task = new StoredScenario(origin.facts, 'task-1');
  const metadata = { 'hopline.fork': { taskId: 'task-0', cursor: '1.1' } };
  task.message('hello', 'm1', 'supervisor', 'caipe', { metadata, earlierTasks: ['task-0'] });
  await task.input(supervisor(), { kind: 'status', state: 'TASK_STATE_COMPLETED' }).store();
  const file = await fileOf(origin, ['task-1']);
  for (const sameIds of [true, false]) {
    const [{ taskId }] = (await importAll(target, file, { sameIds })) as [ImportedTask];
    const { aggregate } = (await target.facts.last(taskId))!.record;
    const [created] = (await collect(target.facts.read(taskId, 1)))[0]!.record.facts;
    assert.ok(created?.kind === 'task.created');
    const links = [created.earlierTasks, created.request, aggregate.hasHistory];
    assert.deepEqual(links, sameIds ? [['task-0'], metadata, true] : [undefined, {}, undefined]);
  }
});

/** The log during an import that breaks off after this many records, or before the last task is listed. */
function breaksAfter(log: Log, records: number): Log {
  let left = records;
  const facts = new Proxy(log.facts, {
    get: (target, key) => {
      if (key !== 'append') return Reflect.get(target, key).bind(target);
      return (...args: Parameters<typeof target.append>) => {
        if (left === 0) throw new Error('broken off');
        left -= 1;
        return target.append(...args);
      };
    },
  });
  const tasks = new Proxy(log.tasks, {
    get: (target, key) =>
      key === 'get' || left > 0 ? Reflect.get(target, key).bind(target) : () => Promise.reject(new Error('broken off')),
  });
  return { ...log, facts, tasks };
}

it('a file that ends before a task of this log does is refused', async () => {
  const [origin, log] = [createMemoryLog(), createMemoryLog()];
  await storeTask(origin, 'task-1');
  const file = await fileOf(origin, ['task-1']);
  await importAll(log, file, { sameIds: true });
  const lines = file.trimEnd().split('\n');
  const { state: _state, ...end } = JSON.parse(lines.at(-1)!);
  const shorter = [...lines.slice(0, -2), JSON.stringify({ ...end, state: 'TASK_STATE_SUBMITTED' })].join('\n');
  await assert.rejects(
    importAll(log, `${shorter}\n`, { sameIds: true }),
    /TaskFileError|more records in this cluster than in the file/,
  );
});

it('a task of this cluster that is open is not ended by an import under its id', async () => {
  const log = createMemoryLog();
  await new StoredScenario(log.facts, 'open').message('hi').store();
  const { aggregate } = (await log.facts.last('open'))!.record;
  const { contextId, role, state, generation, at } = aggregate;
  await log.tasks.put('open', { contextId, role, state, startSeq: 1, startStoredAt: 1, generation, at });
  await assert.rejects(
    importAll(log, await fileOf(log, ['open']), { sameIds: true, endsOpen: true }),
    /^ImportRefused: task open is submitted in this cluster: import it with new ids$/,
  );
  assert.equal((await log.facts.extent()).lastSeq, 1);
});

it('a record that the log would not accept is refused before anything is stored', async () => {
  const [origin, target] = [createMemoryLog(), createMemoryLog({ recordBytesMax: 2_000 })];
  await storeTask(origin, 'task-1');
  await assert.rejects(
    importAll(target, await fileOf(origin, ['task-1'])),
    /has a record of \d+ bytes, and this log accepts 2000/,
  );
  assert.equal((await target.facts.extent()).lastSeq, 0);
});

it('with endsOpen an open task ends as canceled, with its text and with closed artifacts; an ended one stays as it is', async () => {
  const [origin, target] = [createMemoryLog(), createMemoryLog()];
  await storeTask(origin, 'ended');
  const open = new StoredScenario(origin.facts, 'open');
  await open.message('hello').store();
  await open.open(supervisor(), 'a', { name: 'streaming_result' }).text(supervisor(), 'a', 'half of').store();
  const imported = await importAll(target, await fileOf(origin, ['open', 'ended']), { endsOpen: true });
  const [newest, other] = await Promise.all(imported.map(async ({ taskId }) => (await target.facts.last(taskId))!));
  assert.deepEqual(
    [newest!.record.aggregate.state, other!.record.aggregate.state],
    ['TASK_STATE_CANCELED', 'TASK_STATE_COMPLETED'],
  );
  let view: TaskView | undefined;
  for await (const { record } of readTask(target.facts, newest!)) view = projectRecord(view, record);
  assert.deepEqual(
    view!.task.artifacts?.map(({ parts }) => textOf(parts)),
    ['half of'],
  );
  assert.ok(Object.values(newest!.record.aggregate.lanes).every(({ phase }) => phase === 'closed'));
  assert.equal((await target.tasks.get(imported[0]!.taskId))?.value.state, 'TASK_STATE_CANCELED');
});
