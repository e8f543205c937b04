import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Fact } from '@hopline/events';
import { endedKey, isEndedTasks, type ListedTask, listPrefixOf } from '@hopline/log';
import { createMemoryLog, type MemoryLog } from '@hopline/log/memory';
import { StoredScenario, supervisor } from '@hopline/task/test-kit';
import { collect } from '../../../test/kit/collect.ts';
import { until } from '../../../test/kit/until.ts';
import { kill, logger, relayOn, sendMessage, storedWhen, write, writerOf } from './relay.test-kit.ts';
import { READ_UNITS_MAX, ShownTasks } from './shown-tasks.ts';

const ROLE = 'agent.echo';
const OPEN = { kind: 'open', lane: 'l', artifact: { name: 'answer', metadata: { sourceAgent: 'guide', other: 'x' } } } as const;
const COMPLETED = { kind: 'status', state: 'TASK_STATE_COMPLETED' } as const;
const WAITS = { kind: 'status', state: 'TASK_STATE_INPUT_REQUIRED' } as const;

/** The row of an ended task, when its list has it. */
async function listedOf(log: MemoryLog, taskId: string): Promise<ListedTask | undefined> {
  let row: ListedTask | undefined;
  await until(async () => {
    const found = await log.taskLists.get(endedKey(listPrefixOf(taskId, { role: ROLE }, log.layouts)));
    const task = found && isEndedTasks(found.value) ? found.value.ended.find(([id]) => id === taskId) : undefined;
    row = task?.[6];
    return task !== undefined;
  });
  return row;
}

/** Counts the reads of tasks in a log. */
function countReads(log: MemoryLog): () => number {
  let reads = 0;
  const { facts } = log;
  const read = facts.read.bind(facts);
  facts.read = (...args) => {
    reads += 1;
    return read(...args);
  };
  return () => reads;
}

test('the row of an ended task has everything that a list shows, and the relay writes it without reading the task', async () => {
  const log = createMemoryLog();
  const processLog = log.another();
  const reads = countReads(processLog);
  const relay = await relayOn(processLog, { moveMs: 20 });
  await sendMessage(log, 't', { text: 'a question' });
  await write(writerOf(log), OPEN, { kind: 'text', lane: 'l', tokens: ['an ', 'answer'] }, COMPLETED);
  const listed = await listedOf(log, 't');
  assert.equal(listed?.messages, 1);
  assert.deepEqual(
    listed.history?.map(({ parts }) => parts),
    [[{ text: 'a question' }]],
  );
  assert.equal(listed.answer, 'an answer');
  assert.deepEqual(listed.agents, ['guide']);
  assert.equal(reads(), 0);
  await relay.stop();
});

test('a relay that took over in the middle of a task reads it for its row', async () => {
  const log = createMemoryLog();
  const processLog = log.another();
  const first = await relayOn(processLog, { moveMs: 20 });
  await sendMessage(log, 't', { text: 'a question' });
  await write(writerOf(log), WAITS);
  await storedWhen(log, ({ aggregate }) => aggregate.state === WAITS.state, 't');
  await kill(processLog, first);
  const second = await relayOn(log.another(), { moveMs: 20, inputTimeoutMs: 1 });
  const listed = await listedOf(log, 't');
  assert.deepEqual(
    listed?.history?.map(({ parts }) => parts),
    [[{ text: 'a question' }]],
  );
  await second.stop();
});

test('the row of a task that another relay has continued in between is read from the log', async () => {
  const log = createMemoryLog({ shards: 1 });
  const shown = new ShownTasks(log, logger);
  const task = new StoredScenario(log.facts).message('a question');
  await task.store();
  const noteStored = (facts: number) => shown.stored({ facts: task.facts.slice(-facts), aggregate: task.aggregate! });
  noteStored(1);
  // This relay does not see these facts.
  await task.open(supervisor(), 'own').text(supervisor(), 'own', 'an answer', true).store();
  await task.input(supervisor(), { kind: 'status', state: 'TASK_STATE_COMPLETED' }).store();
  noteStored(task.newest!.record.facts.length);
  const row = await shown.ended({ aggregate: task.aggregate! }, task.aggregate!.at);
  assert.deepEqual([row?.question, row?.history?.length, row?.answer], [undefined, 1, 'an answer']);
});

test('a task read for its row is kept without its files, and is not read further if its messages are too long', async () => {
  const log = createMemoryLog({ shards: 1 });
  const task = new StoredScenario(log.facts).message('a question');
  await task.open(supervisor(), 'own').text(supervisor(), 'own', 'an answer', true).store();
  const { aggregate } = task;
  const records = await collect(log.facts.read(aggregate!.taskId, 1));
  await task.input(supervisor(), { kind: 'status', state: 'TASK_STATE_COMPLETED' }).store();
  const [first, newest] = [records[0]!, await log.facts.last(aggregate!.taskId)];
  const of = (facts: Fact[]) => ({ ...first, record: { ...first.record, facts } });
  const files = first.record.facts.filter(fact => fact.kind === 'artifact.updated').slice(0, 1);
  const file = (n: number): Fact => {
    const fact = structuredClone(files[0]!);
    fact.event.artifactUpdate.artifact = { artifactId: `file-${n % 2}`, parts: [{ raw: 'x'.repeat(64 * 1024) }] };
    return fact;
  };
  const progress = (n: number): Fact => {
    const message = { messageId: `m${n}`, role: 'ROLE_AGENT' as const, parts: [{ text: 'x'.repeat(64 * 1024) }] };
    const status = { state: 'TASK_STATE_WORKING' as const, message };
    const { taskId, contextId, generation, at } = aggregate!;
    return { kind: 'status.changed', at, generation, event: { statusUpdate: { taskId, contextId, status } } };
  };
  let isReadToEnd = false;
  const readWith = (facts: (n: number) => Fact) => {
    isReadToEnd = false;
    const read = async function* () {
      yield first;
      for (let n = 0; n < (2 * READ_UNITS_MAX) / (64 * 1024); n += 1) yield of([facts(n)]);
      isReadToEnd = true;
    };
    const shown = new ShownTasks({ layouts: log.layouts, facts: { last: async () => newest, read } as never }, logger);
    return shown.ended({ aggregate: newest!.record.aggregate }, 1);
  };
  assert.equal((await readWith(file))?.answer, 'an answer');
  assert.ok(isReadToEnd);
  assert.equal(await readWith(progress), undefined);
  assert.ok(!isReadToEnd);
});
