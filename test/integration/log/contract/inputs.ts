import assert from 'node:assert/strict';
import { LogUnavailable, RecordTooLarge, type StoredInput } from '@hopline/log';
import { factRecord, inputRecord, workItem } from '@hopline/log/test-kit';
import { until } from '../../../kit/until.ts';
import { all, type Case, newTask, pause, range, TRACE, take, tasksOfOneShard, within } from './log-under-test.ts';

const ALWAYS = new AbortController().signal;

export const inputCases: Case[] = [
  {
    name: 'a shard is read in the order of the acknowledgements, with payload, size, time and trace',
    async run({ log }) {
      const { shard, taskIds } = tasksOfOneShard(3);
      const seqs: number[] = [];
      for (const n of range(1, 30)) {
        const taskId = taskIds[n % 3]!;
        const { seq, duplicate } = await log.inputs.append(taskId, inputRecord(n), { id: `${taskId}:${n}`, trace: TRACE });
        assert.equal(duplicate, false);
        seqs.push(seq);
      }
      const read = await take(log.inputs.readShard(shard, seqs[0]!, ALWAYS), 30);
      assert.deepEqual(
        read.map(({ seq, taskId, record, trace }) => ({ seq, taskId, record, trace })),
        range(1, 30).map(n => ({ seq: seqs[n - 1], taskId: taskIds[n % 3], record: inputRecord(n), trace: TRACE })),
      );
      for (const { bytes, record, storedAt } of read) {
        assert.equal(bytes, Buffer.byteLength(JSON.stringify(record)));
        assert.ok(Math.abs(storedAt - Date.now()) < 60_000);
      }
    },
  },
  {
    name: 'the stored inputs of a shard are read in order from a sequence or a time up to the newest one',
    async run({ log, another, garbage }) {
      const { shard, taskIds } = tasksOfOneShard(2);
      const seqs: number[] = [];
      for (const n of range(1, 6)) {
        const taskId = taskIds[n % 2]!;
        if (n === 3) await garbage('inputs', taskId);
        seqs.push((await log.inputs.append(taskId, inputRecord(n), { id: `${taskId}:stored:${n}` })).seq);
      }
      const reader = (await another()).inputs;
      const read = (await all(reader.readStoredShard(shard, { seq: seqs[0]! }))).flat();
      assert.deepEqual(seqsOf(read), seqs);
      assert.deepEqual(seqsOf((await all(reader.readStoredShard(shard, { seq: seqs[4]! }))).flat()), seqs.slice(4));
      assert.equal(
        seqsOf((await all(reader.readStoredShard(shard, { sinceMs: read.at(-1)!.storedAt }))).flat()).at(-1),
        seqs.at(-1),
      );
      assert.deepEqual((await all(reader.readStoredShard(shard, { sinceMs: Date.now() + 3_600_000 }))).flat(), []);
    },
  },
  {
    name: 'the inputs of one task are read in order up to the newest; a task without inputs reads as empty',
    async run({ log, another }) {
      const { taskIds } = tasksOfOneShard(2);
      const [taskId, other] = [taskIds[0]!, taskIds[1]!];
      assert.deepEqual(await all(log.inputs.read(taskId)), []);
      for (const n of range(1, 20)) {
        await log.inputs.append(taskId, inputRecord(n), { id: `${taskId}:${n}`, trace: TRACE });
        await log.inputs.append(other, inputRecord(n), { id: `${other}:${n}` });
      }
      const read = await all((await another()).inputs.read(taskId));
      assert.deepEqual(
        read.map(({ record, trace }) => ({ record, trace })),
        range(1, 20).map(n => ({ record: inputRecord(n), trace: TRACE })),
      );
      assert.deepEqual(
        seqsOf(read),
        seqsOf(read).toSorted((a, b) => a - b),
      );
    },
  },
  {
    name: 'text is read as it was appended: lone surrogates, escapes, line separators, emoji',
    async run({ log }) {
      const { shard, taskIds } = tasksOfOneShard(1);
      const text = 'a\u0000\u2028\ud83d "\\\n é 👩‍👩‍👧 \udc00\ufeff ';
      const { seq } = await log.inputs.append(taskIds[0]!, inputRecord(1, text), { id: `${taskIds[0]}:1` });
      const [read] = await take(log.inputs.readShard(shard, seq, ALWAYS), 1);
      assert.deepEqual(read?.record, inputRecord(1, text));
      assert.equal('trace' in read!, false);
    },
  },
  {
    name: 'the same id is stored once, and a retry resolves with the sequence of the first',
    async run({ log, another }) {
      const { shard, taskIds } = tasksOfOneShard(1);
      const taskId = taskIds[0]!;
      const first = await log.inputs.append(taskId, inputRecord(1), { id: `${taskId}:1` });
      const again = await (await another()).inputs.append(taskId, inputRecord(1), { id: `${taskId}:1` });
      const next = await log.inputs.append(taskId, inputRecord(2), { id: `${taskId}:2` });
      assert.deepEqual(again, { seq: first.seq, duplicate: true });
      const read = await take(log.inputs.readShard(shard, first.seq, ALWAYS), 2);
      assert.deepEqual(seqsOf(read), [first.seq, next.seq]);
    },
  },
  {
    name: 'a lost ack is retried and the record is stored once',
    async run({ log, loseAcks }) {
      const { shard, taskIds } = tasksOfOneShard(1);
      const taskId = taskIds[0]!;
      loseAcks(2);
      const lost = await within(log.inputs.append(taskId, inputRecord(1), { id: `${taskId}:1` }), 'an append whose ack was lost');
      const next = await log.inputs.append(taskId, inputRecord(2), { id: `${taskId}:2` });
      assert.equal(lost.duplicate, true);
      const read = await take(log.inputs.readShard(shard, lost.seq, ALWAYS), 2);
      assert.deepEqual(seqsOf(read), [lost.seq, next.seq]);
    },
  },
  {
    name: 'without an ack within timeoutMs an append rejects with LogUnavailable, and the same id can be appended again',
    async run({ log, loseAcks }) {
      const taskId = newTask();
      loseAcks(1000);
      const began = Date.now();
      await assert.rejects(log.inputs.append(taskId, inputRecord(1), { id: `${taskId}:1`, timeoutMs: 300 }), LogUnavailable);
      assert.ok(Date.now() - began < 3_000, 'rejects in time');
      loseAcks(0);
      const again = await log.inputs.append(taskId, inputRecord(1), { id: `${taskId}:1` });
      assert.equal(again.duplicate, true);
    },
  },
  {
    name: 'what a reader has not yielded is unread, and nothing else, even where another shard has more',
    async run({ log, another }) {
      const { shard, taskIds } = tasksOfOneShard(1);
      let busy = tasksOfOneShard(1);
      while (busy.shard === shard) busy = tasksOfOneShard(1);
      const writer = await another();
      const append = (taskId: string, n: number) => writer.inputs.append(taskId, inputRecord(n), { id: `${taskId}:${n}` });
      const first = await append(taskIds[0]!, 1);
      // The two shards may be in two streams, each with sequences of its own.
      const seqs: number[] = [];
      for (const n of range(1, 20)) seqs.push((await append(busy.taskIds[0]!, n)).seq);
      const last = seqs.at(-1)!;
      const stop = new AbortController();
      try {
        const quiet = log.inputs.readShard(shard, first.seq, stop.signal)[Symbol.asyncIterator]();
        const other = log.inputs.readShard(busy.shard, seqs[0]!, stop.signal)[Symbol.asyncIterator]();
        const [one, before] = await Promise.all([quiet.next(), other.next()]);
        assert.deepEqual([one.value?.seq, before.value?.seq], [first.seq, seqs[0]]);
        const rest = log.inputs.unread(busy.shard, seqs[0]!)!;
        assert.ok(rest.records > 0 && rest.records < 20, `${rest.records} records`);
        assert.ok(rest.storedAt >= before.value!.storedAt);
        // The readers wait for more, so they have asked for all that there is.
        const waiting = quiet.next();
        let next = other.next();
        for (let at = seqs[0]!; at < last; next = other.next()) at = (await next).value!.seq;
        await until(() => log.inputs.unread(shard, first.seq) === undefined && log.inputs.unread(busy.shard, last) === undefined);
        stop.abort();
        await Promise.all([waiting, next]);
      } finally {
        stop.abort();
      }
    },
  },
  {
    name: 'a reader begins at `from`, reads its shard only, and continues with records appended meanwhile, each once',
    async run({ log, another }) {
      const { shard, taskIds } = tasksOfOneShard(2);
      const elsewhere = tasksOfOneShard(1);
      const writer = await another();
      const appended: number[] = [];
      const append = async (from: number, to: number) => {
        for (const n of range(from, to)) {
          const taskId = taskIds[n % 2]!;
          appended.push((await writer.inputs.append(taskId, inputRecord(n), { id: `${taskId}:${n}` })).seq);
          if (elsewhere.shard !== shard) {
            await writer.inputs.append(elsewhere.taskIds[0]!, inputRecord(n), { id: `${elsewhere.taskIds[0]}:${shard}:${n}` });
          }
        }
      };
      await append(1, 50);
      const reading = take(log.inputs.readShard(shard, appended[10]!, ALWAYS), 140);
      await append(51, 150);
      assert.deepEqual(seqsOf(await reading), appended.slice(10));
    },
  },
  {
    name: 'a waiting reader receives the next record, ends when aborted, and leaves no consumer behind',
    async run({ log, readersLeft }) {
      const { shard, taskIds } = tasksOfOneShard(1);
      const { seq } = await log.inputs.append(taskIds[0]!, inputRecord(1), { id: `${taskIds[0]}:1` });
      const abort = new AbortController();
      const got: number[] = [];
      const reading = (async () => {
        for await (const input of log.inputs.readShard(shard, seq + 1, abort.signal)) got.push(input.seq);
      })();
      await pause(100);
      assert.deepEqual(got, []);
      const next = await log.inputs.append(taskIds[0]!, inputRecord(2), { id: `${taskIds[0]}:2` });
      await until(() => got.length > 0, 'the next record');
      abort.abort();
      await within(reading, 'the end of the reader');
      assert.deepEqual(got, [next.seq]);
      assert.equal(await readersLeft(), 0);
    },
  },
  {
    name: 'a reader that is aborted yields nothing more, not even of what has arrived',
    async run({ log, readersLeft }) {
      const { shard, taskIds } = tasksOfOneShard(1);
      const taskId = taskIds[0]!;
      const { seq } = await log.inputs.append(taskId, inputRecord(1), { id: `${taskId}:1` });
      for (const n of range(2, 20)) await log.inputs.append(taskId, inputRecord(n), { id: `${taskId}:${n}` });
      const abort = new AbortController();
      const got: number[] = [];
      for await (const input of log.inputs.readShard(shard, seq, abort.signal)) {
        if (got.push(input.seq) === 2) abort.abort();
      }
      assert.equal(got.length, 2);
      assert.equal(await readersLeft(), 0);
    },
  },
  {
    name: 'a record stored after the reading of its shard began is marked as such, even after a reconnect, an earlier one is not',
    async run({ log, another, cut }) {
      const { shard, taskIds } = tasksOfOneShard(1);
      const taskId = taskIds[0]!;
      const { seq } = await log.inputs.append(taskId, inputRecord(1), { id: `${taskId}:1` });
      const reading = log.inputs.readShard(shard, seq, ALWAYS)[Symbol.asyncIterator]();
      const before = await within(reading.next(), 'the earlier record');
      await log.inputs.append(taskId, inputRecord(2), { id: `${taskId}:2` });
      const after = await within(reading.next(), 'the later record');
      const writer = await another();
      const third = reading.next();
      await cut(async () => void (await writer.inputs.append(taskId, inputRecord(3), { id: `${taskId}:3` })));
      const afterCut = await within(third, 'the record of the time without a connection');
      await reading.return?.();
      assert.deepEqual(
        [before, after, afterCut].map(({ value }) => value?.isLive),
        [undefined, true, true],
      );
    },
  },
  {
    name: 'a slow reader loses no record',
    async run({ log }) {
      const { shard, taskIds } = tasksOfOneShard(1);
      const taskId = taskIds[0]!;
      const appends = range(1, 1_200).map(n => log.inputs.append(taskId, inputRecord(n), { id: `${taskId}:${n}` }));
      const seqs = (await Promise.all(appends)).map(({ seq }) => seq).sort((a, b) => a - b);
      const got: number[] = [];
      for await (const input of log.inputs.readShard(shard, seqs[0]!, ALWAYS)) {
        if (got.push(input.seq) >= seqs.length) break;
        if (got.length % 400 === 1) await pause(20);
      }
      assert.deepEqual(got, seqs);
    },
  },
  {
    name: 'records that retention removed are skipped',
    async run({ log, expire }) {
      const { shard, taskIds } = tasksOfOneShard(1);
      const taskId = taskIds[0]!;
      const seqs: number[] = [];
      for (const n of range(1, 6)) seqs.push((await log.inputs.append(taskId, inputRecord(n), { id: `${taskId}:${n}` })).seq);
      await expire('inputs', taskId, seqs[3]!);
      const read = await take(log.inputs.readShard(shard, seqs[0]!, ALWAYS), 3);
      assert.deepEqual(seqsOf(read), seqs.slice(3));
    },
  },
  {
    name: 'a payload that is not a record is skipped',
    async run({ log, garbage }) {
      const { shard, taskIds } = tasksOfOneShard(1);
      const taskId = taskIds[0]!;
      const first = await log.inputs.append(taskId, inputRecord(1), { id: `${taskId}:1` });
      await garbage('inputs', taskId);
      const next = await log.inputs.append(taskId, inputRecord(2), { id: `${taskId}:2` });
      const read = await take(log.inputs.readShard(shard, first.seq, ALWAYS), 2);
      assert.deepEqual(seqsOf(read), [first.seq, next.seq]);
    },
  },
  {
    name: 'the record at a sequence is read for its own task only, while it is stored and a record',
    async run({ log, expire, garbage }) {
      const { taskIds } = tasksOfOneShard(2);
      const [taskId, other] = [taskIds[0]!, taskIds[1]!];
      const first = await log.inputs.append(taskId, inputRecord(1), { id: `${taskId}:1` });
      const second = await log.inputs.append(taskId, inputRecord(2), { id: `${taskId}:2` });
      await garbage('inputs', taskId);
      assert.deepEqual(await log.inputs.recordAt(taskId, second.seq), inputRecord(2));
      assert.equal(await log.inputs.recordAt(other, second.seq), undefined);
      assert.equal(await log.inputs.recordAt(`${taskId}0`, second.seq), undefined);
      assert.equal(await log.inputs.recordAt(taskId, second.seq + 1), undefined);
      assert.equal(await log.inputs.recordAt(taskId, second.seq + 1_000), undefined);
      await expire('inputs', taskId, second.seq);
      assert.equal(await log.inputs.recordAt(taskId, first.seq), undefined);
    },
  },
  {
    name: 'a record of recordBytesMax is stored; one byte more rejects with RecordTooLarge and stores nothing',
    async run({ log }) {
      const { shard, taskIds } = tasksOfOneShard(1);
      const taskId = taskIds[0]!;
      const empty = Buffer.byteLength(JSON.stringify(inputRecord(1, '')));
      const largest = inputRecord(1, 'x'.repeat(log.recordBytesMax - empty));
      const { seq } = await log.inputs.append(taskId, largest, { id: `${taskId}:1`, trace: TRACE });
      const tooLarge = inputRecord(2, 'x'.repeat(log.recordBytesMax - empty + 1));
      await assert.rejects(log.inputs.append(taskId, tooLarge, { id: `${taskId}:2` }), RecordTooLarge);
      const next = await log.inputs.append(taskId, inputRecord(3), { id: `${taskId}:3` });
      assert.deepEqual(seqsOf(await take(log.inputs.readShard(shard, seq, ALWAYS), 2)), [seq, next.seq]);
    },
  },
  {
    name: 'a task id that is not a subject token throws TypeError',
    async run({ log }) {
      for (const taskId of ['', 'a.b', 'a b', '*', '>', 'x'.repeat(129)]) {
        await assert.rejects(log.inputs.append(taskId, inputRecord(1), { id: 'x' }), TypeError);
      }
      const longest = `${'y'.repeat(110)}${newTask()}`.slice(0, 128);
      await log.inputs.append(longest, inputRecord(1), { id: `${longest}:1` });
    },
  },
  {
    name: 'an agent name or a record id that cannot be part of a subject or header throws TypeError, and stores nothing',
    async run({ log }) {
      const taskId = newTask();
      const ofAgent = (agent: string) => ({ ...inputRecord(1), from: { id: 'call-1', agent, turn: 1, attempt: 1 } });
      for (const agent of ['', 'A', 'a.b', 'a b', '*', '>', '-a', 'x'.repeat(33)]) {
        await assert.rejects(log.inputs.append(taskId, ofAgent(agent), { id: `${taskId}:1` }), TypeError);
      }
      for (const id of ['', 'a b', ' a', 'a\r\nx: y', 'a\t', 'é', '\ud800']) {
        await assert.rejects(log.inputs.append(taskId, inputRecord(1), { id }), TypeError);
        await assert.rejects(log.facts.append(factRecord(taskId, 1), { expected: 0, id }), TypeError);
        await assert.rejects(log.work.request('supervisor', workItem(taskId), { id }), TypeError);
      }
      assert.deepEqual(await all(log.inputs.read(taskId)), []);
      assert.equal(await log.facts.last(taskId), undefined);
      assert.equal(await log.work.hasItem('supervisor', taskId), false);
      await log.inputs.append(taskId, ofAgent('x'.repeat(32)), { id: `${taskId}:!~` });
    },
  },
  {
    name: 'a reader whose signal is already aborted reads nothing',
    async run({ log }) {
      assert.deepEqual(await all(log.inputs.readShard(0, 1, AbortSignal.abort())), []);
    },
  },
];

const seqsOf = (inputs: StoredInput[]): number[] => inputs.map(({ seq }) => seq);
