import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { JoinedRead } from './joined-read.ts';

test('requests that come during a read share the next one, which begins after they came', async () => {
  const reads: PromiseWithResolvers<string>[] = [];
  const joined = new JoinedRead(() => {
    const read = Promise.withResolvers<string>();
    reads.push(read);
    return read.promise;
  });
  const first = joined.read();
  const others = [joined.read(), joined.read()];
  assert.equal(reads.length, 1);
  reads[0]!.resolve('before');
  assert.equal(await first, 'before');
  await nextTurn();
  assert.equal(reads.length, 2);
  const later = joined.read();
  reads[1]!.reject(new Error('NATS is gone'));
  for (const other of others) await assert.rejects(other, /NATS is gone/);
  await nextTurn();
  reads[2]!.resolve('after');
  assert.equal(await later, 'after');
  assert.equal(reads.length, 3);
});
