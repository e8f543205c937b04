import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { Layouts, liveSubject, logSubject, rawShardFilter, rawSubject, shardOf, type Work } from '@hopline/events';
import { type Log, LogConflict, Requeued, SETTLE_DELIVERIES_MAX } from '@hopline/log';
import { BUCKETS, INPUTS_STREAM, type LogEvent, openJetStreamLog, WORK_STREAM } from '@hopline/log-jetstream';
import { type JetStreamManager, jetstreamManager } from '@nats-io/jetstream';
import { headers, type NatsConnection } from '@nats-io/nats-core';
import { connect } from '@nats-io/transport-node';
import { until } from '../../kit/until.ts';
import { type NatsServer, startNats } from '../../support/nats/nats-server.ts';

const SHARDS = 16;
const LAYOUTS = Layouts.one(SHARDS);
const PATIENCE_MS = 20_000;
const never = new AbortController().signal;

/** The log reports to `onEvent` everything that it skips, abandons or restarts. */
describe('events of the log', () => {
  let server: NatsServer;
  let log: Log;
  let nc: NatsConnection;
  let jsm: JetStreamManager;
  let events: LogEvent[] = [];
  const reported = (wanted: LogEvent) => events.filter(event => JSON.stringify(event) === JSON.stringify(wanted)).length;
  const open = (options = {}) =>
    openJetStreamLog({
      servers: server.url,
      name: 'events',
      shards: SHARDS,
      attemptsMax: 1,
      ackWaitMs: 1_000,
      onEvent: event => void events.push(event),
      ...options,
    });
  before(async () => {
    server = await startNats();
    log = await open();
    nc = await connect({ servers: server.url });
    jsm = await jetstreamManager(nc);
  });
  after(async () => {
    await log?.close();
    await nc?.close();
    await server?.stop();
  });
  const append = (taskId: string, n: number) => {
    const from = { id: 'c', agent: 'a', turn: 1, attempt: 1 };
    return log.inputs.append(taskId, { v: 1, at: 1, from, n, inputs: [{ kind: 'close', lane: 'l' }] }, { id: `${taskId}:${n}` });
  };

  test('payloads that are not records are skipped and reported, in every stream and bucket', async () => {
    const taskId = 'garbage';
    events = [];
    await nc.request(rawSubject(taskId, LAYOUTS, 'agent.a'), '{"v":1}');
    const { seq } = await append(taskId, 1);
    for await (const input of log.inputs.readShard(shardOf(taskId, LAYOUTS), 1, never)) if (input.seq === seq) break;
    assert.equal(reported({ type: 'undecodable', where: 'inputs' }), 1);

    // The wrong shard, a task id that is not one, a malformed member, and JSON that overflows the stack of an encoder: the last two are inputs.
    const elsewhere = rawShardFilter((shardOf(taskId, LAYOUTS) + 1) % SHARDS).replace('>', `${taskId}.agent.a`);
    const shard = shardOf(taskId, LAYOUTS);
    const record = (input: string) =>
      `{"v":1,"at":1,"from":{"id":"c","agent":"a","turn":1,"attempt":1},"n":2,"inputs":[${input}]}`;
    const deep = `{"kind":"step","step":"1","payload":${'['.repeat(6_500)}${']'.repeat(6_500)}}`;
    await nc.request(elsewhere, record('{"kind":"close","lane":"l"}'));
    await nc.request(rawShardFilter(shard).replace('>', 'tésk.agent.a'), record('{"kind":"close","lane":"l"}'));
    await nc.request(rawSubject(taskId, LAYOUTS, 'agent.a'), record('{"kind":"text","lane":"l","tokens":[5]}'));
    await nc.request(rawSubject(taskId, LAYOUTS, 'agent.a'), record(deep));
    const { seq: last } = await append(taskId, 2);
    const rejected: string[] = [];
    const kinds: string[] = [];
    const onRejected = ({ fault }: { fault: string }) => void rejected.push(fault);
    for await (const { record, seq: read } of log.inputs.readShard(shard, seq, never, onRejected)) {
      kinds.push(...('inputs' in record ? record.inputs.map(({ kind }) => kind) : []));
      if (read === last) break;
    }
    assert.deepEqual(rejected, ['not a record']);
    assert.deepEqual(kinds, ['close', 'malformed', 'malformed', 'close']);
    rejected.length = 0;
    const other = (shard + 1) % SHARDS;
    const stop = new AbortController();
    for await (const _input of log.inputs.readShard(other, 1, stop.signal, fault => {
      onRejected(fault);
      stop.abort();
    }))
      assert.fail('a record in the shard of another task is not an input');
    assert.deepEqual(rejected, ['not a record']);

    const abort = new AbortController();
    const following = (async () => {
      for await (const record of await log.facts.follow(taskId, 'new', abort.signal))
        assert.fail(`nothing can be read: ${record.seq}`);
    })();
    await nc.flush();
    await until(async () => {
      nc.publish(liveSubject(taskId, LAYOUTS), '{}');
      return reported({ type: 'undecodable', where: 'facts' }) >= 1;
    }, 'a live message without a sequence');
    await nc.request(logSubject(taskId, LAYOUTS), '[]');
    await until(() => reported({ type: 'undecodable', where: 'facts' }) >= 2, 'a live payload');
    abort.abort();
    await following;

    await nc.request(`$KV.${BUCKETS.tasks}.x`, 'no json');
    assert.equal(await log.tasks.get('x'), undefined);
    for await (const change of log.tasks.watch(never)) if (change.type === 'ready') break;
    assert.equal(reported({ type: 'undecodable', where: 'key-value' }), 2);
  });

  test('a key that was deleted, or purged by an operator, is absent and is not reported', async () => {
    events = [];
    const entry = { contextId: 'c', role: 'supervisor', state: 'TASK_STATE_WORKING', startSeq: 0, generation: 0, at: 1 } as const;
    await log.tasks.put('deleted', entry);
    await log.tasks.delete('deleted');
    const purge = headers();
    purge.set('KV-Operation', 'PURGE');
    await nc.request(`$KV.${BUCKETS.tasks}.purged`, '', { headers: purge, timeout: PATIENCE_MS });
    for (const key of ['deleted', 'purged']) assert.equal(await log.tasks.get(key), undefined);
    assert.deepEqual(events, []);
    for (const key of ['deleted', 'purged']) await log.tasks.create(key, entry);
    assert.deepEqual(events, []);
  });

  test('an entry of a bucket that lacks what readers need is skipped and reported, and does not keep its key', async () => {
    events = [];
    const entry = { contextId: 'c', role: 'supervisor', state: 'TASK_STATE_WORKING', startSeq: 0, generation: 0, at: 1 } as const;
    for (const malformed of ['no json', '{}', JSON.stringify({ ...entry, inputRequest: {} })]) {
      const key = `malformed-${reported({ type: 'undecodable', where: 'key-value' })}`;
      await nc.request(`$KV.${BUCKETS.tasks}.${key}`, malformed);
      assert.equal(await log.tasks.get(key), undefined);
      const revision = await log.tasks.create(key, entry);
      assert.deepEqual(await log.tasks.get(key), { key, value: entry, revision });
      await assert.rejects(log.tasks.create(key, entry), LogConflict);
    }
    await nc.request(`$KV.${BUCKETS.tasks}.malformed`, '{}');
    const read = new Set<string>();
    for await (const change of log.tasks.watch(never)) {
      if (change.type === 'ready') break;
      if (change.value !== undefined) read.add(change.key);
    }
    assert.equal(read.has('malformed'), false);
    assert.equal([...read].filter(key => key.startsWith('malformed-')).length, 3);
  });

  test('an undecodable work item is removed; an item that cannot be settled becomes a dead letter', async () => {
    events = [];
    await nc.request('a2a.work.agent.events.t1', '{"v":1}');
    const work: Work = {
      v: 1,
      taskId: 't2',
      contextId: 'c',
      turn: 1,
      profile: 'caipe',
      message: { messageId: 'm', role: 'ROLE_USER', parts: [] },
    };
    await log.work.request('agent.events', work, { id: 't2' });
    const abort = new AbortController();
    let deliveries = 0;
    const taking = log.work.take('agent.events', { slots: 1, signal: abort.signal }, async () => {
      deliveries += 1;
      throw new Error('rejected');
    });
    await until(() => reported({ type: 'dead-letter', role: 'agent.events' }) > 0, 'the dead letter');
    // The server no longer delivers the item.
    await new Promise(resolve => setTimeout(resolve, 200));
    assert.equal(reported({ type: 'dead-letter', role: 'agent.events' }), 1);
    abort.abort();
    await taking;
    assert.equal(deliveries, 1 + SETTLE_DELIVERIES_MAX);
    assert.equal(reported({ type: 'undecodable', where: 'work' }), 1);
    assert.equal(
      (await jsm.streams.info(WORK_STREAM)).state.messages,
      1,
      'the dead letter stays in the stream, the garbage is gone',
    );
  });

  test('a work item of a later version stays for a worker of that version', async () => {
    events = [];
    await nc.request('a2a.work.agent.later.t1', '{"v":2,"taskId":"t1"}');
    const abort = new AbortController();
    const taking = log.work.take('agent.later', { slots: 1, signal: abort.signal }, () => assert.fail('it was run'));
    await until(() => reported({ type: 'undecodable', where: 'work' }) > 0, 'the item');
    abort.abort();
    await taking;
    assert.equal(await log.work.hasItem('agent.later', 't1'), true);
  });

  test('an item whose requeues cannot be counted is still settled', { timeout: 240_000 }, async t => {
    const strict = await open({ attemptsMax: 1, requeuesMax: 1 });
    t.after(() => strict.close());
    const work: Work = {
      v: 1,
      taskId: 'uncounted',
      contextId: 'c',
      turn: 1,
      profile: 'caipe',
      message: { messageId: 'm', role: 'ROLE_USER', parts: [] },
    };
    await strict.work.request('agent.uncounted', work, { id: 'uncounted' });
    await jsm.streams.delete(`KV_${BUCKETS.requeues}`);
    const abort = new AbortController();
    const jobs: [number, boolean][] = [];
    const taking = strict.work.take('agent.uncounted', { slots: 1, signal: abort.signal }, async ({ attempt, exhausted }) => {
      jobs.push([attempt, exhausted]);
      if (!exhausted) throw new Requeued('stopping');
    });
    // A read of a bucket that does not exist is repeated for 20 s, in which a relay would create it again.
    await until(() => jobs.some(([, exhausted]) => exhausted), 'the end', 180_000);
    abort.abort();
    await taking;
    // The delivery in between was rejected because the count could not be read.
    assert.deepEqual(jobs, [
      [1, false],
      [3, true],
    ]);
  });

  test('a reader whose consumer is removed continues after its last record', async () => {
    events = [];
    const taskId = 'removed';
    const shard = shardOf(taskId, LAYOUTS);
    const first = await append(taskId, 1);
    const abort = new AbortController();
    const got: number[] = [];
    const reading = (async () => {
      for await (const { seq } of log.inputs.readShard(shard, first.seq, abort.signal)) got.push(seq);
    })();
    await until(() => got.length === 1, 'the first record');
    for await (const { name } of jsm.consumers.list(INPUTS_STREAM)) await jsm.consumers.delete(INPUTS_STREAM, name);
    const second = await append(taskId, 2);
    await until(() => got.length === 2, 'the second record');
    abort.abort();
    await reading;
    assert.deepEqual(got, [first.seq, second.seq]);
    assert.equal(reported({ type: 'reader-restarted', what: `a2a.raw.${shard.toString(16).padStart(2, '0')}.>` }), 1);
  });

  test('workers survive the removal of their consumer, and a consumer with other settings', async t => {
    const done: string[] = [];
    const request = (taskId: string) => {
      const message = { messageId: 'm', role: 'ROLE_USER', parts: [] } as Work['message'];
      return log.work.request(
        'agent.again',
        { v: 1, taskId, contextId: 'c', turn: 1, profile: 'caipe', message },
        { id: taskId },
      );
    };
    const abort = new AbortController();
    t.after(() => abort.abort());
    const takeFrom = (from: Log) =>
      from.work.take('agent.again', { slots: 2, signal: abort.signal }, async ({ work }) => void done.push(work.taskId));
    const taking = takeFrom(log);
    await request('w1');
    await until(() => done.includes('w1'), 'the first item');
    await jsm.consumers.delete(WORK_STREAM, 'agent-again');
    await request('w2');
    await until(() => done.includes('w2'), 'the item after the removal');
    const other = await open({ attemptsMax: 5, ackWaitMs: 2_000 });
    t.after(() => other.close());
    const takingToo = takeFrom(other);
    await until(
      async () => (await jsm.consumers.info(WORK_STREAM, 'agent-again')).config.ack_wait === 2_000 * 1_000_000,
      'the new settings',
    );
    await request('w3');
    await until(() => done.includes('w3'), 'the item after the change');
    abort.abort();
    await Promise.all([taking, takingToo]);
  });
});
