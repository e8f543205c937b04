import assert from 'node:assert/strict';
import { type FollowStart, HistoryLost, type Log, type StoredFacts } from '@hopline/log';
import { factRecord } from '@hopline/log/test-kit';
import { until } from '../../../kit/until.ts';
import {
  all,
  appendRun,
  type Case,
  CONTRACT_FOLLOW_BUFFER_RECORDS_MAX,
  CONTRACT_TAIL_CHECK_MS,
  generationsOf,
  newTask,
  pause,
  range,
  take,
  within,
} from './log-under-test.ts';

/** Follows in the background and collects the records. */
async function following(log: Log, taskId: string, after: FollowStart) {
  const abort = new AbortController();
  const records: StoredFacts[] = [];
  const live = await log.facts.follow(taskId, after, abort.signal);
  const ended = (async () => {
    for await (const record of live) records.push(record);
  })();
  const generations = () => generationsOf(records);
  ended.catch(() => {});
  return {
    generations,
    ended,
    has: (generation: number) => until(() => generations().includes(generation), `generation ${generation}`),
    async end() {
      await within(ended, 'the end of the follower');
      return generations();
    },
    async stop() {
      abort.abort();
      return this.end();
    },
  };
}

export const followCases: Case[] = [
  {
    name: 'history, records appended while it is read, and live records are yielded once and in order',
    async run({ log, another, readersLeft }) {
      const taskId = newTask();
      const writer = await another();
      const seqs = await appendRun(writer, taskId, { from: 1, to: 600 });
      const appending = appendRun(writer, taskId, { from: 601, to: 900, startSeq: seqs[0]!, expected: seqs.at(-1)! });
      const follower = await following(log, taskId, 0);
      await appending;
      await follower.has(900);
      await pause(2 * CONTRACT_TAIL_CHECK_MS);
      assert.deepEqual(await follower.stop(), range(1, 900));
      assert.equal(await readersLeft(), 0);
    },
  },
  {
    name: 'every follower receives exactly the records after its sequence',
    async run({ log, another }) {
      const taskId = newTask();
      const other = newTask();
      const seqs = await appendRun(log, taskId, { from: 1, to: 10 });
      const followers = [
        { follower: await following(log, taskId, seqs[3]!), from: 5 },
        { follower: await following(await another(), taskId, seqs[9]!), from: 11 },
        { follower: await following(log, taskId, seqs[9]!), from: 11 },
      ];
      await appendRun(log, other, { from: 1, to: 5 });
      await appendRun(log, taskId, { from: 11, to: 20, startSeq: seqs[0]!, expected: seqs[9]! });
      for (const { follower, from } of followers) {
        await follower.has(20);
        assert.deepEqual(await follower.stop(), range(from, 20));
      }
    },
  },
  {
    name: "'new' yields a task from its first record",
    async run({ log, another }) {
      const taskId = newTask();
      const follower = await following(log, taskId, 'new');
      await appendRun(await another(), taskId, { from: 1, to: 50 });
      await follower.has(50);
      assert.deepEqual(await follower.stop(), range(1, 50));
    },
  },
  {
    name: 'a follower after the newest record receives what was stored before it subscribed, and what follows',
    async run({ log, another }) {
      const taskId = newTask();
      const seqs = await appendRun(log, taskId, { from: 1, to: 6 });
      const [quiet, busy] = [
        await following(log, taskId, { newest: seqs[3]! }),
        await following(log, taskId, { newest: seqs[3]! }),
      ];
      await quiet.has(6);
      assert.deepEqual(await quiet.stop(), [5, 6]);
      await appendRun(await another(), taskId, { from: 7, to: 9, startSeq: seqs[0]!, expected: seqs[5]! });
      await busy.has(9);
      assert.deepEqual(await busy.stop(), [5, 6, 7, 8, 9]);
    },
  },
  {
    name: 'a follower that skips text receives no live record that only continues text, and loses no other',
    async run({ log, another, loseLive }) {
      const taskId = newTask();
      const writer = await another();
      const seqs = await appendRun(writer, taskId, { from: 1, to: 2 });
      const append = async (from: number, to: number, continuesText: boolean) => {
        seqs.push(...(await appendRun(writer, taskId, { from, to, startSeq: seqs[0]!, expected: seqs.at(-1)!, continuesText })));
      };
      const follower = await following(log, taskId, { newest: seqs[1]!, skipsText: true });
      // Once the follower has record 3, its subscription is live. Until then it reads all records from the log, text included.
      await append(3, 3, false);
      await follower.has(3);
      await append(4, 6, true);
      await append(7, 7, false);
      await follower.has(7);
      loseLive(1);
      await append(8, 8, false);
      await append(9, 9, true);
      await follower.has(8);
      assert.deepEqual(
        (await follower.stop()).filter(generation => generation < 9),
        [3, 7, 8],
      );
    },
  },
  {
    name: 'lost live messages are read from the log when the next one arrives',
    async run({ log, another, loseLive }) {
      const taskId = newTask();
      const writer = await another();
      const follower = await following(log, taskId, 'new');
      const seqs = await appendRun(writer, taskId, { from: 1, to: 5 });
      await follower.has(5);
      loseLive(3);
      seqs.push(...(await appendRun(writer, taskId, { from: 6, to: 9, startSeq: seqs[0]!, expected: seqs.at(-1)! })));
      await follower.has(9);
      await appendRun(writer, taskId, { from: 10, to: 12, startSeq: seqs[0]!, expected: seqs.at(-1)! });
      await follower.has(12);
      assert.deepEqual(await follower.stop(), range(1, 12));
    },
  },
  {
    name: 'a lost first live message of a new task is read from the log',
    async run({ log, another, loseLive }) {
      const taskId = newTask();
      const follower = await following(log, taskId, 'new');
      loseLive(1);
      await appendRun(await another(), taskId, { from: 1, to: 3 });
      await follower.has(3);
      assert.deepEqual(await follower.stop(), [1, 2, 3]);
    },
  },
  {
    name: 'a lost only message of a new task is detected after a quiet time',
    async run({ log, another, loseLive }) {
      const taskId = newTask();
      const follower = await following(log, taskId, 'new');
      loseLive(1);
      await appendRun(await another(), taskId, { from: 1, to: 1 });
      await follower.has(1);
      assert.deepEqual(await follower.stop(), [1]);
    },
  },
  {
    name: 'a lost last message is detected after a quiet time',
    async run({ log, another, loseLive, readersLeft }) {
      const taskId = newTask();
      const follower = await following(log, taskId, 'new');
      const writer = await another();
      const seqs = await appendRun(writer, taskId, { from: 1, to: 3 });
      await follower.has(3);
      loseLive(1);
      await appendRun(writer, taskId, { from: 4, to: 4, startSeq: seqs[0]!, expected: seqs.at(-1)! });
      await follower.has(4);
      assert.deepEqual(await follower.stop(), [1, 2, 3, 4]);
      assert.equal(await readersLeft(), 0);
    },
  },
  {
    name: 'a slow reader loses no record, and its buffer is bounded',
    async run({ log, another }) {
      const taskId = newTask();
      const live = await log.facts.follow(taskId, 'new', AbortSignal.timeout(15_000));
      const count = 8 * CONTRACT_FOLLOW_BUFFER_RECORDS_MAX;
      const appending = another().then(writer => appendRun(writer, taskId, { from: 1, to: count }));
      const got: StoredFacts[] = [];
      for await (const record of live) {
        got.push(record);
        if (got.length === 1) await appending;
        if (got.length >= count) break;
      }
      assert.deepEqual(generationsOf(got), range(1, count));
    },
  },
  {
    name: 'records that retention removed are skipped, in history and live',
    async run({ log, expire }) {
      const taskId = newTask();
      const seqs = await appendRun(log, taskId, { from: 1, to: 6 });
      await expire('facts', taskId, seqs[3]!);
      const follower = await following(log, taskId, seqs[0]!);
      await follower.has(6);
      await expire('facts', taskId, seqs[5]! + 1);
      const [seventh] = await appendRun(log, taskId, { from: 7, to: 7, startSeq: seqs[0]!, expected: 0 });
      await appendRun(log, taskId, { from: 8, to: 8, startSeq: seqs[0]!, expected: seventh! });
      await follower.has(8);
      assert.deepEqual(await follower.stop(), [4, 5, 6, 7, 8]);
    },
  },
  {
    name: 'a payload that is not a record is skipped, in history and live',
    async run({ log, garbage }) {
      const taskId = newTask();
      const seqs = await appendRun(log, taskId, { from: 1, to: 2 });
      await garbage('facts', taskId);
      const follower = await following(log, taskId, 0);
      await follower.has(2);
      const third = await appendRun(log, taskId, {
        from: 3,
        to: 3,
        startSeq: seqs[0]!,
        expected: (await log.facts.last(taskId))!.seq,
      });
      await follower.has(3);
      await garbage('facts', taskId);
      const last = await log.facts.last(taskId);
      assert.ok(last!.seq > third[0]!);
      await appendRun(log, taskId, { from: 4, to: 4, startSeq: seqs[0]!, expected: last!.seq });
      await follower.has(4);
      await pause(2 * CONTRACT_TAIL_CHECK_MS);
      assert.deepEqual(await follower.stop(), [1, 2, 3, 4]);
    },
  },
  {
    name: 'a follower whose newest record was lost ends with HistoryLost when another record of the task takes its sequence',
    async run({ log, another, lose, loseLive }) {
      const writer = await another();
      for (const isLiveLost of [true, false]) {
        const taskId = newTask();
        const live = await following(log, taskId, 'new');
        const seqs = await appendRun(writer, taskId, { from: 1, to: 2 });
        const skipping = await following(log, taskId, { newest: seqs[1]!, skipsText: true });
        await live.has(2);
        seqs.push(
          ...(await appendRun(writer, taskId, { from: 3, to: 3, startSeq: seqs[0]!, expected: seqs[1]!, continuesText: true })),
        );
        const newest = seqs[2]!;
        const { id } = (await log.facts.last(taskId))!;
        assert.equal(id, `${taskId}:3`);
        const followers = [live, skipping, await following(log, taskId, 0), await following(log, taskId, { newest, id })];
        await live.has(3);
        await followers[2]!.has(3);
        // Longer than a follower waits before it reads what was stored before its subscription.
        await pause(2 * CONTRACT_TAIL_CHECK_MS);
        await lose(taskId, newest - 1);
        loseLive(isLiveLost ? 1 : 0);
        const expected = (await writer.facts.last(taskId))?.seq ?? 0;
        const other = await writer.facts.append(factRecord(taskId, 3, seqs[0]), { expected, id: `${taskId}:other` });
        assert.equal(other.seq, newest);
        for (const { ended } of followers) await assert.rejects(within(ended, 'the end of the follower'), HistoryLost);
        loseLive(0);
      }
    },
  },
  {
    name: 'a follower ends when its signal aborts, before it starts or between records, and when its reader breaks',
    async run({ log, readersLeft }) {
      const taskId = newTask();
      await appendRun(log, taskId, { from: 1, to: 30 });
      assert.deepEqual(await all(await log.facts.follow(taskId, 0, AbortSignal.abort())), []);
      const abort = new AbortController();
      const got: StoredFacts[] = [];
      for await (const record of await log.facts.follow(taskId, 0, abort.signal)) {
        got.push(record);
        if (got.length === 10) abort.abort();
      }
      assert.deepEqual(generationsOf(got), range(1, 10));
      const never = new AbortController().signal;
      assert.deepEqual(generationsOf(await take(await log.facts.follow(taskId, 0, never), 5)), range(1, 5));
      assert.equal(await readersLeft(), 0);
    },
  },
  {
    name: 'a follower ends when its log is closed',
    async run({ log, another }) {
      const taskId = newTask();
      await appendRun(log, taskId, { from: 1, to: 1 });
      const closing = await another();
      const [idle, quiet] = [await following(closing, newTask(), 'new'), await following(closing, taskId, 0)];
      await quiet.has(1);
      await closing.close();
      assert.deepEqual([await idle.end(), await quiet.end()], [[], [1]]);
    },
  },
];

/** These cases run on a log that checks the tail only after a minute, so a tail check cannot help them. */
export const followWithoutTailCheckCases: Case[] = [
  {
    name: 'the subscription is live when follow resolves',
    async run({ log, another }) {
      const writer = await another();
      for (const _ of range(1, 10)) {
        const taskId = newTask();
        const follower = await following(log, taskId, 'new');
        await appendRun(writer, taskId, { from: 1, to: 1 });
        await follower.has(1);
        assert.deepEqual(await follower.stop(), [1]);
      }
    },
  },
  {
    name: 'records appended while the connection was cut are read after the reconnect',
    async run({ log, another, cut }) {
      const taskId = newTask();
      const writer = await another();
      const seqs = await appendRun(writer, taskId, { from: 1, to: 3 });
      const follower = await following(log, taskId, 0);
      await follower.has(3);
      await cut(async () => {
        seqs.push(...(await appendRun(writer, taskId, { from: 4, to: 6, startSeq: seqs[0]!, expected: seqs.at(-1)! })));
      });
      await follower.has(6);
      await appendRun(writer, taskId, { from: 7, to: 8, startSeq: seqs[0]!, expected: seqs.at(-1)! });
      await follower.has(8);
      assert.deepEqual(await follower.stop(), range(1, 8));
    },
  },
];
