import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { InputRecord, Work } from '@hopline/events';
import type { Log } from '@hopline/log';
import { openJetStreamLog } from '@hopline/log-jetstream';
import { jetstreamManager } from '@nats-io/jetstream';
import { connect } from '@nats-io/transport-node';
import { collect } from '../../kit/collect.ts';
import { until } from '../../kit/until.ts';
import { startNats } from '../../support/nats/nats-server.ts';

const TASK = 'task-1';
const message = { messageId: 'm', role: 'ROLE_USER' as const, parts: [{ text: 'hello' }] };
const input = (name: string): InputRecord => ({
  v: 1,
  at: 1,
  from: 'client',
  input: { kind: 'message', message: { ...message, messageId: name }, contextId: 'c', role: 'supervisor', profile: 'caipe' },
});
const work: Work = { v: 1, taskId: TASK, contextId: 'c', turn: 1, profile: 'caipe', message };

/** The message of the first input that a reader of the shard of TASK receives. */
async function firstInput(log: Log): Promise<unknown> {
  const stop = new AbortController();
  const readers = Array.from({ length: log.shards }, async (_, shard) => {
    for await (const { taskId, record } of log.inputs.readShard(shard, 1, stop.signal)) {
      stop.abort();
      return { taskId, record };
    }
    return undefined;
  });
  return (await Promise.all(readers)).find(found => found !== undefined);
}

test('logs of different prefixes share an account, and each has its own inputs, work, buckets and wake-ups', {
  timeout: 120_000,
}, async t => {
  const server = await startNats();
  t.after(() => server.stop());
  const prefixes = [undefined, 'blue', 'green_2'];
  const logs = await Promise.all(
    prefixes.map(prefix => openJetStreamLog({ servers: server.url, name: 'prefix', prefix, maxBytes: { facts: 1024 ** 3 } })),
  );
  t.after(() => Promise.all(logs.map(log => log.close())));
  const awake: string[][] = logs.map(() => []);
  const stop = new AbortController();
  t.after(() => stop.abort());
  const key = 'k'.repeat(43);
  for (const [index, log] of logs.entries()) log.wakeUps.listen('agent', received => awake[index]?.push(received), stop.signal);
  for (const [index, log] of logs.entries()) {
    const name = prefixes[index] ?? 'none';
    await log.inputs.append(TASK, input(name), { id: `${TASK}:1` });
    await log.leases.put('shard.0', { name } as never);
    await log.work.request('supervisor', work, { id: `${TASK}:1` });
  }
  for (const [index, log] of logs.entries()) {
    const name = prefixes[index] ?? 'none';
    const inputs = await collect(log.inputs.read(TASK));
    assert.deepEqual(
      inputs.map(({ record }) => record),
      [input(name)],
    );
    assert.deepEqual(await firstInput(log), { taskId: TASK, record: input(name) });
    assert.deepEqual((await log.leases.get('shard.0'))?.value, { name });
    await log.check();
    const taken = new AbortController();
    let items = 0;
    await log.work.take('supervisor', { slots: 1, signal: taken.signal }, async () => {
      items += 1;
      taken.abort();
    });
    assert.equal(items, 1, 'one item of its own');
  }
  logs[1]?.wakeUps.wake('agent', key);
  await until(() => awake[1]?.length !== 0);
  assert.deepEqual(awake, [[], [key], []]);

  const nc = await connect({ servers: server.url });
  t.after(() => nc.close());
  const names = (await collect((await jetstreamManager(nc)).streams.names())).sort();
  assert.equal(names.length, 3 * 12);
  const of = (prefix: string) => names.filter(name => name.replace(/^KV_/, '').startsWith(prefix));
  assert.deepEqual([of('blue_').length, of('green_2_').length], [12, 12]);
});
