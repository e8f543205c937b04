import assert from 'node:assert/strict';
import { shardOf, type Work } from '@hopline/events';
import { factsId, LaterVersion, LogConflict, LogUnavailable, RecordTooLarge } from '@hopline/log';
import { factRecord, inputRecord } from '@hopline/log/test-kit';
import {
  all,
  appendRun,
  type Case,
  CONTRACT_LAYOUTS,
  CONTRACT_SHARDS,
  generationsOf,
  newTask,
  newTaskOf,
  range,
  TRACE,
  take,
  tasksOfOneShard,
  within,
} from './log-under-test.ts';

export const factCases: Case[] = [
  {
    name: 'an erased task has no records, its sequences are not lost, and other tasks keep their records',
    async run({ log, another }) {
      const { taskIds } = tasksOfOneShard(2);
      const [erased, other] = [taskIds[0]!, taskIds[1]!];
      await appendRun(log, erased, { from: 1, to: 3 });
      await appendRun(log, other, { from: 1, to: 2 });
      const mark = (await log.facts.last(erased))!;
      for (const taskId of [erased, other]) await log.inputs.append(taskId, inputRecord(1), { id: `${taskId}:1` });
      const owner = { tenant: 'acme', subject: 'ann' };
      await log.work.request('agent.argocd', { taskId: erased, turn: 1, owner } as Work, { id: `${erased}:work` });
      const admin = await another();
      assert.deepEqual(await admin.purgeTask(erased), { work: 1, inputs: 1, facts: 3 });
      assert.deepEqual(await admin.purgeTask(erased), { work: 0, inputs: 0, facts: 0 });
      assert.equal(await log.facts.last(erased), undefined);
      assert.deepEqual(await all(log.facts.read(erased, 1)), []);
      assert.deepEqual(await all(log.inputs.read(erased)), []);
      assert.equal(await log.work.hasItem('agent.argocd', erased), false);
      assert.equal(await log.facts.isLost({ seq: mark.seq, id: mark.id! }), false);
      assert.deepEqual([(await all(log.facts.read(other, 1))).length, (await all(log.inputs.read(other))).length], [2, 1]);
    },
  },
  {
    name: 'records are read in order from a sequence, inclusive, with payload and trace as appended',
    async run({ log }) {
      const taskId = newTask();
      const seqs = await appendRun(log, taskId, { from: 1, to: 4 });
      const record = factRecord(taskId, 5, seqs[0]);
      const id = factsId(taskId, 'relay-1', 5);
      const { seq } = await log.facts.append(record, { expected: seqs[3]!, id, trace: TRACE });
      const read = await all(log.facts.read(taskId, 1));
      assert.deepEqual(generationsOf(read), range(1, 5));
      for (const stored of [await log.facts.last(taskId), read.at(-1)]) {
        const { storedAt = Date.now(), bytes: _bytes, ...rest } = stored!;
        assert.deepEqual(rest, { seq, record, id, relay: 'relay-1', trace: TRACE });
        assert.ok(Math.abs(Date.now() - storedAt) < 60_000);
      }
      assert.ok(read.every(({ bytes = 0, record }) => bytes > 0 && bytes <= JSON.stringify(record).length));
      assert.deepEqual(generationsOf(await all(log.facts.read(taskId, seqs[2]!))), [3, 4, 5]);
      assert.deepEqual(await all(log.facts.read(taskId, seq + 1)), []);
    },
  },
  {
    name: 'the stored records of a shard are read in order from a sequence or a time up to the newest one',
    async run({ log, another, garbage, readersLeft }) {
      const { shard, taskIds } = tasksOfOneShard(2);
      const [one, other] = [taskIds[0]!, taskIds[1]!];
      const [first] = await appendRun(log, one, { from: 1, to: 3 });
      await garbage('facts', other);
      const [fourth] = await appendRun(log, newTaskOf(shard), { from: 1, to: 1 });
      const reader = (await another()).facts;
      const read = (await all(reader.readStoredShard(shard, { seq: first! }))).flat();
      const generations = [1, 2, 3, 1];
      assert.deepEqual(
        read.map(({ facts }) => facts),
        read.map(({ taskId }, index) => factRecord(taskId, generations[index]!).facts),
      );
      assert.equal(read[0]?.taskId, one);
      assert.ok(read.every(({ storedAt }) => Math.abs(storedAt! - Date.now()) < 60_000));
      const newest = await log.facts.last(read.at(-1)!.taskId);
      assert.deepEqual([newest?.seq, newest?.id], [read.at(-1)!.seq, read.at(-1)!.id]);
      assert.equal((await all(reader.readStoredShard(shard, { sinceMs: read.at(-1)!.storedAt! }))).flat().at(-1)?.seq, fourth);
      assert.equal((await all(reader.readStoredShard(shard, { sinceMs: Date.UTC(-1, 0) }))).flat().at(-1)?.seq, fourth);
      assert.deepEqual((await all(reader.readStoredShard(shard, { sinceMs: Date.now() + 3_600_000 }))).flat(), []);
      assert.deepEqual((await all(reader.readStoredShard(shard, { seq: fourth! + 1 }))).flat(), []);
      const empty = range(0, CONTRACT_SHARDS - 1).find(index => index !== shard)!;
      assert.deepEqual((await all(reader.readStoredShard(empty, { seq: fourth! + 1 }))).flat(), []);
      assert.equal(await readersLeft(), 0);
    },
  },
  {
    name: 'a task without records has no last record and reads as empty',
    async run({ log, readersLeft }) {
      const taskId = newTask();
      assert.equal(await log.facts.last(taskId), undefined);
      assert.deepEqual(await all(log.facts.read(taskId, 1)), []);
      assert.equal(await readersLeft(), 0);
    },
  },
  {
    name: 'a newest record of a later version does not count as absent: last rejects, and readers skip it',
    async run({ log }) {
      const taskId = newTask();
      const [first] = await appendRun(log, taskId, { from: 1, to: 1 });
      const later = { ...factRecord(taskId, 2, first), v: 3 } as never;
      await log.facts.append(later, { expected: first!, id: `${taskId}:2` });
      await assert.rejects(log.facts.last(taskId), LaterVersion);
      assert.deepEqual(generationsOf(await all(log.facts.read(taskId, 1))), [1]);
    },
  },
  {
    name: 'an append whose expected sequence is not the newest is LogConflict and stores nothing',
    async run({ log }) {
      const taskId = newTask();
      const seqs = await appendRun(log, taskId, { from: 1, to: 2 });
      for (const expected of [0, seqs[0]!, seqs[1]! + 1]) {
        await assert.rejects(
          log.facts.append(factRecord(taskId, 3), { expected, id: `${taskId}:other:${expected}` }),
          LogConflict,
        );
      }
      await assert.rejects(log.facts.append(factRecord(newTask(), 1), { expected: seqs[1]!, id: `${taskId}:none` }), LogConflict);
      assert.deepEqual(generationsOf(await all(log.facts.read(taskId, 1))), [1, 2]);
      await appendRun(log, taskId, { from: 3, to: 3, startSeq: seqs[0]!, expected: seqs[1]! });
    },
  },
  {
    name: 'a retry with the same id resolves with the sequence of the first append, whatever it expects',
    async run({ log, another }) {
      const taskId = newTask();
      const seqs = await appendRun(log, taskId, { from: 1, to: 3 });
      const zombie = await another();
      const again = await zombie.facts.append(factRecord(taskId, 2, seqs[0]), { expected: seqs[0]!, id: `${taskId}:2` });
      assert.equal(again.seq, seqs[1]);
      assert.deepEqual(generationsOf(await all(log.facts.read(taskId, 1))), [1, 2, 3]);
    },
  },
  {
    name: 'a lost ack is not a conflict: the retry resolves with the stored sequence',
    async run({ log, loseAcks }) {
      const taskId = newTask();
      loseAcks(2);
      const first = await within(log.facts.append(factRecord(taskId, 1), { expected: 0, id: `${taskId}:1` }), 'the append');
      loseAcks(1);
      const second = await log.facts.append(factRecord(taskId, 2, first.seq), { expected: first.seq, id: `${taskId}:2` });
      const read = await all(log.facts.read(taskId, 1));
      assert.deepEqual(
        read.map(({ seq }) => seq),
        [first.seq, second.seq],
      );
    },
  },
  {
    name: 'without an ack within timeoutMs an append rejects with LogUnavailable, and the same id can be appended again',
    async run({ log, loseAcks }) {
      const taskId = newTask();
      loseAcks(1000);
      const append = (timeoutMs: number) =>
        log.facts.append(factRecord(taskId, 1), { expected: 0, id: `${taskId}:1`, timeoutMs });
      await assert.rejects(append(300), LogUnavailable);
      loseAcks(0);
      const { seq } = await append(10_000);
      assert.deepEqual((await all(log.facts.read(taskId, 1))).length, 1);
      assert.equal((await log.facts.last(taskId))?.seq, seq);
    },
  },
  {
    name: 'exactly one of several racing writers wins',
    async run({ log, another }) {
      const other = await another();
      for (const round of range(1, 20)) {
        const taskId = newTask();
        const results = await Promise.allSettled(
          [log, other, log].map((writer, i) =>
            writer.facts.append(factRecord(taskId, 1), { expected: 0, id: `${taskId}:${round}:${i}` }),
          ),
        );
        const lost = results.filter(result => result.status === 'rejected');
        assert.equal(lost.length, 2);
        for (const { reason } of lost) assert.ok(reason instanceof LogConflict);
        assert.equal((await all(log.facts.read(taskId, 1))).length, 1);
      }
    },
  },
  {
    name: 'appends to different tasks are independent',
    async run({ log }) {
      const [a, b] = [newTask(), newTask()];
      const [first] = await appendRun(log, a, { from: 1, to: 1 });
      await appendRun(log, b, { from: 1, to: 10 });
      await appendRun(log, a, { from: 2, to: 3, startSeq: first!, expected: first! });
      assert.deepEqual(generationsOf(await all(log.facts.read(a, 1))), [1, 2, 3]);
      assert.deepEqual(generationsOf(await all(log.facts.read(b, 1))), range(1, 10));
    },
  },
  {
    name: 'read ends at the newest record at the time of the call, and leaves no consumer behind',
    async run({ log, another, readersLeft }) {
      const taskId = newTask();
      const seqs = await appendRun(log, taskId, { from: 1, to: 700 });
      const writer = await another();
      const reading = all(log.facts.read(taskId, seqs[0]!));
      const appending = appendRun(writer, taskId, { from: 701, to: 760, startSeq: seqs[0]!, expected: seqs.at(-1)! });
      const generations = generationsOf(await reading);
      await appending;
      assert.deepEqual(generations, range(1, generations.length));
      assert.ok(generations.length >= 700 && generations.length <= 760);
      assert.equal(await readersLeft(), 0);
    },
  },
  {
    name: 'an unfinished read leaves no consumer behind',
    async run({ log, readersLeft }) {
      const taskId = newTask();
      await appendRun(log, taskId, { from: 1, to: 20 });
      assert.deepEqual(generationsOf(await take(log.facts.read(taskId, 1), 3)), [1, 2, 3]);
      const shard = shardOf(taskId, CONTRACT_LAYOUTS);
      assert.equal((await take(log.facts.readStoredShard(shard, { seq: 1 }), 1)).length, 1);
      assert.equal(await readersLeft(), 0);
    },
  },
  {
    name: 'records that retention removed are skipped: the reader sees the generation jump',
    async run({ log, expire }) {
      const taskId = newTask();
      const seqs = await appendRun(log, taskId, { from: 1, to: 6 });
      await expire('facts', taskId, seqs[3]!);
      assert.deepEqual(generationsOf(await all(log.facts.read(taskId, seqs[0]!))), [4, 5, 6]);
      await appendRun(log, taskId, { from: 7, to: 7, startSeq: seqs[0]!, expected: seqs[5]! });
    },
  },
  {
    name: 'the extent names the newest sequence and the oldest one that retention has left',
    async run({ log, expire }) {
      const taskId = newTask();
      const [, second, third] = await appendRun(log, taskId, { from: 1, to: 3 });
      const before = (await log.facts.extent()).of(taskId);
      assert.equal(before.lastSeq, third);
      assert.ok(before.firstSeq <= second! && before.fill >= 0 && before.fill <= 1, JSON.stringify(before));
      await expire('facts', taskId, third!);
      const after = (await log.facts.extent()).of(taskId);
      assert.ok(after.firstSeq >= before.firstSeq && after.firstSeq <= third!, JSON.stringify(after));
      const { seq } = await log.inputs.append(taskId, inputRecord(1), { id: `${taskId}:extent` });
      assert.equal((await log.inputs.extent()).of(taskId).lastSeq, seq);
    },
  },
  {
    name: 'a payload that is not a record is skipped, and the task continues after it',
    async run({ log, garbage }) {
      const taskId = newTask();
      const seqs = await appendRun(log, taskId, { from: 1, to: 2 });
      await garbage('facts', taskId);
      const last = await log.facts.last(taskId);
      assert.equal(last?.record.aggregate.generation, 2);
      await appendRun(log, taskId, { from: 3, to: 3, startSeq: seqs[0]!, expected: last!.seq });
      assert.deepEqual(generationsOf(await all(log.facts.read(taskId, 1))), [1, 2, 3]);
    },
  },
  {
    name: 'a record above recordBytesMax rejects with RecordTooLarge and stores nothing',
    async run({ log }) {
      const taskId = newTask();
      const record = factRecord(taskId, 1, 0, 'x'.repeat(log.recordBytesMax));
      await assert.rejects(log.facts.append(record, { expected: 0, id: `${taskId}:1` }), RecordTooLarge);
      assert.equal(await log.facts.last(taskId), undefined);
    },
  },
  {
    name: 'a task id that is not a subject token throws TypeError',
    async run({ log }) {
      for (const taskId of ['', 'a.b', '*', '>']) {
        await assert.rejects(log.facts.append(factRecord(taskId, 1), { expected: 0, id: 'x' }), TypeError);
        await assert.rejects(log.facts.last(taskId), TypeError);
        await assert.rejects(log.facts.follow(taskId, 0, AbortSignal.abort()), TypeError);
        assert.throws(() => log.facts.read(taskId, 1), TypeError);
      }
    },
  },
  {
    name: 'a record is lost when the log ends before it or has another one in its place, not when retention removed it',
    async run({ log, expire }) {
      const taskId = newTask();
      const [first, second] = await appendRun(log, taskId, { from: 1, to: 2 });
      const isLost = (seq: number, generation: number) => log.facts.isLost({ seq, id: `${taskId}:${generation}` });
      assert.deepEqual(await Promise.all([isLost(first!, 1), isLost(second!, 2)]), [false, false]);
      const { lastSeq } = (await log.facts.extent()).of(taskId);
      assert.deepEqual(await Promise.all([isLost(first!, 2), isLost(lastSeq + 1, 3)]), [true, true]);
      await expire('facts', taskId, second!);
      assert.deepEqual(await Promise.all([isLost(first!, 1), isLost(second!, 2)]), [false, false]);
    },
  },
];
