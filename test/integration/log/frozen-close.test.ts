import assert from 'node:assert/strict';
import { test } from 'node:test';
import { LogUnavailable } from '@hopline/log';
import { inputRecord, workItem } from '@hopline/log/test-kit';
import { openJetStreamLog } from '@hopline/log-jetstream';
import { startNats } from '../../support/nats/nats-server.ts';

test('workers, readers and views end when their log is closed, although NATS answers nothing', { timeout: 120_000 }, async t => {
  const nats = await startNats();
  t.after(() => {
    nats.resume();
    return nats.stop();
  });
  const log = await openJetStreamLog({ servers: nats.url, name: 'frozen', shards: 1 });
  const never = new AbortController().signal;
  const [taken, read, ready] = [Promise.withResolvers<void>(), Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const taking = log.work.take('supervisor', { slots: 1, signal: never }, async () => taken.resolve());
  const reading = (async () => {
    for await (const _ of log.inputs.readShard(0, 1, never)) read.resolve();
  })();
  const watching = (async () => {
    for await (const { type } of log.leases.watch(never)) if (type === 'ready') ready.resolve();
  })();
  const ends = Promise.allSettled([taking, reading, watching]);
  await log.work.request('supervisor', workItem('t'), { id: 't:1' });
  await log.inputs.append('t', inputRecord(1), { id: 't:1' });
  await Promise.all([taken.promise, read.promise, ready.promise]);
  nats.pause();
  await log.close();
  const [worker, ...readers] = await ends;
  assert.equal(worker.status, 'fulfilled');
  for (const reader of readers) assert.ok(reader.status === 'rejected' && reader.reason instanceof LogUnavailable);
});
