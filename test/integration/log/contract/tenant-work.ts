import assert from 'node:assert/strict';
import { type Owner, type Role, tenantQueueOf } from '@hopline/events';
import { type Job, type Log, LogFull, ROOM_READ_MS, TENANT_SLOTS_SHARE_DEFAULT, TenantFull } from '@hopline/log';
import { workItem } from '@hopline/log/test-kit';
import { until } from '../../../kit/until.ts';
import { type Case, CONTRACT_TENANT_ITEMS_MAX, newTask, pause, range } from './log-under-test.ts';
import { newRole, untilAborted, worker } from './worker.ts';

const SLOTS = 8;
const SHARE = SLOTS * TENANT_SLOTS_SHARE_DEFAULT;

/** Owners in different queues: one of them floods, the other asks once. */
const NOISY: Owner = { tenant: 'noisy', subject: 's' };
const QUIET: Owner = range(1, 100)
  .map(n => ({ tenant: `quiet-${n}`, subject: 's' }))
  .find(owner => tenantQueueOf(owner) !== tenantQueueOf(NOISY))!;

async function request(log: Log, role: Role, owner: Owner | undefined, count = 1): Promise<void> {
  for (const taskId of range(1, count).map(newTask))
    await log.work.request(role, { ...workItem(taskId), ...(owner && { owner }) }, { id: taskId });
}

/** A worker whose items run until they are ended. */
function holder(log: Log, role: Role, slots: number) {
  const running: { tenant: string | undefined; end: () => void }[] = [];
  const begun: (string | undefined)[] = [];
  const taker = worker(log, role, slots, async ({ work }) => {
    const { promise, resolve } = Promise.withResolvers<void>();
    const item = { tenant: work.owner?.tenant, end: resolve };
    running.push(item);
    begun.push(item.tenant);
    await promise;
    running.splice(running.indexOf(item), 1);
  });
  const of = (owner: Owner | undefined) => running.filter(({ tenant }) => tenant === owner?.tenant);
  return {
    begun,
    running,
    of,
    stop: async () => {
      const stopped = taker.stop();
      await until(() => {
        for (const { end } of running) end();
        return running.length === 0;
      }, 'the end of all items');
      await stopped;
    },
  };
}

export const tenantWorkCases: Case[] = [
  {
    name: 'one tenant takes at most its share of the slots, and the item of another runs at once beside its flood',
    async run({ log }) {
      const role = newRole();
      await request(log, role, NOISY, 3 * SLOTS);
      const taker = holder(log, role, SLOTS);
      await until(() => taker.of(NOISY).length === SHARE, 'the share of the noisy tenant');
      await request(log, role, QUIET);
      await until(() => taker.of(QUIET).length === 1, 'the item of the quiet tenant');
      await pause(200);
      assert.equal(taker.of(NOISY).length, SHARE);
      await taker.stop();
    },
  },
  {
    name: 'items without an owner may take all slots',
    async run({ log }) {
      const role = newRole();
      await request(log, role, undefined, SLOTS);
      const taker = holder(log, role, SLOTS);
      await until(() => taker.running.length === SLOTS, 'an item in each slot');
      await taker.stop();
    },
  },
  {
    name: 'tenants take turns on one slot: one item does not wait for all that another tenant queued before it',
    async run({ log }) {
      const role = newRole();
      const flood = 30;
      await request(log, role, NOISY, flood);
      const taker = holder(log, role, 1);
      await until(() => taker.running.length === 1, 'the first item');
      await request(log, role, QUIET);
      while (!taker.begun.includes(QUIET.tenant)) {
        const count = taker.begun.length;
        assert.ok(count < flood, 'the quiet tenant waited for the whole flood');
        taker.running[0]!.end();
        await until(() => taker.begun.length > count, 'the next item');
      }
      await taker.stop();
    },
  },
  {
    name: 'items of many tenants that are delivered at once run in the slots there are, and those that wait at a stop use no attempt',
    async run({ log, another }) {
      const role = newRole();
      const queues = new Map(range(1, 100).map(n => [tenantQueueOf({ tenant: `t-${n}`, subject: 's' }), `t-${n}`]));
      const owners = [...queues.values()].map(tenant => ({ tenant, subject: 's' }));
      const abort = new AbortController();
      // A worker serves a queue from its first item on, so each queue gets an item that ends at once.
      let [opened, isHolding] = [0, false];
      const begun: string[] = [];
      const stopped = log.work.take(role, { slots: 2, signal: abort.signal }, async ({ work }) => {
        if (!isHolding) {
          opened += 1;
          return;
        }
        begun.push(work.taskId);
        await untilAborted(abort.signal);
      });
      await Promise.all(owners.map(owner => request(log, role, owner)));
      await until(() => opened === owners.length, 'an item of each queue');
      // By now the worker waits for each of the queues.
      await pause(500);
      isHolding = true;
      await Promise.all(owners.map(owner => request(log, role, owner)));
      await until(() => begun.length >= 2, 'an item in each slot');
      await pause(150);
      assert.equal(begun.length, 2);
      abort.abort();
      await stopped;
      const jobs: Job[] = [];
      const taker = worker(await another(), role, owners.length, async job => void jobs.push(job));
      await until(() => jobs.length === owners.length, 'all items');
      await taker.stop();
      for (const { work, attempt, requeues } of jobs)
        if (!begun.includes(work.taskId)) assert.equal(attempt - requeues, 1, 'an item that waited');
    },
  },
  {
    name: 'an item goes to the worker that has a slot, not to one that asked for it and is busy by now',
    async run({ log, another }) {
      const role = newRole();
      const busy = holder(log, role, 1);
      await pause(200);
      await request(log, role, undefined);
      await until(() => busy.running.length === 1, 'the item of the busy worker');
      const free = holder(await another(), role, SLOTS);
      // The worker withdraws its requests.
      await pause(700);
      await request(log, role, QUIET, 4);
      await until(() => free.running.length === 4, 'all items in the other worker');
      await busy.stop();
      await free.stop();
    },
  },
  {
    name: 'a task of a tenant has an item while it waits',
    async run({ log }) {
      const [role, taskId] = [newRole(), newTask()];
      assert.equal(await log.work.hasItem(role, taskId), false);
      await log.work.request(role, { ...workItem(taskId), owner: NOISY }, { id: taskId });
      assert.deepEqual([await log.work.hasItem(role, taskId), await log.work.hasItem(role, newTask())], [true, false]);
    },
  },
  {
    name: 'a tenant has room for its items up to its bound, whatever others have',
    async run({ log }) {
      const role = newRole();
      const roomOf = async (owner: Owner | undefined) => {
        // The answer may be as old as this.
        await pause(ROOM_READ_MS);
        return log.work.requireRoom(role, owner).then(
          () => 'room',
          error => (error instanceof TenantFull ? 'tenant full' : error instanceof LogFull ? 'full' : String(error)),
        );
      };
      await request(log, role, undefined, 2);
      await request(log, role, NOISY, CONTRACT_TENANT_ITEMS_MAX - 1);
      assert.equal(await roomOf(NOISY), 'room');
      await request(log, role, NOISY);
      assert.equal(await roomOf(NOISY), 'tenant full');
      assert.deepEqual([await roomOf(QUIET), await roomOf(undefined)], ['room', 'room']);
    },
  },
];
