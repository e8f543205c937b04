import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Arrivals } from './arrivals.ts';

async function all<T>(arrivals: Arrivals<T>): Promise<T[]> {
  const items: T[] = [];
  for (let some = await arrivals.next(); some !== undefined; some = await arrivals.next()) items.push(...some);
  return items;
}

test('items that are available together come in one array, a later item in another', async () => {
  const late = Promise.withResolvers<void>();
  const stream = new ReadableStream<number>({
    async start(controller) {
      for (const item of [1, 2, 3]) controller.enqueue(item);
      await late.promise;
      controller.enqueue(4);
      controller.close();
    },
  });
  const arrivals = new Arrivals(stream);
  assert.deepEqual(await arrivals.next(), [1, 2, 3]);
  late.resolve();
  assert.deepEqual(await all(arrivals), [4]);
});

test('every item arrives in order, however many there are, and a slow reader stops the source', async () => {
  let pulled = 0;
  const stream = new ReadableStream<number>({
    pull(controller) {
      if (pulled === 10_000) controller.close();
      else controller.enqueue(pulled++);
    },
  });
  const arrivals = new Arrivals(stream);
  const first = (await arrivals.next())!;
  for (let turn = 0; turn < 20; turn += 1) await new Promise(resolve => setImmediate(resolve));
  assert.ok(pulled < 4_000, `${pulled} items were read ahead`);
  const items = [...first, ...(await all(arrivals))];
  assert.deepEqual(
    items,
    Array.from({ length: 10_000 }, (_, index) => index),
  );
});

test('an error is thrown after the items that arrived before it', async () => {
  const failing = async function* () {
    yield 1;
    yield 2;
    throw new Error('broken');
  };
  const arrivals = new Arrivals(ReadableStream.from(failing()) as ReadableStream<number>);
  const items: number[] = [];
  await assert.rejects(async () => {
    for (let some = await arrivals.next(); some !== undefined; some = await arrivals.next()) items.push(...some);
  }, /broken/);
  assert.deepEqual(items, [1, 2]);
});

test('a wait ends when the stream is cancelled, and the source receives the reason', async () => {
  let reason: unknown;
  const stream = new ReadableStream<number>({
    cancel: why => {
      reason = why;
    },
  });
  const arrivals = new Arrivals(stream);
  const next = arrivals.next();
  await arrivals.cancel('enough');
  assert.equal(await next, undefined);
  assert.equal(reason, 'enough');
});
