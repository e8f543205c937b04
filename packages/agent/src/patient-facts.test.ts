import assert from 'node:assert/strict';
import { test } from 'node:test';
import { HistoryLost, LogDenied, LogUnavailable, Requeued } from '@hopline/log';
import { createMemoryLog } from '@hopline/log/memory';
import { factRecord } from '@hopline/log/test-kit';
import { patientLog } from './patient-facts.ts';

const ONGOING = new AbortController().signal;
const unavailable = () => new LogUnavailable('no relay answers');

async function storedTask(count: number) {
  const log = createMemoryLog();
  let expected = 0;
  for (let n = 1; n <= count; n += 1)
    ({ seq: expected } = await log.facts.append(factRecord('t', n, n === 1 ? 0 : 1), { expected, id: `t:me:${n}` }));
  return log;
}

test('a read waits while the log is unavailable, and a series of records continues after the last one', async () => {
  const log = await storedTask(3);
  const { facts } = log;
  let failures = 2;
  const last = facts.last.bind(facts);
  facts.last = async taskId => {
    if (failures-- > 0) throw unavailable();
    return last(taskId);
  };
  const starts: number[] = [];
  const read = facts.read.bind(facts);
  facts.read = async function* (taskId, from) {
    starts.push(from);
    for await (const stored of read(taskId, from)) {
      yield stored;
      if (stored.record.aggregate.generation === 2 && starts.length === 1) throw unavailable();
    }
  };
  const patient = patientLog(log, ONGOING);
  assert.equal((await patient.facts.last('t'))?.record.aggregate.generation, 3);
  const generations: number[] = [];
  for await (const { record } of patient.facts.read('t', 1)) generations.push(record.aggregate.generation);
  assert.deepEqual(generations, [1, 2, 3]);
  assert.deepEqual(starts, [1, 3]);
  assert.equal(patient.layouts, log.layouts, 'the other members are those of the log');
});

test('a read ends at an error that would occur again, at the end of its wait, and at a shutdown', async () => {
  const log = await storedTask(1);
  let error: Error = new LogDenied('denied');
  log.facts.last = async () => {
    throw error;
  };
  await assert.rejects(patientLog(log, ONGOING).facts.last('t'), LogDenied);
  error = new HistoryLost('lost');
  await assert.rejects(patientLog(log, ONGOING).facts.last('t'), HistoryLost);
  error = unavailable();
  await assert.rejects(patientLog(log, ONGOING, 0).facts.last('t'), { message: 'no relay answers' });
  const stop = new AbortController();
  const waiting = patientLog(log, stop.signal).facts.last('t');
  log.facts.last = () => new Promise(() => {});
  const pending = patientLog(log, stop.signal).facts.last('t');
  stop.abort();
  await assert.rejects(waiting, Requeued);
  await assert.rejects(pending, Requeued);
});
