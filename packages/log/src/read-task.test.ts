import assert from 'node:assert/strict';
import test from 'node:test';
import type { CopiedFacts, Fact } from '@hopline/events';
import { Requeued } from './errors.ts';
import type { FactLog, StoredFacts } from './fact-log.ts';
import { createMemoryLog } from './memory/memory-log.ts';
import { followTask, fromStart, newestOfTurn, readTask, startSeqOf } from './read-task.ts';
import { factRecord, workItem } from './records.test-kit.ts';

const plain = (seq: number, generation: number): StoredFacts => ({ seq, record: factRecord('t', generation, 1) });
const factsOf = (...generations: number[]): Fact[] => generations.flatMap(one => factRecord('t', one, 1).facts);

/** A copied part of a task that has reached generation 5. */
function copiedPart(seq: number, part: number, last: boolean, ...generations: number[]): StoredFacts {
  const copied: CopiedFacts = { part, last, facts: factsOf(...generations) };
  const { aggregate } = factRecord('t', 5, 1);
  return {
    seq,
    record: { ...factRecord('t', 5, 1), facts: [], aggregate: { ...aggregate, foldedSeq: 9 }, copied },
  };
}

async function* stream(...records: StoredFacts[]): AsyncGenerator<StoredFacts> {
  yield* records;
}

async function readAll(
  ...records: StoredFacts[]
): Promise<{ seq: number; facts: Fact[]; generation: number; foldedSeq: number }[]> {
  const all = [];
  for await (const { seq, record } of fromStart(stream(...records))) {
    const { generation, foldedSeq } = record.aggregate;
    all.push({ seq, facts: record.facts, generation, foldedSeq });
  }
  return all;
}

test('a read that begins at a copied start yields the copied facts, and only the last part has the final aggregate [S4-44]', async () => {
  const all = await readAll(
    copiedPart(20, 1, false, 1, 2),
    copiedPart(21, 2, false, 3),
    copiedPart(22, 3, true, 4, 5),
    plain(30, 6),
  );
  assert.deepEqual(
    all.map(({ seq, facts, generation, foldedSeq }) => [seq, facts.length, generation, foldedSeq]),
    [
      [20, 2, 2, 0],
      [21, 1, 3, 0],
      [22, 2, 5, 9],
      [30, 1, 6, plain(30, 6).record.aggregate.foldedSeq],
    ],
  );
  assert.deepEqual(
    all.flatMap(({ facts }) => facts),
    factsOf(1, 2, 3, 4, 5, 6),
  );
});

test('facts that were already yielded are not yielded again from a copy, wherever the read began [S4-44]', async () => {
  const copy = [copiedPart(20, 1, false, 1, 2), copiedPart(21, 2, true, 3, 4, 5)];
  const facts = async (...records: StoredFacts[]) => (await readAll(...records)).flatMap(one => one.facts);
  assert.deepEqual(await facts(plain(5, 5), ...copy, plain(30, 6)), factsOf(5, 6));
  assert.deepEqual(await facts(...copy, plain(30, 6), ...copy, plain(40, 7)), factsOf(1, 2, 3, 4, 5, 6, 7));
  // A task that waits for its client is copied again although nothing has happened since the last copy.
  assert.deepEqual(await facts(...copy, ...copy, plain(40, 6)), factsOf(1, 2, 3, 4, 5, 6));
});

test('a read that resumes within a copied run yields the later parts [S4-44]', async () => {
  const facts = async (...records: StoredFacts[]) => (await readAll(...records)).flatMap(one => one.facts);
  const [first, second, third] = [copiedPart(20, 1, false, 1, 2), copiedPart(21, 2, false, 3), copiedPart(22, 3, true, 4, 5)];
  assert.deepEqual(await facts(second, third, plain(30, 6)), factsOf(3, 4, 5, 6));
  assert.deepEqual(await facts(third, plain(30, 6), first, second, third), factsOf(4, 5, 6));
  // Here the relay died after two parts.
  assert.deepEqual(await facts(first, second, plain(30, 6), first, second, third), factsOf(1, 2, 3, 6));
});

test('a task begins at the startSeq of its newest record, or at that record if its startSeq is 0', () => {
  assert.equal(startSeqOf({ seq: 7, record: factRecord('t', 1, 0) }), 7);
  assert.equal(startSeqOf({ seq: 7, record: factRecord('t', 2, 3) }), 3);
});

/** A task with one record in the in-memory log, and the number of reads of its facts. */
async function newTask() {
  const { facts } = createMemoryLog();
  let seq = 0;
  const append = async (generation: number) => {
    const startSeq = generation === 1 ? 0 : seq;
    ({ seq } = await facts.append(factRecord('t', generation, startSeq), { expected: seq, id: `${generation}` }));
  };
  await append(1);
  let reads = 0;
  const counted: FactLog = {
    append: (...args) => facts.append(...args),
    last: taskId => facts.last(taskId),
    lastOfEach: taskIds => facts.lastOfEach(taskIds),
    read: (...args) => {
      reads += 1;
      return facts.read(...args);
    },
    follow: (...args) => facts.follow(...args),
    readStoredShard: (...args) => facts.readStoredShard(...args),
    extent: () => facts.extent(),
    isLost: mark => facts.isLost(mark),
  };
  return { facts: counted, newest: (await facts.last('t'))!, append, reads: () => reads };
}

test('a task of one record is read without a read of the log, and followed from there', async () => {
  const { facts, newest, append, reads } = await newTask();
  const read = [];
  for await (const { record } of readTask(facts, newest)) read.push(record.aggregate.generation);
  assert.deepEqual(read, [1]);
  const stop = new AbortController();
  const followed = [];
  for await (const { seq, record } of await followTask(facts, newest, stop.signal)) {
    const { generation } = record.aggregate;
    followed.push(generation);
    if (generation === 1) assert.equal(seq, newest.seq);
    if (generation < 4) await append(generation + 1);
    else stop.abort();
  }
  assert.deepEqual(followed, [1, 2, 3, 4]);
  assert.equal(reads(), 0);
});

test('a reader of a new task that stops ends the follower; a follower that fails rejects after the first record', async () => {
  const { facts, newest } = await newTask();
  let ended: AbortSignal | undefined;
  const watched: FactLog = {
    ...facts,
    follow: (taskId, after, signal) => {
      ended = signal;
      return facts.follow(taskId, after, signal);
    },
  };
  for await (const _record of await followTask(watched, newest, new AbortController().signal)) break;
  assert.equal(ended?.aborted, true);
  const failing: FactLog = { ...facts, follow: () => Promise.reject(new Error('away')) };
  const records = (await followTask(failing, newest, new AbortController().signal))[Symbol.asyncIterator]();
  assert.equal((await records.next()).done, false);
  await assert.rejects(records.next(), /away/);
});

/** A record of the given turn of task `t`. */
function recordOfTurn(generation: number, turn: number) {
  const record = factRecord('t', generation);
  return { ...record, aggregate: { ...record.aggregate, turn } };
}

const job = (turn: number) => ({ work: { ...workItem('t'), turn } });
const never = () => new AbortController().signal;

test('work waits for a task that the log has lost, and for a turn that is missing from a stale read', async () => {
  const { facts } = createMemoryLog();
  const first = newestOfTurn(facts, job(1), never());
  const { seq } = await facts.append(recordOfTurn(1, 1), { expected: 0, id: '1' });
  assert.equal((await first).seq, seq);
  const second = newestOfTurn(facts, job(2), never());
  const middle = await facts.append(recordOfTurn(2, 1), { expected: seq, id: '2' });
  const last = await facts.append(recordOfTurn(3, 2), { expected: middle.seq, id: '3' });
  assert.equal((await second).seq, last.seq);
});

test('no read is needed if the requester of the work passed the newest record, unless it belongs to an earlier turn', async () => {
  const { facts } = createMemoryLog();
  const known = { seq: 7, record: recordOfTurn(1, 1) };
  assert.equal(await newestOfTurn(facts, { ...job(1), newest: known }, never()), known);
  const stored = await facts.append(recordOfTurn(2, 2), { expected: 0, id: '2' });
  assert.equal((await newestOfTurn(facts, { ...job(2), newest: { seq: 0, record: known.record } }, never())).seq, stored.seq);
});

test('work whose turn is not shown in time is delivered again, and at a shutdown it is requeued', async () => {
  const { facts } = createMemoryLog();
  await assert.rejects(newestOfTurn(facts, job(1), never(), 20), /the log does not contain the task of this work item/);
  await facts.append(recordOfTurn(1, 1), { expected: 0, id: '1' });
  await assert.rejects(newestOfTurn(facts, job(2), never(), 20), /the log does not contain the turn of this work item/);
  await assert.rejects(newestOfTurn(facts, job(2), AbortSignal.timeout(20)), Requeued);
});
