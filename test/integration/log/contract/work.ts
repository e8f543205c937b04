import assert from 'node:assert/strict';
import type { Role } from '@hopline/events';
import { type Job, LogFull, newestForWork, ROOM_READ_MS, WORK_NEWEST_BYTES_MAX, WORK_NEWEST_MS_MAX } from '@hopline/log';
import { factRecord, workItem } from '@hopline/log/test-kit';
import { until } from '../../../kit/until.ts';
import {
  type Case,
  CONTRACT_ACK_WAIT_MS,
  CONTRACT_ROLE_ITEMS_MAX,
  newTask,
  onceWithin,
  passesOnce,
  pause,
  range,
  TRACE,
  within,
} from './log-under-test.ts';
import { brief, dataOf, newRole, untilAborted, worker } from './worker.ts';

export const workCases: Case[] = [
  {
    name: 'an item waits until a worker takes it, and is delivered with payload, trace and attempt',
    async run({ log }) {
      const role = newRole();
      const work = workItem(newTask());
      await log.work.request(role, work, { id: work.taskId, trace: TRACE });
      await pause(50);
      const jobs: Job[] = [];
      const taker = worker(log, role, 1, async job => void jobs.push(dataOf(job)));
      await until(() => jobs.length > 0, 'the item');
      await taker.stop();
      const [item] = jobs.map(job => job.item);
      assert.ok(Number.isInteger(item) && item! > 0);
      assert.deepEqual(jobs, [{ work, item, attempt: 1, requeues: 0, exhausted: false, trace: TRACE }]);
    },
  },
  {
    name: 'the answer to a request names an id that the queue knows, even if its item is done',
    async run({ log }) {
      const role = newRole();
      const work = workItem(newTask());
      const request = () => log.work.request(role, work, { id: work.taskId });
      assert.deepEqual([await request(), await request()], [{ duplicate: false }, { duplicate: true }]);
      const taker = worker(log, role, 1, async () => {});
      await until(async () => !(await log.work.hasItem(role, work.taskId)), 'the end of the item');
      await taker.stop();
      assert.deepEqual(await request(), { duplicate: true });
    },
  },
  {
    name: 'a worker takes no items while its gate is closed, and other workers do; it runs those that it has',
    async run({ log }) {
      const role = newRole();
      const [first, second, third] = [newTask(), newTask(), newTask()];
      const listeners = new Set<() => void>();
      let isOpen = true;
      const gate = {
        get isOpen() {
          return isOpen;
        },
        listen: (listener: () => void) => {
          listeners.add(listener);
          return () => listeners.delete(listener);
        },
      };
      const set = (open: boolean) => {
        isOpen = open;
        for (const listener of listeners) listener();
      };
      const taken: string[] = [];
      const run = async ({ work }: Job) => {
        taken.push(work.taskId);
        if (work.taskId !== first) return;
        set(false);
        // Longer than a pull lasts after the gate has closed.
        await pause(500);
      };
      const taker = worker(log, role, 4, run, gate);
      await log.work.request(role, workItem(first), { id: first });
      await until(async () => !(await log.work.hasItem(role, first)), 'the end of the first item');
      await log.work.request(role, workItem(second), { id: second });
      const others: string[] = [];
      const other = worker(log, role, 1, async ({ work }) => void others.push(work.taskId));
      await until(() => others.includes(second), 'the other worker');
      await other.stop();
      await log.work.request(role, workItem(third), { id: third });
      await pause(300);
      assert.deepEqual(taken, [first]);
      set(true);
      await until(() => taken.includes(third), 'the item after the gate has opened');
      await taker.stop();
      assert.equal(listeners.size, 0);
    },
  },
  {
    name: 'an item whose handler has left its slot stays until the handler ends, and another one runs meanwhile',
    async run({ log }) {
      const role = newRole();
      const [first, second] = [newTask(), newTask()];
      await log.work.request(role, workItem(first), { id: first });
      await log.work.request(role, workItem(second), { id: second });
      const confirmed = Promise.withResolvers<void>();
      const taken: string[] = [];
      const taker = worker(log, role, 1, async ({ work, leaveSlot }) => {
        taken.push(work.taskId);
        if (work.taskId !== first) return;
        await pause(100);
        assert.deepEqual(taken, [first], 'the slot is taken');
        leaveSlot?.();
        await confirmed.promise;
      });
      await until(() => taken.includes(second), 'the other item');
      await pause(CONTRACT_ACK_WAIT_MS * 2);
      assert.deepEqual([taken, await log.work.hasItem(role, first)], [[first, second], true]);
      confirmed.resolve();
      await until(async () => !(await log.work.hasItem(role, first)), 'the end of the first item');
      await taker.stop();
    },
  },
  {
    name: 'the record known to the requester comes with the first delivery of a fresh item, not with the next one',
    async run({ log }) {
      const role = newRole();
      const newestOf = (taskId: string, text = '') => {
        const { aggregate, ...record } = factRecord(taskId, 1, 0);
        return { seq: 7, record: { ...record, aggregate: { ...aggregate, at: Date.now(), messageIds: [text] } } };
      };
      assert.deepEqual(newestForWork(newestOf(newTask(), 'x'.repeat(WORK_NEWEST_BYTES_MAX))), {});
      const jobs: { job: Job; at: number }[] = [];
      const taker = worker(log, role, 1, async job => {
        jobs.push({ job, at: Date.now() });
        if (job.attempt === 1) throw new Error('once more');
      });
      await onceWithin(WORK_NEWEST_MS_MAX, 'the delivery of a fresh item', async () => {
        const taskId = newTask();
        const newest = newestOf(taskId);
        await log.work.request(role, { ...workItem(taskId), ...newestForWork(newest) }, { id: taskId });
        const deliveries = () => jobs.filter(({ job }) => job.work.taskId === taskId);
        await until(() => deliveries().length > 1, 'both deliveries');
        const [first, second] = deliveries();
        const ageMs = first!.at - newest.record.aggregate.at;
        if (ageMs < WORK_NEWEST_MS_MAX) assert.deepEqual(first!.job.newest, newest);
        assert.equal(second!.job.newest, undefined);
        return ageMs;
      });
      await taker.stop();
    },
  },
  {
    name: 'each item is delivered to one worker of its role, once; the same id is queued once',
    async run({ log, another }) {
      const [role, otherRole] = [newRole(), newRole()];
      const taskIds = range(1, 30).map(newTask);
      const got: string[] = [];
      const takers = [log, await another()].map(process =>
        worker(process, role, 4, async ({ work }) => void got.push(work.taskId)),
      );
      const otherGot: string[] = [];
      const other = worker(log, otherRole, 1, async ({ work }) => void otherGot.push(work.taskId));
      for (const taskId of taskIds) {
        await log.work.request(role, workItem(taskId), { id: taskId });
        await log.work.request(role, workItem(taskId), { id: taskId });
      }
      await until(() => got.length >= taskIds.length, 'all items');
      await pause(100);
      await Promise.all([...takers.map(taker => taker.stop()), other.stop()]);
      assert.deepEqual(got.toSorted(), taskIds.toSorted());
      assert.deepEqual(otherGot, []);
    },
  },
  {
    name: 'a worker takes as many items as it has slots; another worker takes the others',
    async run({ log, another }) {
      const role = newRole();
      const taskIds = range(1, 5).map(newTask);
      const gate = Promise.withResolvers<void>();
      const busy: string[] = [];
      const first = worker(log, role, 3, async ({ work }) => {
        busy.push(work.taskId);
        await gate.promise;
      });
      for (const taskId of taskIds) await log.work.request(role, workItem(taskId), { id: taskId });
      await until(() => busy.length === 3, 'three running items');
      const rest: Job[] = [];
      const second = worker(await another(), role, 5, async job => void rest.push(job));
      await until(() => rest.length === 2, 'the other two');
      assert.deepEqual([rest[0]!.attempt, rest[1]!.attempt], [1, 1], 'they were not delivered to the busy worker');
      assert.equal(busy.length, 3);
      gate.resolve();
      await Promise.all([first.stop(), second.stop()]);
      assert.deepEqual([...busy, ...rest.map(({ work }) => work.taskId)].toSorted(), taskIds.toSorted());
    },
  },
  {
    name: 'a long job is kept alive and not delivered again',
    async run({ log, another }) {
      const other = await another();
      await passesOnce(async () => {
        const role = newRole();
        const taskId = newTask();
        const jobs: Job[] = [];
        const handler = async (job: Job) => {
          jobs.push(job);
          await pause(2.5 * CONTRACT_ACK_WAIT_MS);
        };
        const takers = [worker(log, role, 1, handler), worker(other, role, 1, handler)];
        await log.work.request(role, workItem(taskId), { id: taskId });
        await pause(3 * CONTRACT_ACK_WAIT_MS);
        await Promise.all(takers.map(taker => taker.stop()));
        assert.deepEqual(jobs.map(brief), [{ taskId, attempt: 1, exhausted: false }]);
      });
    },
  },
  {
    name: 'a stopping worker requeues its items at once and takes no more',
    async run({ log, another }) {
      const other = await another();
      const requeued = async () => {
        const role = newRole();
        const taskIds = range(1, 3).map(newTask);
        const stopping: string[] = [];
        const first = worker(log, role, 2, async ({ work }) => {
          stopping.push(work.taskId);
          await untilAborted(first.signal);
        });
        for (const taskId of taskIds) await log.work.request(role, workItem(taskId), { id: taskId });
        await until(() => stopping.length === 2, 'two running items');
        const jobs: Job[] = [];
        const second = worker(other, role, 3, async job => void jobs.push(job));
        await until(() => jobs.length === 1, 'the third item');
        const began = Date.now();
        await first.stop();
        await until(() => jobs.length === 3, 'the requeued items');
        const tookMs = Date.now() - began;
        const late = newTask();
        await log.work.request(role, workItem(late), { id: late });
        await until(() => jobs.length === 4, 'an item queued after the stop');
        await second.stop();
        assert.equal(stopping.length, 2);
        assert.deepEqual(jobs.map(job => job.attempt).toSorted(), [1, 1, 2, 2]);
        return tookMs;
      };
      await passesOnce(() => onceWithin(CONTRACT_ACK_WAIT_MS / 2, 'the requeued items', requeued));
    },
  },
  {
    name: 'take ends when the running handlers have settled, and their finished items are done',
    async run({ log }) {
      await passesOnce(async () => {
        const role = newRole();
        const taskId = newTask();
        let finished = false;
        const running = Promise.withResolvers<void>();
        const taker = worker(log, role, 1, async () => {
          running.resolve();
          await pause(200);
          finished = true;
        });
        await log.work.request(role, workItem(taskId), { id: taskId });
        await within(running.promise, 'the item');
        await taker.stop();
        assert.equal(finished, true);
        const again: Job[] = [];
        const next = worker(log, role, 1, async job => void again.push(job));
        await pause(CONTRACT_ACK_WAIT_MS + 300);
        await next.stop();
        assert.deepEqual(again, []);
      });
    },
  },
  {
    name: 'there is room for a role up to its bound of items, whatever other roles have, and again after items are done',
    async run({ log }) {
      const [role, other] = [newRole(), newRole()];
      const hasRoom = async (of: Role) => {
        // The answer may be as old as this.
        await pause(ROOM_READ_MS);
        return log.work.requireRoom(of).then(
          () => true,
          error => {
            assert.ok(error instanceof LogFull, String(error));
            return false;
          },
        );
      };
      for (let items = 1; items <= CONTRACT_ROLE_ITEMS_MAX; items += 1) {
        if (items === CONTRACT_ROLE_ITEMS_MAX) assert.equal(await hasRoom(role), true);
        const taskId = newTask();
        await log.work.request(role, workItem(taskId), { id: taskId });
      }
      assert.equal(await hasRoom(role), false);
      assert.equal(await hasRoom(other), true);
      let done = 0;
      const first = Promise.withResolvers<void>();
      const taker = worker(log, role, 1, async () => {
        done += 1;
        await (done === 1 ? first.promise : untilAborted(taker.signal));
      });
      await until(() => done === 1, 'the first item');
      assert.equal(await hasRoom(role), false, 'while it runs');
      first.resolve();
      await until(() => done > 1, 'one item');
      assert.equal(await hasRoom(role), true, 'after one item was done');
      await taker.stop();
    },
  },
  {
    name: 'a task has an item of a role while it waits and while it runs, not after it is done',
    async run({ log }) {
      const [role, other, taskId] = [newRole(), newRole(), newTask()];
      const has = () => log.work.hasItem(role, taskId);
      assert.equal(await has(), false);
      await log.work.request(role, workItem(taskId), { id: taskId });
      assert.equal(await has(), true, 'while it waits');
      assert.deepEqual([await log.work.hasItem(other, taskId), await log.work.hasItem(role, newTask())], [false, false]);
      const running = Promise.withResolvers<boolean>();
      const taker = worker(log, role, 1, async () => running.resolve(await has()));
      assert.equal(await running.promise, true, 'while it runs');
      await until(async () => !(await has()), 'the end of the item');
      await taker.stop();
    },
  },
  {
    name: 'a role or task id that is not a subject token throws TypeError',
    async run({ log }) {
      const signal = AbortSignal.abort();
      for (const role of ['agent.', 'agent.A', 'agent.a.b', 'unknown'] as Role[]) {
        await assert.rejects(log.work.request(role, workItem(newTask()), { id: 'x' }), TypeError);
        await assert.rejects(
          log.work.take(role, { slots: 1, signal }, async () => {}),
          TypeError,
        );
      }
      await assert.rejects(log.work.request('supervisor', workItem('a.b'), { id: 'x' }), TypeError);
    },
  },
];
