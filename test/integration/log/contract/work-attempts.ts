import assert from 'node:assert/strict';
import { type Job, REDELIVERY_MS_MIN, Requeued, SETTLE_DELIVERIES_MAX, Superseded } from '@hopline/log';
import { workItem } from '@hopline/log/test-kit';
import { until } from '../../../kit/until.ts';
import {
  type Case,
  CONTRACT_ACK_WAIT_MS,
  CONTRACT_ATTEMPTS_MAX,
  CONTRACT_REQUEUES_MAX,
  newTask,
  onceWithin,
  pause,
  range,
  within,
} from './log-under-test.ts';
import { brief, newRole, untilAborted, worker } from './worker.ts';

/** Cases of how deliveries are counted: attempts, requeues, settlements. */
export const workAttemptCases: Case[] = [
  {
    name: 'a rejected item is delivered as the next attempt; after the last attempt it is delivered as exhausted and settled',
    async run({ log }) {
      const role = newRole();
      const taskId = newTask();
      const jobs: Job[] = [];
      const taker = worker(log, role, 1, async job => {
        jobs.push(job);
        if (!job.exhausted) throw new Error('rejected');
      });
      await log.work.request(role, workItem(taskId), { id: taskId });
      await until(() => jobs.some(job => job.exhausted), 'the exhausted delivery');
      await pause(CONTRACT_ACK_WAIT_MS + 200);
      await taker.stop();
      assert.deepEqual(
        jobs.map(brief),
        range(1, CONTRACT_ATTEMPTS_MAX + 1).map(attempt => ({ taskId, attempt, exhausted: attempt > CONTRACT_ATTEMPTS_MAX })),
      );
    },
  },
  {
    name: 'a rejected item waits before it is delivered again, one whose handler was superseded until its keep-alive is overdue',
    async run({ log }) {
      for (const [error, waitMs] of [
        [new Error('rejected'), REDELIVERY_MS_MIN],
        [new Superseded('another attempt'), CONTRACT_ACK_WAIT_MS],
      ] as const) {
        const role = newRole();
        const taskId = newTask();
        const ended: number[] = [];
        const begun: number[] = [];
        const taker = worker(log, role, 1, async () => {
          begun.push(performance.now());
          if (ended.push(performance.now()) === 1) throw error;
        });
        await log.work.request(role, workItem(taskId), { id: taskId });
        await until(() => begun.length === 2, 'the second delivery');
        await taker.stop();
        // The ack wait of a superseded delivery counts from its last keep-alive.
        const waitedMs = begun[1]! - ended[0]!;
        assert.ok(waitedMs >= 0.6 * waitMs, `${error.name}: after ${waitedMs} ms`);
      }
    },
  },
  {
    name: 'an exhausted item that cannot be settled is delivered again, up to a bound',
    async run({ log }) {
      const role = newRole();
      const taskId = newTask();
      const jobs: Job[] = [];
      const taker = worker(log, role, 1, async job => {
        jobs.push(job);
        throw new Error('rejected');
      });
      await log.work.request(role, workItem(taskId), { id: taskId });
      await until(() => jobs.length === CONTRACT_ATTEMPTS_MAX + SETTLE_DELIVERIES_MAX, 'all deliveries', 60_000);
      await pause(CONTRACT_ACK_WAIT_MS + 500);
      await taker.stop();
      assert.equal(jobs.length, CONTRACT_ATTEMPTS_MAX + SETTLE_DELIVERIES_MAX);
      assert.equal(jobs.filter(job => job.exhausted).length, SETTLE_DELIVERIES_MAX);
    },
  },
  {
    name: 'requeued deliveries of stopping workers do not count as attempts',
    async run({ log, another }) {
      const role = newRole();
      const taskId = newTask();
      await log.work.request(role, workItem(taskId), { id: taskId });
      for (const delivery of range(1, CONTRACT_REQUEUES_MAX)) {
        const jobs: Job[] = [];
        const process = await another();
        const stopping = worker(process, role, 1, async job => {
          jobs.push(job);
          await untilAborted(stopping.signal).catch(() => {
            throw new Requeued('stopping');
          });
        });
        await until(() => jobs.length > 0, `delivery ${delivery}`);
        await stopping.stop();
        await process.close();
        assert.deepEqual(jobs.map(brief), [{ taskId, attempt: delivery, exhausted: false }]);
        assert.equal(jobs[0]?.requeues, delivery - 1);
      }
      const failed: Job[] = [];
      const taker = worker(log, role, 1, async job => {
        failed.push(job);
        if (!job.exhausted) throw new Error('rejected');
      });
      await until(() => failed.some(job => job.exhausted), 'the exhausted delivery');
      await taker.stop();
      const failures = range(CONTRACT_REQUEUES_MAX + 1, CONTRACT_REQUEUES_MAX + CONTRACT_ATTEMPTS_MAX);
      const attempts = failures.map(attempt => ({ taskId, attempt, exhausted: false }));
      assert.deepEqual(failed.map(brief), [
        ...attempts,
        { taskId, attempt: CONTRACT_REQUEUES_MAX + CONTRACT_ATTEMPTS_MAX + 1, exhausted: true },
      ]);
    },
  },
  {
    name: 'a requeued item is delivered at once; beyond the bound each requeue counts as an attempt',
    async run({ log }) {
      const last = CONTRACT_ATTEMPTS_MAX + CONTRACT_REQUEUES_MAX;
      await onceWithin(CONTRACT_ACK_WAIT_MS, 'all deliveries, without the wait of a rejection', async () => {
        const role = newRole();
        const taskId = newTask();
        const jobs: Job[] = [];
        const taker = worker(log, role, 1, async job => {
          jobs.push(job);
          if (!job.exhausted) throw new Requeued('stopping');
        });
        const began = Date.now();
        await log.work.request(role, workItem(taskId), { id: taskId });
        await until(() => jobs.some(job => job.exhausted), 'the exhausted delivery');
        const tookMs = Date.now() - began;
        await taker.stop();
        assert.deepEqual(
          jobs.map(job => [job.attempt, job.requeues, job.exhausted]),
          range(1, last + 1).map(attempt => [attempt, Math.min(attempt - 1, CONTRACT_REQUEUES_MAX), attempt > last]),
        );
        return tookMs;
      });
    },
  },
  {
    name: 'requeues between crashes and rejections do not change the bound of attempts',
    async run({ log, another }) {
      const role = newRole();
      const taskId = newTask();
      await log.work.request(role, workItem(taskId), { id: taskId });
      const dying = await another();
      const died = Promise.withResolvers<void>();
      const doomed = dying.work.take(role, { slots: 1, signal: new AbortController().signal }, async () => {
        died.resolve();
        await new Promise(() => {});
      });
      doomed.catch(() => {});
      await within(died.promise, 'the first delivery');
      await dying.close();
      const jobs: Job[] = [];
      const taker = worker(log, role, 1, async job => {
        jobs.push(job);
        if (job.exhausted) return;
        throw job.attempt === 3 ? new Error('rejected') : new Requeued('stopping');
      });
      await until(() => jobs.some(job => job.exhausted), 'the exhausted delivery');
      await taker.stop();
      assert.equal(CONTRACT_ATTEMPTS_MAX, 2, 'one crash, one rejection');
      assert.deepEqual(
        jobs.map(job => [job.attempt, job.requeues, job.exhausted]),
        [
          [2, 0, false],
          [3, 1, false],
          [4, 1, true],
        ],
      );
    },
  },
  {
    name: 'the item of a dead process is delivered to another, as the next attempt',
    async run({ log, another }) {
      const role = newRole();
      const taskId = newTask();
      const dying = await another();
      const died = Promise.withResolvers<void>();
      const doomed = dying.work.take(role, { slots: 1, signal: new AbortController().signal }, async () => {
        died.resolve();
        await new Promise(() => {});
      });
      doomed.catch(() => {});
      await log.work.request(role, workItem(taskId), { id: taskId });
      await within(died.promise, 'the first delivery');
      await dying.close();
      const jobs: Job[] = [];
      const taker = worker(log, role, 1, async job => void jobs.push(job));
      await until(() => jobs.length > 0, 'the second delivery');
      await taker.stop();
      assert.deepEqual(jobs.map(brief), [{ taskId, attempt: 2, exhausted: false }]);
    },
  },
];
