import assert from 'node:assert/strict';
import type { Role } from '@hopline/events';
import { HandedBack } from '../errors.ts';
import type { Log } from '../log.ts';
import { type Job, SETTLE_DELIVERIES_MAX } from '../work-queue.ts';
import {
  type Case,
  CONTRACT_ACK_WAIT_MS,
  CONTRACT_ATTEMPTS_MAX,
  CONTRACT_HAND_BACKS_MAX,
  newTask,
  pause,
  range,
  TRACE,
  until,
  within,
  workItem,
} from './log-under-test.ts';

let roles = 0;
const newRole = (): Role => {
  roles += 1;
  return `agent.contract-${roles}`;
};

/** Takes items in the background until stopped. */
function worker(log: Log, role: Role, slots: number, handler: (job: Job) => Promise<void>) {
  const abort = new AbortController();
  const ended = log.work.take(role, { slots, signal: abort.signal }, handler);
  return {
    signal: abort.signal,
    stop() {
      abort.abort();
      return within(ended, 'the end of the worker');
    },
  };
}

/** Fails when it is told to stop, as a handler that gives its item back does. */
function untilAborted(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    const stop = () => reject(new Error('stopped'));
    if (signal.aborted) stop();
    signal.addEventListener('abort', stop, { once: true });
  });
}

const brief = ({ work, attempt, exhausted }: Job) => ({ taskId: work.taskId, attempt, exhausted });

export const workCases: Case[] = [
  {
    name: 'an item waits while nobody takes it, and comes with its payload, trace and attempt',
    async run({ log }) {
      const role = newRole();
      const work = workItem(newTask());
      await log.work.request(role, work, { id: work.taskId, trace: TRACE });
      await pause(50);
      const jobs: Job[] = [];
      const taker = worker(log, role, 1, async job => void jobs.push(job));
      await until(() => jobs.length > 0, 'the item');
      await taker.stop();
      assert.deepEqual(jobs, [{ work, attempt: 1, handedBack: 0, exhausted: false, trace: TRACE }]);
    },
  },
  {
    name: 'each item goes to one worker, once; roles are apart; the same id is queued once',
    async run({ log, another }) {
      const [role, otherRole] = [newRole(), newRole()];
      const taskIds = range(1, 30).map(newTask);
      const got: string[] = [];
      const takers = [log, await another()].map(process =>
        worker(process, role, 4, async ({ work }) => void got.push(work.taskId)),
      );
      const strangers: string[] = [];
      const stranger = worker(log, otherRole, 1, async ({ work }) => void strangers.push(work.taskId));
      for (const taskId of taskIds) {
        await log.work.request(role, workItem(taskId), { id: taskId });
        await log.work.request(role, workItem(taskId), { id: taskId });
      }
      await until(() => got.length >= taskIds.length, 'all items');
      await pause(100);
      await Promise.all([...takers.map(taker => taker.stop()), stranger.stop()]);
      assert.deepEqual(got.toSorted(), taskIds.toSorted());
      assert.deepEqual(strangers, []);
    },
  },
  {
    name: 'a worker runs as many items as it has slots and holds no more: another takes what it cannot',
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
      const rest: string[] = [];
      const began = Date.now();
      const second = worker(await another(), role, 5, async ({ work }) => void rest.push(work.taskId));
      await until(() => rest.length === 2, 'the other two');
      assert.ok(Date.now() - began < CONTRACT_ACK_WAIT_MS, 'nobody had held them');
      assert.equal(busy.length, 3);
      gate.resolve();
      await Promise.all([first.stop(), second.stop()]);
      assert.deepEqual([...busy, ...rest].toSorted(), taskIds.toSorted());
    },
  },
  {
    name: 'a rejected item comes again as the next attempt; when attempts are used up it comes as exhausted, and is settled',
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
    name: 'an exhausted item that cannot be settled comes again, but not for ever',
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
    name: 'workers that hand an item back in order use up no attempt, however many of them stop one after the other',
    async run({ log, another }) {
      const role = newRole();
      const taskId = newTask();
      await log.work.request(role, workItem(taskId), { id: taskId });
      for (const delivery of range(1, CONTRACT_HAND_BACKS_MAX)) {
        const jobs: Job[] = [];
        const process = await another();
        const stopping = worker(process, role, 1, async job => {
          jobs.push(job);
          await untilAborted(stopping.signal).catch(() => {
            throw new HandedBack('stopping');
          });
        });
        await until(() => jobs.length > 0, `delivery ${delivery}`);
        await stopping.stop();
        await process.close();
        assert.deepEqual(jobs.map(brief), [{ taskId, attempt: delivery, exhausted: false }]);
        assert.equal(jobs[0]?.handedBack, delivery - 1);
      }
      const rest: Job[] = [];
      const taker = worker(log, role, 1, async job => {
        rest.push(job);
        if (!job.exhausted) throw new Error('rejected');
      });
      await until(() => rest.some(job => job.exhausted), 'the exhausted delivery');
      await taker.stop();
      const failures = range(CONTRACT_HAND_BACKS_MAX + 1, CONTRACT_HAND_BACKS_MAX + CONTRACT_ATTEMPTS_MAX);
      const attempts = failures.map(attempt => ({ taskId, attempt, exhausted: false }));
      assert.deepEqual(rest.map(brief), [
        ...attempts,
        { taskId, attempt: CONTRACT_HAND_BACKS_MAX + CONTRACT_ATTEMPTS_MAX + 1, exhausted: true },
      ]);
    },
  },
  {
    name: 'an item is handed back at once, and not for ever: beyond the bound each hand-back is an attempt',
    async run({ log }) {
      const role = newRole();
      const taskId = newTask();
      const jobs: Job[] = [];
      const began = Date.now();
      const taker = worker(log, role, 1, async job => {
        jobs.push(job);
        if (!job.exhausted) throw new HandedBack('again');
      });
      await log.work.request(role, workItem(taskId), { id: taskId });
      await until(() => jobs.some(job => job.exhausted), 'the exhausted delivery');
      assert.ok(Date.now() - began < CONTRACT_ACK_WAIT_MS, 'nobody had waited');
      await taker.stop();
      const last = CONTRACT_ATTEMPTS_MAX + CONTRACT_HAND_BACKS_MAX;
      assert.deepEqual(
        jobs.map(job => [job.attempt, job.handedBack, job.exhausted]),
        range(1, last + 1).map(attempt => [attempt, Math.min(attempt - 1, CONTRACT_HAND_BACKS_MAX), attempt > last]),
      );
    },
  },
  {
    name: 'hand-backs between crashes and refusals change nothing about the bound of those',
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
        throw job.attempt === 3 ? new Error('rejected') : new HandedBack('stopping');
      });
      await until(() => jobs.some(job => job.exhausted), 'the exhausted delivery');
      await taker.stop();
      assert.equal(CONTRACT_ATTEMPTS_MAX, 2, 'one crash, one refusal');
      assert.deepEqual(
        jobs.map(job => [job.attempt, job.handedBack, job.exhausted]),
        [
          [2, 0, false],
          [3, 1, false],
          [4, 1, true],
        ],
      );
    },
  },
  {
    name: 'a long job is kept alive: nobody else gets it',
    async run({ log, another }) {
      const role = newRole();
      const taskId = newTask();
      const jobs: Job[] = [];
      const handler = async (job: Job) => {
        jobs.push(job);
        await pause(2.5 * CONTRACT_ACK_WAIT_MS);
      };
      const takers = [worker(log, role, 1, handler), worker(await another(), role, 1, handler)];
      await log.work.request(role, workItem(taskId), { id: taskId });
      await pause(3 * CONTRACT_ACK_WAIT_MS);
      await Promise.all(takers.map(taker => taker.stop()));
      assert.deepEqual(jobs.map(brief), [{ taskId, attempt: 1, exhausted: false }]);
    },
  },
  {
    name: 'the item of a dead process comes to another after ackWaitMs as the next attempt',
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
      const began = Date.now();
      await dying.close();
      const jobs: Job[] = [];
      const taker = worker(log, role, 1, async job => void jobs.push(job));
      await until(() => jobs.length > 0, 'the second delivery');
      assert.ok(Date.now() - began > CONTRACT_ACK_WAIT_MS / 2, 'not before the dead one could have said that it lives');
      await taker.stop();
      assert.deepEqual(jobs.map(brief), [{ taskId, attempt: 2, exhausted: false }]);
    },
  },
  {
    name: 'a worker that stops hands its items back at once and takes no more',
    async run({ log, another }) {
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
      const second = worker(await another(), role, 3, async job => void jobs.push(job));
      await until(() => jobs.length === 1, 'the third item');
      const began = Date.now();
      await first.stop();
      await until(() => jobs.length === 3, 'the items that were handed back');
      assert.ok(Date.now() - began < CONTRACT_ACK_WAIT_MS / 2, 'at once, not after ackWaitMs');
      const late = newTask();
      await log.work.request(role, workItem(late), { id: late });
      await until(() => jobs.length === 4, 'an item queued after the stop');
      await second.stop();
      assert.equal(stopping.length, 2);
      assert.deepEqual(jobs.map(job => job.attempt).toSorted(), [1, 1, 2, 2]);
    },
  },
  {
    name: 'take ends only when the running handlers have settled, and what they finish is done',
    async run({ log }) {
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
    },
  },
  {
    name: 'a role or task id that is no subject token is refused',
    async run({ log }) {
      const signal = AbortSignal.abort();
      for (const role of ['agent.', 'agent.A', 'agent.a.b', 'nobody'] as Role[]) {
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
