import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Semaphore } from './semaphore.ts';

const never = new AbortController().signal;
const tick = () => new Promise(resolve => setImmediate(resolve));

test('slots are bounded, granted in order, and released once', async () => {
  const semaphore = new Semaphore(2);
  const [first, second] = [await semaphore.acquire(never), await semaphore.acquire(never)];
  const acquired: number[] = [];
  const releases = [3, 4, 5].map(n =>
    semaphore.acquire(never).then(release => {
      acquired.push(n);
      return release!;
    }),
  );
  await tick();
  assert.deepEqual(acquired, []);
  first!();
  first!();
  await tick();
  assert.deepEqual(acquired, [3]);
  second!();
  await tick();
  assert.deepEqual(acquired, [3, 4]);
  (await releases[0]!)();
  (await releases[2]!)();
  assert.deepEqual(acquired, [3, 4, 5]);
  (await releases[1]!)();
  for (let slot = 1; slot <= 2; slot += 1)
    assert.ok(await semaphore.acquire(AbortSignal.timeout(10_000)), 'a slot is free again');
});

test('a request that is aborted while waiting takes no slot', async () => {
  const semaphore = new Semaphore(1);
  const release = await semaphore.acquire(never);
  const abort = new AbortController();
  const aborted = semaphore.acquire(abort.signal);
  const next = semaphore.acquire(never);
  abort.abort();
  assert.equal(await aborted, undefined);
  release!();
  assert.ok(await next);
  assert.equal(await semaphore.acquire(AbortSignal.abort()), undefined);
});
