import assert from 'node:assert/strict';
import { test } from 'node:test';
import { LogUnavailable } from '../errors.ts';
import { createMemoryLog, type MemoryLog } from '../memory/memory-log.ts';
import { type LeaseOptions, ShardLeases } from './shard-leases.ts';

const RELAY = { member: 'relay', shard: 'shard' };
const NOTIFIER = { member: 'notifier', shard: 'notifier-shard' };
const SHARDS = 8;

type Member = { leases: ShardLeases; running: Map<number, number>; events: string[] };

async function member(log: MemoryLog, instance: string, options: Partial<LeaseOptions> = {}): Promise<Member> {
  const running = new Map<number, number>();
  const events: string[] = [];
  const leases = new ShardLeases({
    store: log.leases,
    keys: RELAY,
    shards: SHARDS,
    instance,
    heartbeatMs: 20,
    leaseMs: 400,
    now: () => performance.now(),
    startShard: (shard, checkpoint) => {
      running.set(shard, checkpoint);
      events.push(`+${shard}`);
    },
    stopShard: async shard => {
      const checkpoint = running.get(shard) ?? 0;
      running.delete(shard);
      events.push(`-${shard}`);
      return checkpoint;
    },
    checkpointOf: shard => running.get(shard) ?? 0,
    onError: () => {},
    ...options,
  });
  await leases.start();
  return { leases, running, events };
}

async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise(resolve => setTimeout(resolve, 5));
}

test('two processes share the shards; one takes all when the other stops, with its checkpoints', {
  timeout: 20_000,
}, async () => {
  const log = createMemoryLog();
  const a = await member(log.another(), 'a');
  const b = await member(log.another(), 'b');
  await until(() => a.running.size === 4 && b.running.size === 4);
  const [shard] = a.running.keys();
  a.running.set(shard!, 42);
  await a.leases.stop();
  assert.equal(a.running.size, 0);
  await until(() => b.running.size === SHARDS);
  assert.equal(b.running.get(shard!), 42);
  await b.leases.stop();
});

test('the shards of a process that dies are taken over after its lease', { timeout: 20_000 }, async () => {
  const log = createMemoryLog();
  const own = log.another();
  const a = await member(own, 'a');
  const b = await member(log.another(), 'b');
  await until(() => b.running.size === 4);
  await own.close();
  await until(() => b.running.size === SHARDS);
  // Ends the timer of the dead process, whose log is closed.
  await a.leases.stop().catch(() => {});
  await b.leases.stop();
});

test('services with different keys do not share: each owns every shard', { timeout: 20_000 }, async () => {
  const log = createMemoryLog();
  const relay = await member(log.another(), 'one');
  const notifier = await member(log.another(), 'one', { keys: NOTIFIER });
  const heartbeat = async () => (await log.leases.get('notifier.one'))?.value.heartbeat ?? 0;
  const before = await heartbeat();
  while ((await heartbeat()) < before + 5) await new Promise(resolve => setTimeout(resolve, 5));
  for (const { running, events } of [relay, notifier]) {
    assert.equal(running.size, SHARDS);
    assert.equal(events.length, SHARDS, 'no shard was released');
  }
  assert.equal((await log.leases.get('shard.0'))?.value.owner, 'one');
  assert.equal((await log.leases.get('notifier-shard.0'))?.value.owner, 'one');
  await relay.leases.stop();
  assert.equal(await log.leases.get('relay.one'), undefined);
  assert.equal((await log.leases.get('notifier-shard.0'))?.value.owner, 'one');
  await notifier.leases.stop();
});

test('restart stops a shard whose lease another process has taken, and does not start it again', {
  timeout: 20_000,
}, async () => {
  const log = createMemoryLog();
  const a = await member(log.another(), 'a');
  await log.leases.put('shard.3', { owner: 'thief' });
  await a.leases.restart(3);
  assert.equal(a.running.has(3), false);
  assert.equal(a.leases.held.has(3), false);
  await a.leases.restart(5);
  assert.equal(a.running.has(5), true);
  assert.deepEqual(a.events.slice(-2), ['-5', '+5']);
  await a.leases.stop();
});

/** A process on the log whose lease reads run `get`; returns the original too. */
function withLeaseGet(log: MemoryLog, get: MemoryLog['leases']['get']): { own: MemoryLog; get: MemoryLog['leases']['get'] } {
  const own = log.another();
  const original = own.leases.get.bind(own.leases);
  own.leases.get = get;
  return { own, get: original };
}

test('restart retries until the log answers', {
  timeout: 20_000,
}, async () => {
  let reads = 0;
  const { own, get } = withLeaseGet(createMemoryLog(), async key => {
    reads += 1;
    if (reads <= 3) throw new LogUnavailable('the log did not answer');
    return get(key);
  });
  const a = await member(own, 'a');
  await a.leases.restart(5);
  assert.deepEqual(a.events.slice(-2), ['-5', '+5']);
  assert.equal(reads, 4);
  await a.leases.stop();
});

test('a shard that is released and taken again during a restart is started once', {
  timeout: 20_000,
}, async () => {
  const log = createMemoryLog();
  const reading = Promise.withResolvers<void>();
  const answered = Promise.withResolvers<void>();
  const { own, get } = withLeaseGet(log, async key => {
    const entry = await get(key);
    reading.resolve();
    await answered.promise;
    return entry;
  });
  const a = await member(own, 'a');
  const restarted = a.leases.restart(5);
  await reading.promise;
  const starts = () => a.events.filter(event => event === '+5').length;
  // The owner has no heartbeat: the next round releases the shard, then takes it.
  await log.leases.put('shard.5', { owner: 'thief' });
  await until(() => starts() === 2);
  answered.resolve();
  await restarted;
  assert.equal(starts(), 2);
  assert.equal(a.leases.held.has(5), true);
  await a.leases.stop();
});
