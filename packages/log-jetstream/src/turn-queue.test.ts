import assert from 'node:assert/strict';
import { test } from 'node:test';
import { LoopTurns, type Party, PartySlots, TurnQueue } from './turn-queue.ts';

/** Lets all queued promise callbacks run. */
const settle = () => new Promise<void>(resolve => setImmediate(resolve));

test('parties take turns, however many readers of each wait', () => {
  const queue = new TurnQueue();
  const order: string[] = [];
  const wait = (party: Party, name: string) => queue.push(party, () => order.push(name));
  for (let n = 1; n <= 5; n += 1) wait('b', `b${n}`);
  wait('a', 'a1');
  wait(undefined, 'own1');
  wait('a', 'a2');
  for (let next = queue.shift(); next !== undefined; next = queue.shift()) next.grant();
  assert.deepEqual(order, ['b1', 'a1', 'own1', 'b2', 'a2', 'b3', 'b4', 'b5']);
});

test('a party that may not take its turn yet keeps its place', () => {
  const queue = new TurnQueue();
  for (const party of ['b', 'a']) queue.push(party, () => {});
  assert.equal(queue.shift(party => party === 'a')?.party, 'a');
  assert.equal(
    queue.shift(party => party === 'a'),
    undefined,
  );
  assert.equal(queue.shift()?.party, 'b');
});

test('one party gets three of four slots; another party finds the fourth one free, and then gets every other freed slot', async () => {
  const slots = new PartySlots(4, 0.75);
  const running = new Map<string, () => void>();
  const started: string[] = [];
  const begin = (party: Party, name: string) =>
    slots.run(party, () => {
      started.push(name);
      return new Promise<void>(resolve => running.set(name, resolve));
    });
  const all = ['b1', 'b2', 'b3', 'b4', 'b5', 'b6'].map(name => begin('b', name));
  await settle();
  assert.deepEqual(started, ['b1', 'b2', 'b3']);
  all.push(begin('a', 'a1'), begin('a', 'a2'));
  await settle();
  assert.deepEqual(started.slice(3), ['a1']);
  running.get('b1')!();
  await settle();
  running.get('b2')!();
  await settle();
  assert.deepEqual(started.slice(4), ['b4', 'a2']);
  for (let done = 0; done < 2; done += 1) {
    for (const name of started) running.get(name)!();
    await settle();
  }
  assert.equal(started.length, 8);
  for (const name of started) running.get(name)!();
  await Promise.all(all);
});

test('readers without a party may take all slots, and a failed reader returns its slot', async () => {
  const slots = new PartySlots(2, 0.5);
  let running = 0;
  const task = async () => {
    running += 1;
    await settle();
    throw new Error('failed');
  };
  const both = [slots.run(undefined, task), slots.run(undefined, task)];
  await Promise.resolve();
  await Promise.resolve();
  assert.equal(running, 2);
  for (const one of both) await assert.rejects(one, /failed/);
  await slots.run('a', async () => {});
});

test('each turn of the event loop resumes one reader, and parties take turns', async () => {
  const turns = new LoopTurns();
  const order: string[] = [];
  const perLoop: number[] = [];
  const wait = async (party: string, name: string) => {
    await turns.next(party);
    order.push(name);
  };
  const all = [wait('b', 'b1'), wait('b', 'b2'), wait('b', 'b3'), wait('a', 'a1')];
  while (order.length < all.length) {
    const before = order.length;
    await settle();
    perLoop.push(order.length - before);
  }
  assert.deepEqual(order, ['b1', 'a1', 'b2', 'b3']);
  assert.ok(Math.max(...perLoop) <= 1, `${perLoop}`);
});

test('a reader that has waited too long for a slot fails, and its task never runs', async t => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const slots = new PartySlots(1, 1);
  const { promise: read, resolve: end } = Promise.withResolvers<string>();
  const ran: string[] = [];
  const run = (name: string) =>
    slots.run(
      undefined,
      () => {
        ran.push(name);
        return read;
      },
      { ms: 1_000, what: 'reading a' },
    );
  const first = run('first');
  await settle();
  const late = assert.rejects(run('late'), { name: 'LogUnavailable', message: 'reading a: earlier reads take too long' });
  t.mock.timers.tick(1_000);
  await late;
  const next = run('next');
  end('read');
  assert.deepEqual([await first, await next], ['read', 'read']);
  assert.deepEqual(ran, ['first', 'next']);
});
