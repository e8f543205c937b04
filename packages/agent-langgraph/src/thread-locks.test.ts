import assert from 'node:assert/strict';
import { getEventListeners } from 'node:events';
import { test } from 'node:test';
import { ThreadLocks } from './thread-locks.ts';

const never = new AbortController().signal;

test('a turn canceled while it waits does not let the next turn overtake the running one', async () => {
  const locks = new ThreadLocks();
  const order: string[] = [];
  const release = await locks.lock('t', never);
  const stop = new AbortController();
  const cancelled = locks.lock('t', stop.signal);
  stop.abort();
  (await cancelled)();
  const next = locks.lock('t', never).then(done => {
    order.push('next');
    return done;
  });
  await locks.lock('other', never);
  await new Promise(resolve => setImmediate(resolve));
  order.push('first ends');
  release();
  (await next)();
  assert.deepEqual(order, ['first ends', 'next']);
});

test('turns of one thread run one after the other and leave no listener behind', async () => {
  const locks = new ThreadLocks();
  const { signal } = new AbortController();
  const order: number[] = [];
  const turns = [1, 2, 3].map(async turn => {
    const release = await locks.lock('t', signal);
    order.push(turn);
    await new Promise(resolve => setImmediate(resolve));
    order.push(turn);
    release();
  });
  await Promise.all(turns);
  assert.deepEqual(order, [1, 1, 2, 2, 3, 3]);
  assert.equal(getEventListeners(signal, 'abort').length, 0);
});
