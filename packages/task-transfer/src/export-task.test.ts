import assert from 'node:assert/strict';
import { it } from 'node:test';
import type { FactRecord } from '@hopline/events';
import { createMemoryLog } from '@hopline/log/memory';
import { StoredScenario, supervisor } from '@hopline/task/test-kit';
import { type RecordKind, readTaskFile, TaskWriter, writeTask } from '@hopline/task-file';
import { collect } from '../../../test/kit/collect.ts';
import { exportTask } from './export-task.ts';

const TASK = 'task-1';

async function openTask() {
  const log = createMemoryLog({ shards: 1 });
  const message = { messageId: 'm1', role: 'ROLE_USER' as const, parts: [{ text: 'hello' }] };
  const input = { kind: 'message', message, contextId: 'c', role: 'supervisor', profile: 'caipe' } as const;
  await log.inputs.append(TASK, { v: 1, at: 1, from: 'client', input }, { id: 'm1' });
  const task = new StoredScenario(log.facts, TASK, () => 7).when({ kind: 'client', taskId: TASK, input });
  await task.store();
  const lane = { kind: 'open', lane: 'a', artifact: { name: 'response' } } as const;
  await log.inputs.append(TASK, { v: 1, at: 2, from: supervisor(), n: 1, inputs: [lane] }, { id: '2' });
  await task.input(supervisor(), lane).store();
  for (const text of ['How', ' it', ' works']) await task.text(supervisor(), 'a', text).store();
  return { log, task };
}

const OPTIONS = { hopline: '0.1.0', contains: ['inputs', 'facts'] as RecordKind[], now: 5 };

async function textOf(lines: AsyncIterable<string>): Promise<string> {
  return (await collect(lines)).join('');
}

it('a task in progress is exported as it is, with every record once', async () => {
  const { log } = await openTask();
  const { header, outcome, records } = (await exportTask(log, TASK, OPTIONS))!;
  assert.deepEqual(
    [header.taskId, header.contextId, header.contains, header.partial, header.redacted],
    [TASK, 'c', ['inputs', 'facts'], undefined, undefined],
  );
  assert.deepEqual(outcome, { generation: 4, state: 'TASK_STATE_SUBMITTED' });
  const entries = await collect(records());
  assert.deepEqual(
    entries.filter(({ kind }) => kind === 'input').map(({ seq }) => seq),
    [1, 2],
  );
  assert.deepEqual(
    entries.filter(({ kind }) => kind === 'facts').map(({ seq }) => seq),
    [1, 2, 3, 4, 5],
  );
  const file = await textOf(writeTask(header, entries, { outcome }));
  const read = await collect(readTaskFile([Buffer.from(file)]));
  assert.equal(read.length, 9);
});

it('an export that was cut after any record continues to the same bytes', async () => {
  const { log } = await openTask();
  const { header, outcome, records } = (await exportTask(log, TASK, OPTIONS))!;
  const whole = await textOf(writeTask(header, records(), { outcome }));
  for (let kept = 0; kept < 7; kept += 1) {
    const writer = new TaskWriter();
    let text = writer.header(header);
    let count = 0;
    for await (const entry of records()) {
      if (count === kept) break;
      text += writer.record(entry);
      count += 1;
    }
    text += await textOf(writeTask(header, records(writer.progress), { outcome, after: writer.progress }));
    assert.equal(text, whole);
  }
});

it('only inputs, or only facts, are exported on request', async () => {
  const { log } = await openTask();
  for (const kind of ['inputs', 'facts'] as const) {
    const { header, records } = (await exportTask(log, TASK, { ...OPTIONS, contains: [kind] }))!;
    const kinds = new Set<string>();
    for await (const entry of records()) kinds.add(entry.kind);
    assert.deepEqual([header.contains, [...kinds]], [[kind], [kind === 'inputs' ? 'input' : 'facts']]);
  }
});

it('records that retention has removed are named in the header', async () => {
  const { log } = await openTask();
  log.expire('inputs', TASK, 2);
  log.expire('facts', TASK, 3);
  const { header, outcome, records } = (await exportTask(log, TASK, OPTIONS))!;
  assert.deepEqual(header.partial, ['inputs', 'facts']);
  const file = await textOf(writeTask(header, records(), { outcome }));
  let count = 0;
  for await (const _entry of readTaskFile([Buffer.from(file)])) count += 1;
  assert.equal(count, 1 + 1 + 3 + 1);
});

/** Stores the facts of the task again in two parts, as a relay does before retention removes them. */
async function copyForward({ log, task }: Awaited<ReturnType<typeof openTask>>): Promise<void> {
  const facts = [...task.facts];
  const { aggregate } = (await log.facts.last(TASK))!.record;
  const parts = [facts.slice(0, 2), facts.slice(2)];
  let startSeq = 0;
  for (const [index, part] of parts.entries()) {
    const copied = { part: index + 1, last: index === 1, facts: part };
    const record: FactRecord = { v: 1, facts: [], aggregate, startSeq, startStoredAt: 9, copied };
    const expected = (await log.facts.last(TASK))!.seq;
    const { seq } = await log.facts.append(record, { expected, id: `copy-${index}` });
    startSeq ||= seq;
  }
}

it('facts that were copied forward are exported once', async () => {
  const { log, task } = await openTask();
  const facts = [...task.facts];
  await copyForward({ log, task });
  const { header, outcome, records } = (await exportTask(log, TASK, { ...OPTIONS, contains: ['facts'] }))!;
  const exported = await collect(records());
  assert.deepEqual(
    exported.flatMap(entry => (entry.kind === 'facts' ? entry.record.facts : [])),
    facts,
  );
  const file = await textOf(writeTask(header, exported, { outcome }));
  for await (const _entry of readTaskFile([Buffer.from(file)]));
  assert.ok(!file.includes('"copied"'));
});

it('an export that was cut continues without repeated facts after the task was copied forward', async () => {
  const { task } = await openTask();
  const facts = [...task.facts];
  for (const kept of [1, 3, 6]) {
    const opened = await openTask();
    const { header, records } = (await exportTask(opened.log, TASK, OPTIONS))!;
    const writer = new TaskWriter();
    let text = writer.header(header);
    for await (const entry of records()) {
      if (writer.progress.inputs + writer.progress.facts === kept) break;
      text += writer.record(entry);
    }
    await copyForward(opened);
    const later = (await exportTask(opened.log, TASK, OPTIONS))!;
    text += await textOf(
      writeTask(later.header, later.records(writer.progress), { outcome: later.outcome, after: writer.progress }),
    );
    const read = await collect(readTaskFile([Buffer.from(text)]));
    assert.deepEqual(
      read.flatMap(entry => (entry.kind === 'facts' ? entry.record.facts : [])),
      facts,
      `cut after ${kept} records`,
    );
  }
});

it('an unknown task is not exported', async () => {
  const { log } = await openTask();
  assert.equal(await exportTask(log, 'unknown', OPTIONS), undefined);
});
