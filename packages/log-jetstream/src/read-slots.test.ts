import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { ReadSlots } from './read-slots.ts';

const MIB = 1024 * 1024;

/** The number of concurrent reads of each stream, when 20 of each stream wait. */
async function atOnce(reads: ReadSlots, ...streams: string[]): Promise<Map<string, number>> {
  const begun = new Map<string, number>();
  const answered = Promise.withResolvers<void>();
  const all = streams.flatMap(stream =>
    Array.from({ length: 20 }, () =>
      reads.run(stream, () => {
        begun.set(stream, (begun.get(stream) ?? 0) + 1);
        return answered.promise;
      }),
    ),
  );
  await new Promise(resolve => setImmediate(resolve));
  const counted = new Map(begun);
  answered.resolve();
  await Promise.all(all);
  return counted;
}

test('the larger the recent answers were, the fewer reads are in progress at once', async () => {
  const reads = new ReadSlots();
  assert.deepEqual(await atOnce(reads, 'a'), new Map([['a', 12]]));
  reads.received(4 * MIB);
  assert.deepEqual(await atOnce(reads, 'a'), new Map([['a', 3]]));
  for (let n = 0; n < 200; n += 1) reads.received(1_000);
  assert.deepEqual(await atOnce(reads, 'a'), new Map([['a', 12]]));
});

test('a stream that does not answer does not use up the reads of others, however large the records are', async () => {
  const reads = new ReadSlots();
  reads.received(64 * MIB);
  const begun = await atOnce(reads, 'a', 'b');
  assert.deepEqual(
    begun,
    new Map([
      ['a', 1],
      ['b', 1],
    ]),
  );
});

test('a read that has waited too long for its turn fails, and its request is never sent', async () => {
  const reads = new ReadSlots();
  const answered = Promise.withResolvers<string>();
  const all = Array.from({ length: 12 }, () => reads.run('a', () => answered.promise, 60_000));
  let sent = 0;
  const send = async () => {
    sent += 1;
    return 'sent';
  };
  await assert.rejects(reads.run('a', send, 1), {
    name: 'LogUnavailable',
    message: 'reading a: earlier reads take too long',
  });
  const next = reads.run('a', send, 60_000);
  answered.resolve('answered');
  assert.deepEqual([...(await Promise.all(all)), await next], [...Array(12).fill('answered'), 'sent']);
  await sleep(0);
  assert.equal(sent, 1);
});
