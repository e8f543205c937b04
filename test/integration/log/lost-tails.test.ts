import assert from 'node:assert/strict';
import { cpSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { followBucket, type Log } from '@hopline/log';
import { inputRecord } from '@hopline/log/test-kit';
import { BUCKETS, INPUTS_STREAM, openJetStreamLog } from '@hopline/log-jetstream';
import { until } from '../../kit/until.ts';
import { startNatsProxy } from '../../support/nats/nats-proxy.ts';
import { startNats } from '../../support/nats/nats-server.ts';

/**
 * A loss of power of the only nats-server, modelled by its effect on one stream: the server is killed, and the directory of the stream is put back as it
 * was. Other clients then write as many messages as were lost, before the reader has a connection again.
 */
type PowerLoss = {
  /** Has a connection of its own. */
  writer: Log;
  reader: Log;
  /** The disk has what the stream stores now. */
  sync(): void;
  /** The reader has no connection until `connectReader`. */
  lose(): Promise<void>;
  connectReader(): void;
};

async function powerLoss(t: TestContext, streamName: string): Promise<PowerLoss> {
  const [dir, saved] = ['store', 'saved'].map(name => mkdtempSync(join(tmpdir(), `hopline-lost-tails-${name}-`))) as [
    string,
    string,
  ];
  t.after(() => {
    for (const folder of [dir, saved]) rmSync(folder, { recursive: true, force: true });
  });
  const nats = await startNats({ dir });
  t.after(() => nats.stop());
  const proxy = await startNatsProxy(nats.port);
  t.after(() => proxy.close());
  const open = async (servers: string, name: string) => {
    const log = await openJetStreamLog({ servers, name, shards: 1 });
    t.after(() => log.close());
    return log;
  };
  const stream = join(dir, 'jetstream', '$G', 'streams', streamName);
  return {
    writer: await open(nats.url, 'writer'),
    reader: await open(proxy.url, 'reader'),
    sync: () => cpSync(stream, saved, { recursive: true }),
    async lose() {
      proxy.cut();
      await nats.kill();
      rmSync(stream, { recursive: true });
      cpSync(saved, stream, { recursive: true });
      await nats.restart();
    },
    connectReader: () => proxy.mend(),
  };
}

for (const written of [1, 3, 5])
  test(`a view of a bucket that has lost 3 entries shows the ${written} that were written since then`, {
    timeout: 120_000,
  }, async t => {
    const power = await powerLoss(t, `KV_${BUCKETS.messageIds}`);
    const value = { taskId: 't', fingerprint: 'f' };
    const put = (name: string) => power.writer.messageIds.put(name, value);
    const stop = new AbortController();
    t.after(() => stop.abort());
    let view = new Set<string>();
    let fresh = view;
    await followBucket(power.reader.messageIds, stop.signal, {
      begin: () => {
        fresh = new Set();
      },
      change: ({ key }) => void fresh.add(key),
      ready: () => {
        view = fresh;
      },
      lost: () => {},
    });
    await put('kept');
    await until(() => view.has('kept'), 'the entry that is kept');
    power.sync();
    for (let n = 1; n <= 3; n += 1) await put(`lost-${n}`);
    await until(() => view.size === 4, 'the entries that will be lost');
    await power.lose();
    const since = Array.from({ length: written }, (_, n) => `new-${n}`);
    for (const name of since) await put(name);
    power.connectReader();
    await until(() => since.every(name => view.has(name)), 'the entries that were written since');
    assert.deepEqual([...view].sort(), ['kept', ...since].sort());
  });

for (const written of [1, 3, 5])
  test(`a reader of inputs that have lost 3 records reads the ${written} that were appended since then`, {
    timeout: 120_000,
  }, async t => {
    const power = await powerLoss(t, INPUTS_STREAM);
    let count = 0;
    const append = async (taskId: string) => {
      count += 1;
      await power.writer.inputs.append(taskId, inputRecord(count), { id: `${taskId}:${count}` });
    };
    const stop = new AbortController();
    t.after(() => stop.abort());
    const read: string[] = [];
    const reading = (async () => {
      for await (const { taskId } of power.reader.inputs.readShard(0, 1, stop.signal)) read.push(taskId);
    })();
    await append('kept');
    await until(() => read.length === 1, 'the record that is kept');
    power.sync();
    for (let n = 1; n <= 3; n += 1) await append(`lost-${n}`);
    await until(() => read.length === 4, 'the records that will be lost');
    await power.lose();
    const since = Array.from({ length: written }, (_, n) => `new-${n}`);
    for (const taskId of since) await append(taskId);
    power.connectReader();
    await until(() => since.every(taskId => read.includes(taskId)), 'the records that were appended since');
    stop.abort();
    await reading;
  });
