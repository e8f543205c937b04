import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import type { FactRecord } from '@hopline/events';
import { TASK_TOO_LARGE } from '@hopline/fold';
import type { StoredFacts, TaskIndexEntry } from '@hopline/log';
import { createMemoryLog } from '@hopline/log/memory';
import { NO_METRICS } from '../../../test/kit/no-metrics.ts';
import { COALESCE, logger, recordsOf, sendMessage, storedWhen, writerOf } from './relay.test-kit.ts';
import { createRelay } from './relay.ts';
import { INDEXED_BYTES_STEP } from './side-effects.ts';

const bytesOf = ({ record }: StoredFacts): number => Buffer.byteLength(JSON.stringify(record));

/** Begins a task whose agent writes `words`, each one after the previous one is stored, while relays take over from each other. */
async function write(
  t: TestContext,
  { taskBytesMax, words, relays = 1 }: { taskBytesMax?: number; words: number; relays?: number },
) {
  const log = createMemoryLog({ shards: 1 });
  const open = () =>
    createRelay({
      log,
      instance: 'relay',
      coalesce: COALESCE,
      metrics: NO_METRICS,
      logger,
      ...(taskBytesMax !== undefined && { taskBytesMax }),
    });
  let relay = await open();
  t.after(() => relay.stop());
  await sendMessage(log);
  const writer = writerOf(log);
  await storedWhen(log, () => true);
  writer.add({ kind: 'status', state: 'TASK_STATE_WORKING' });
  for (let n = 1; n <= words; n += 1) {
    if (n === Math.ceil(words / 2) && relays > 1) {
      await relay.stop();
      relay = await open();
    }
    writer.add({
      kind: 'artifact',
      lane: `${n}`,
      artifact: { name: 'a' },
      parts: [{ text: `word ${n}` }],
      append: false,
      last: true,
    });
    await writer.flush();
    const isFolded = ({ aggregate }: FactRecord) => aggregate.generation > n + 1 || aggregate.state === 'TASK_STATE_FAILED';
    await storedWhen(log, isFolded);
  }
  writer.add({ kind: 'status', state: 'TASK_STATE_COMPLETED' });
  await writer.flush();
  await storedWhen(log, ({ aggregate }) => aggregate.state === 'TASK_STATE_COMPLETED' || aggregate.state === 'TASK_STATE_FAILED');
  return recordsOf(log);
}

const endOf = (records: StoredFacts[]) => records.at(-1)!.record.facts.findLast(fact => fact.kind === 'status.changed')!;

test('a task that reaches its byte limit fails at its next event, with a reason; one byte below the limit it continues', async t => {
  const records = await write(t, { words: 6 });
  assert.equal(records.at(-1)!.record.aggregate.state, 'TASK_STATE_COMPLETED');
  const before = records.slice(0, -2).reduce((sum, record) => sum + bytesOf(record), 0);
  const failed = await write(t, { words: 6, taskBytesMax: before });
  assert.equal(endOf(failed).event.statusUpdate.metadata?.reason, TASK_TOO_LARGE);
  assert.equal(failed.length, records.length - 1, 'the last word is not stored');
  const whole = await write(t, { words: 6, taskBytesMax: before + 1 });
  assert.equal(whole.at(-1)!.record.aggregate.state, 'TASK_STATE_COMPLETED', 'an end by itself needs no failure');
});

test('the bytes of a task are counted across takeovers', async t => {
  const records = await write(t, { words: 8, relays: 2 });
  const bytes = records.map(bytesOf);
  const counted = records.at(-1)!.record.aggregate.storedBytes!;
  const all = bytes.slice(0, -1).reduce((sum, size) => sum + size, 0);
  // A new owner does not know the size of the newest record.
  assert.ok(counted >= all - Math.max(...bytes) && counted <= all, `${counted} of ${all}`);
});

test('the index entry of a running task follows its bytes in steps, and keeps the time of its state', async t => {
  const log = createMemoryLog({ shards: 1 });
  const relay = await createRelay({ log, instance: 'relay', coalesce: COALESCE, metrics: NO_METRICS, logger });
  t.after(() => relay.stop());
  await sendMessage(log);
  const writer = writerOf(log);
  const entries: TaskIndexEntry[] = [];
  const indexed = async (holds: (entry: TaskIndexEntry) => boolean) => {
    for await (const change of log.tasks.watch(AbortSignal.timeout(10_000))) {
      if (change.type !== 'entry' || change.value === undefined) continue;
      entries.push(change.value);
      if (holds(change.value)) return change.value;
    }
    return assert.fail('the entry was not written');
  };
  writer.add({ kind: 'status', state: 'TASK_STATE_WORKING' });
  await writer.flush();
  const working = await indexed(({ state }) => state === 'TASK_STATE_WORKING');
  const text = 'x'.repeat(INDEXED_BYTES_STEP / 8);
  for (let step = 1; step <= 2; step += 1) {
    for (let n = 1; n <= 8; n += 1) {
      const lane = `${step}/${n}`;
      writer.add({ kind: 'artifact', lane, artifact: { name: 'a' }, parts: [{ text }], append: false, last: true });
      await writer.flush();
    }
    const {
      at,
      state,
      storedBytes = 0,
      seq = 0,
    } = await indexed(({ storedBytes = 0 }) => storedBytes >= step * INDEXED_BYTES_STEP);
    assert.deepEqual([state, at], [working.state, working.at]);
    assert.ok(storedBytes < (step + 1) * INDEXED_BYTES_STEP && seq > working.seq!, `${storedBytes} ${seq}`);
  }
  const revisions = new Set(entries.map(({ generation }) => generation));
  assert.ok(revisions.size <= 4, `created, working, and one for each step: ${revisions.size}`);
});
