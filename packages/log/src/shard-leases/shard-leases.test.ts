import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { until } from '../../../../test/kit/until.ts';
import { LogUnavailable } from '../errors.ts';
import type { Entry } from '../key-value.ts';
import type { LeaseValue, ShardProgress } from '../log.ts';
import { createMemoryLog, type MemoryLog } from '../memory/memory-log.ts';
import {
  LEASE_HEARTBEAT_MS,
  LEASE_MS,
  LEASE_RENEWAL_MS,
  type LeaseOptions,
  RENEWALS_PER_SECOND_MAX,
  ShardLeases,
  UNPROVEN_MAX,
} from './shard-leases.ts';

const RELAY = { member: 'relay', shard: 'shard' };
const NOTIFIER = { member: 'notifier', shard: 'notifier-shard' };
const SHARDS = 8;

/** Longer than a busy machine can stop a process whose leases must not expire. */
const LONG_LEASE_MS = 5_000;

type Member = { leases: ShardLeases; running: Map<number, number>; events: string[] };

async function member(log: MemoryLog, instance: string, options: Partial<LeaseOptions> = {}): Promise<Member> {
  const running = new Map<number, number>();
  const events: string[] = [];
  const progressOf = (shard: number) => {
    const checkpoint = running.get(shard);
    return checkpoint === undefined ? undefined : { checkpoint };
  };
  const leases = new ShardLeases({
    store: log.leases,
    presence: log.presence,
    keys: RELAY,
    shards: () => SHARDS,
    instance,
    heartbeatMs: 20,
    leaseMs: 400,
    now: () => performance.now(),
    startShard: (shard, { checkpoint }) => {
      running.set(shard, checkpoint);
      events.push(`+${shard}`);
    },
    stopShard: async shard => {
      const progress = progressOf(shard);
      running.delete(shard);
      events.push(`-${shard}`);
      return progress;
    },
    progressOf,
    onError: () => {},
    ...options,
  });
  await leases.start();
  return { leases, running, events };
}

/** A clock that only `advance` moves, in steps of 10 ms. All members use the production intervals. */
function virtualTime(t: TestContext) {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  let nowMs = 0;
  return {
    options: { heartbeatMs: LEASE_HEARTBEAT_MS, leaseMs: LEASE_MS, now: () => nowMs },
    async advance(ms: number): Promise<void> {
      for (const endMs = nowMs + ms; nowMs < endMs; nowMs += 10) {
        t.mock.timers.tick(10);
        for (let turns = 0; turns < 4; turns += 1) await new Promise(resolve => setImmediate(resolve));
      }
    },
  };
}

test('two processes share the shards; one takes all shards and their checkpoints when the other stops', {
  timeout: 120_000,
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

/** More shards than one round changes, and no heartbeat after the first. */
const WIDE = { shards: () => 200, heartbeatMs: 60_000, leaseMs: 180_000 };

test('a released lease names the newest records that its owner has not checked, and the next owner gets them', {
  timeout: 120_000,
}, async () => {
  const log = createMemoryLog();
  const marks = Array.from({ length: UNPROVEN_MAX + 1 }, (_, seq) => ({ seq, id: `t:relay:${seq}` }));
  const a = await member(log.another(), 'a', {
    stopShard: async shard => ({ checkpoint: 1, unproven: shard === 0 ? marks : [] }),
  });
  await until(() => a.running.size === SHARDS);
  await a.leases.stop();
  const started = new Map<number, ShardProgress>();
  const b = await member(log.another(), 'b', { startShard: (shard, progress) => void started.set(shard, progress) });
  await until(() => started.size === SHARDS);
  assert.deepEqual(started.get(0)?.unproven, marks.slice(1).toReversed());
  assert.equal(started.get(1)?.unproven, undefined);
  await b.leases.stop();
});

test('each shard of a process that stops is taken as soon as it is released, before the last one and without waiting for a heartbeat', {
  timeout: 120_000,
}, async () => {
  const log = createMemoryLog();
  const isReleasable = Promise.withResolvers<void>();
  const running = new Set<number>();
  const a = await member(log.another(), 'a', {
    ...WIDE,
    startShard: shard => void running.add(shard),
    stopShard: async shard => {
      if (shard === 7) await isReleasable.promise;
      running.delete(shard);
      return undefined;
    },
  });
  const b = await member(log.another(), 'b', WIDE);
  assert.deepEqual([running.size, b.running.size], [200, 0]);
  const stopping = a.leases.stop();
  // The first of four groups waits for this shard; the other shards of that group have an owner again.
  await until(() => b.running.size === 63);
  assert.deepEqual([running.has(7), b.running.has(7)], [true, false]);
  isReleasable.resolve();
  await stopping;
  await until(() => b.running.size === 200);
  await b.leases.stop();
});

test('a lease whose write ends after its process began to stop is released, and its shard is not started', {
  timeout: 120_000,
}, async () => {
  const log = createMemoryLog();
  const marks = [{ seq: 7, id: 't:relay:7' }];
  const before = await member(log.another(), 'before', { stopShard: async () => ({ checkpoint: 5, unproven: marks }) });
  const late = log.another();
  const { update } = late.leases;
  const isWriting = Promise.withResolvers<void>();
  const isAnswered = Promise.withResolvers<void>();
  late.leases.update = async (...args) => {
    const revision = await update.apply(late.leases, args);
    isWriting.resolve();
    await isAnswered.promise;
    return revision;
  };
  const started: number[] = [];
  const a = await member(late, 'late', { startShard: shard => void started.push(shard) });
  const stoppingBefore = before.leases.stop();
  await isWriting.promise;
  const stopping = a.leases.stop();
  isAnswered.resolve();
  await Promise.all([stoppingBefore, stopping]);
  assert.deepEqual(started, []);
  const next = new Map<number, ShardProgress>();
  const b = await member(log.another(), 'b', { startShard: (shard, progress) => void next.set(shard, progress) });
  await until(() => next.size === SHARDS);
  for (const { checkpoint, unproven } of next.values()) assert.deepEqual([checkpoint, unproven], [5, marks]);
  await b.leases.stop();
});

test('all leases are renewed even if there are more shards than one round changes', { timeout: 120_000 }, async () => {
  const log = createMemoryLog();
  const a = await member(log.another(), 'a', { shards: () => 200 });
  for (const checkpoint of [1, 2]) {
    for (const shard of a.running.keys()) a.running.set(shard, checkpoint);
    const isRenewed = async (shard: number) => (await log.leases.get(`shard.${shard}`))?.value.checkpoint === checkpoint;
    await until(async () => (await Promise.all([...a.running.keys()].map(isRenewed))).every(Boolean));
  }
  await a.leases.stop();
});

/** Counts the writes of leases during 30 times three heartbeats, in which the progress of all shards changes 300 times. */
async function writesOfBusyShards(t: TestContext, shards: number): Promise<number> {
  const time = virtualTime(t);
  const log = createMemoryLog();
  const starting = member(log.another(), 'a', { ...time.options, shards: () => shards });
  await time.advance(1_000);
  const a = await starting;
  let writes = 0;
  const update = log.leases.update;
  t.mock.method(
    Object.getPrototypeOf(log.leases),
    'update',
    function (this: typeof log.leases, ...args: Parameters<typeof update>) {
      writes += 1;
      return update.apply(this, args);
    },
  );
  for (let step = 1; step <= 300; step += 1) {
    for (const shard of a.running.keys()) a.running.set(shard, step);
    await time.advance((3 * LEASE_HEARTBEAT_MS) / 10);
  }
  const stopping = a.leases.stop();
  const counted = writes;
  await time.advance(1_000);
  await stopping;
  return counted;
}

test('a lease whose progress changes all the time is written once in three heartbeats', async t => {
  const writes = await writesOfBusyShards(t, 1);
  assert.ok(writes >= 29 && writes <= 31, `${writes}`);
});

test('a process with many busy shards writes RENEWALS_PER_SECOND_MAX leases a second', async t => {
  const seconds = (30 * 3 * LEASE_HEARTBEAT_MS) / 1_000;
  const perSecond = (await writesOfBusyShards(t, 200)) / seconds;
  // A round begins with a heartbeat, so an interval is a multiple of heartbeats.
  assert.ok(perSecond <= RENEWALS_PER_SECOND_MAX && perSecond >= 0.8 * RENEWALS_PER_SECOND_MAX, `${perSecond}`);
});

test('the shards of a process that has disconnected are taken over when its heartbeat is late, long before it is stale', {
  timeout: 120_000,
}, async () => {
  const log = createMemoryLog();
  const processLog = log.another();
  const a = await member(processLog, 'a', { leaseMs: 3_600_000 });
  const b = await member(log.another(), 'b', { leaseMs: 3_600_000 });
  await until(() => b.running.size === 4);
  await processLog.close();
  await until(() => b.running.size === SHARDS);
  await a.leases.stop().catch(() => {});
  await b.leases.stop();
});

test('a process that is slow but connected keeps its shards until its heartbeat is stale', async t => {
  const time = virtualTime(t);
  const log = createMemoryLog();
  const processLog = log.another();
  const asked: string[] = [];
  let isSilent = false;
  const put = processLog.leases.put.bind(processLog.leases);
  processLog.leases.put = (key, value) => (isSilent ? new Promise(() => {}) : put(key, value));
  const presence = { enter: () => {}, isGone: async (key: string) => asked.push(key) === 0 };
  const starting = Promise.all([
    member(processLog, 'a', time.options),
    member(log.another(), 'b', { ...time.options, presence }),
  ]);
  await time.advance(5_000);
  const [a, b] = await starting;
  assert.deepEqual([a.running.size, b.running.size, asked.length], [4, 4, 0]);
  isSilent = true;
  await time.advance(LEASE_MS - LEASE_HEARTBEAT_MS);
  assert.deepEqual([a.running.size, b.running.size], [4, 4]);
  assert.ok(asked.length > 0 && asked.every(key => key === 'relay.a'));
  // The process counts as dead at b's first heartbeat after the lease has expired, and its shards are taken in the next round.
  await time.advance(3 * LEASE_HEARTBEAT_MS);
  assert.equal(b.running.size, SHARDS);
  void a.leases.stop();
  const stopping = b.leases.stop();
  await time.advance(LEASE_HEARTBEAT_MS);
  await stopping;
});

test('the shards of a process that dies are taken over after its lease if the broker does not report it gone', {
  timeout: 120_000,
}, async () => {
  const log = createMemoryLog();
  const processLog = log.another();
  const a = await member(processLog, 'a');
  const presence = { enter: () => {}, isGone: async () => false };
  const b = await member(log.another(), 'b', { presence });
  await until(() => b.running.size === 4);
  await processLog.close();
  await until(() => b.running.size === SHARDS);
  // Ends the timer of the dead process, whose log is already closed.
  await a.leases.stop().catch(() => {});
  await b.leases.stop();
});

test('services with different keys do not share shards: each owns all of them', { timeout: 120_000 }, async () => {
  const log = createMemoryLog();
  const relay = await member(log.another(), 'one', { leaseMs: LONG_LEASE_MS });
  const notifier = await member(log.another(), 'one', { keys: NOTIFIER, leaseMs: LONG_LEASE_MS });
  const heartbeat = async () => (await log.leases.get('notifier.one'))?.value.heartbeat ?? 0;
  const before = await heartbeat();
  await until(async () => (await heartbeat()) >= before + 5);
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
  timeout: 120_000,
}, async () => {
  const log = createMemoryLog();
  const a = await member(log.another(), 'a');
  await log.leases.put('shard.3', { owner: 'thief' });
  await a.leases.restart(3);
  assert.equal(a.running.has(3), false);
  assert.equal(a.leases.held.has(3), false);
  a.running.set(5, 42);
  await a.leases.restart(5);
  assert.equal(a.running.get(5), 42, 'from its checkpoint, which the lease may not have yet');
  assert.deepEqual(a.events.slice(-2), ['-5', '+5']);
  await a.leases.stop();
});

test('a shard that another process takes first is not started', { timeout: 120_000 }, async () => {
  const log = createMemoryLog();
  const processLog = log.another();
  const create = processLog.leases.create.bind(processLog.leases);
  processLog.leases.create = async (key, value) => {
    if (key === 'shard.3') await log.leases.create(key, { owner: 'faster' });
    return create(key, value);
  };
  const a = await member(processLog, 'a', { heartbeatMs: 60_000, leaseMs: 180_000 });
  assert.deepEqual([a.running.has(3), a.leases.held.has(3), a.running.size], [false, false, SHARDS - 1]);
  await a.leases.stop();
});

test('confirm stops a shard whose lease is lost before the next round, and does not touch a shard whose lease is held', {
  timeout: 120_000,
}, async () => {
  const log = createMemoryLog();
  const a = await member(log.another(), 'a', { heartbeatMs: 60_000, leaseMs: 180_000 });
  await a.leases.confirm(5);
  await log.leases.put('shard.3', { owner: 'thief' });
  await a.leases.confirm(3);
  assert.deepEqual(a.events.slice(SHARDS), ['-3']);
  assert.deepEqual([a.leases.held.has(3), a.leases.held.has(5)], [false, true]);
  await a.leases.stop();
});

test('a shard whose lease another process has taken is stopped before it may start again from the other process’s checkpoint', {
  timeout: 120_000,
}, async () => {
  const log = createMemoryLog();
  const a = await member(log.another(), 'a');
  await log.leases.put('shard.3', { owner: 'thief', checkpoint: 7 });
  await until(() => a.events.filter(event => event === '+3').length === 2);
  assert.deepEqual(
    a.events.filter(event => event.endsWith('3')),
    ['+3', '-3', '+3'],
  );
  assert.equal(a.running.get(3), 7);
  await a.leases.stop();
});

test('a shard that is slow to stop is not started a second time', { timeout: 120_000 }, async () => {
  const log = createMemoryLog();
  const stopping = new Set<number>();
  const startedEarly: number[] = [];
  let starts = 0;
  const a = await member(log.another(), 'a', {
    startShard: shard => {
      starts += 1;
      if (stopping.has(shard)) startedEarly.push(shard);
    },
    stopShard: async shard => {
      stopping.add(shard);
      await new Promise(resolve => setTimeout(resolve, 300));
      stopping.delete(shard);
      return undefined;
    },
    progressOf: () => ({ checkpoint: 0 }),
  });
  const b = await member(log.another(), 'b');
  await until(() => stopping.size > 0);
  // From now on all shards belong to it again.
  await b.leases.stop();
  await until(() => starts > SHARDS);
  assert.deepEqual(startedEarly, []);
  await a.leases.stop();
});

/** A process on the log whose lease reads run `get`. Also returns the original process. */
function withLeaseGet(
  log: MemoryLog,
  get: MemoryLog['leases']['get'],
): { processLog: MemoryLog; get: MemoryLog['leases']['get'] } {
  const processLog = log.another();
  const original = processLog.leases.get.bind(processLog.leases);
  processLog.leases.get = get;
  return { processLog, get: original };
}

test('restart retries until the log answers', {
  timeout: 120_000,
}, async () => {
  let reads = 0;
  const { processLog, get } = withLeaseGet(createMemoryLog(), async key => {
    reads += 1;
    if (reads <= 3) throw new LogUnavailable('the log did not answer');
    return get(key);
  });
  const a = await member(processLog, 'a');
  await a.leases.restart(5);
  assert.deepEqual(a.events.slice(-2), ['-5', '+5']);
  assert.equal(reads, 4);
  await a.leases.stop();
});

test('a shard that is released and taken again during a restart is started once', {
  timeout: 120_000,
}, async () => {
  const log = createMemoryLog();
  const reading = Promise.withResolvers<void>();
  const answered = Promise.withResolvers<void>();
  const { processLog, get } = withLeaseGet(log, async key => {
    const entry = await get(key);
    reading.resolve();
    await answered.promise;
    return entry;
  });
  const a = await member(processLog, 'a');
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

/** A process on the log. `lose` decides the outcome of its lease writes: stored without an answer, or not stored. */
function withLostWrites(log: MemoryLog, lose: (value: LeaseValue) => 'answer' | 'write' | undefined): MemoryLog {
  const processLog = log.another();
  const losing =
    <A extends [key: string, value: LeaseValue, ...rest: number[]]>(write: (...args: A) => Promise<number>) =>
    async (...args: A): Promise<number> => {
      const lost = lose(args[1]);
      if (lost !== 'write') await write(...args);
      if (lost !== undefined) throw new LogUnavailable('not acknowledged in time');
      return (await processLog.leases.get(args[0]))!.revision;
    };
  processLog.leases.update = losing(processLog.leases.update.bind(processLog.leases));
  processLog.leases.create = losing(processLog.leases.create.bind(processLog.leases));
  return processLog;
}

test('if the answer to a renewal is lost, the shard is kept, and later renewals are stored', {
  timeout: 120_000,
}, async () => {
  const log = createMemoryLog();
  let losses = 0;
  const a = await member(
    withLostWrites(log, ({ checkpoint }) => (checkpoint === 1 && losses++ < SHARDS ? 'answer' : undefined)),
    'a',
  );
  for (const shard of a.running.keys()) a.running.set(shard, 1);
  // A renewal that is tried again counts, too.
  await until(() => losses >= SHARDS);
  for (const shard of a.running.keys()) a.running.set(shard, 2);
  await until(async () => (await log.leases.get('shard.7'))?.value.checkpoint === 2);
  assert.deepEqual([a.running.size, a.events.length], [SHARDS, SHARDS], 'each shard was started once');
  await a.leases.stop();
});

test('a shard is started if its lease was written and only the answer was lost', { timeout: 120_000 }, async () => {
  const log = createMemoryLog();
  let losses = 0;
  const a = await member(
    withLostWrites(log, () => (losses++ < SHARDS ? 'answer' : undefined)),
    'a',
  );
  assert.equal((await log.leases.get('shard.0'))?.value.owner, 'a');
  await until(() => a.running.size === SHARDS);
  await a.leases.stop();
});

for (const lost of ['answer', 'write'] as const) {
  test(`a shard runs in exactly one process even if the ${lost} of its release is lost`, {
    timeout: 120_000,
  }, async () => {
    const log = createMemoryLog();
    let losses = 0;
    const a = await member(
      withLostWrites(log, ({ owner }) => (owner === '' && losses++ < 4 ? lost : undefined)),
      'a',
    );
    const b = await member(log.another(), 'b');
    await until(() => a.running.size === 4 && b.running.size === 4);
    assert.equal(new Set([...a.running.keys(), ...b.running.keys()]).size, SHARDS);
    await a.leases.stop();
    await b.leases.stop();
  });
}

/**
 * A process on the log that sees changes of the leases only while `isCut` is false. When `isLost` is set, its watch breaks, and the next
 * watch sees no changes.
 */
/** Heartbeats of 20 ms in three leases of 400 ms. */
const HEARTBEATS_OF_THREE_LEASES = 60;

function withHeldWatch(log: MemoryLog) {
  const processLog = log.another();
  const held = { isCut: false, isLost: false, watches: 0, heartbeats: 0 };
  const put = processLog.leases.put.bind(processLog.leases);
  processLog.leases.put = (...entry) => {
    held.heartbeats += 1;
    return put(...entry);
  };
  const watch = processLog.leases.watch.bind(processLog.leases);
  processLog.leases.watch = async function* (signal) {
    held.watches += 1;
    for await (const change of watch(signal)) {
      if (held.isLost) {
        Object.assign(held, { isLost: false, isCut: true });
        throw new LogUnavailable('lost');
      }
      await until(() => !held.isCut || signal.aborted);
      yield change;
    }
  };
  return { processLog, held };
}

test('a process that sees no heartbeats, not even its own, does not take shards of others', { timeout: 120_000 }, async () => {
  const log = createMemoryLog();
  const a = await member(log, 'a');
  const { processLog, held } = withHeldWatch(log);
  const b = await member(processLog, 'b');
  await until(() => a.running.size === 4 && b.running.size === 4);
  held.isCut = true;
  const stored = held.heartbeats;
  await until(() => held.heartbeats > stored + HEARTBEATS_OF_THREE_LEASES);
  assert.deepEqual([a.running.size, b.running.size], [4, 4], 'the silence of the others means nothing');
  assert.ok(!b.events.includes('-0') && b.events.length === 4, `${b.events}`);
  held.isCut = false;
  await b.leases.stop();
  await until(() => a.running.size === SHARDS);
  await a.leases.stop();
});

test('a process keeps a shard that it has taken while its view still shows the previous owner', {
  timeout: 120_000,
}, async () => {
  const log = createMemoryLog();
  await log.leases.put('shard.3', { owner: 'dead', checkpoint: 7 });
  const { processLog, held } = withHeldWatch(log);
  const update = processLog.leases.update.bind(processLog.leases);
  processLog.leases.update = async (...args) => {
    if (args[0] === 'shard.3') held.isCut = true;
    return update(...args);
  };
  const a = await member(processLog, 'a', { leaseMs: LONG_LEASE_MS });
  await until(() => held.isCut);
  // Several rounds, each of which would renew.
  a.running.set(3, 8);
  await until(() => a.running.size === SHARDS);
  await new Promise(resolve => setTimeout(resolve, 200));
  assert.deepEqual([a.running.size, a.events.includes('-3')], [SHARDS, false]);
  held.isCut = false;
  await a.leases.stop();
});

test('a shard is kept if a renewal conflicts while the leases are read again', { timeout: 120_000 }, async () => {
  const log = createMemoryLog();
  const { processLog, held } = withHeldWatch(log);
  let conflicts = 0;
  const update = processLog.leases.update.bind(processLog.leases);
  processLog.leases.update = async (key, value, revision) => {
    const written = await update(key, value, revision).catch(error => {
      conflicts += 1;
      throw error;
    });
    if (value.checkpoint === 1) throw new LogUnavailable('stored, and not acknowledged in time');
    return written;
  };
  const a = await member(processLog, 'a', { leaseMs: LONG_LEASE_MS });
  held.isLost = true;
  await until(() => held.watches === 2);
  a.running.set(3, 1);
  await until(() => conflicts > 2);
  assert.deepEqual([a.running.size, a.events.includes('-3')], [SHARDS, false]);
  held.isCut = false;
  a.running.set(3, 2);
  await until(async () => (await log.leases.get('shard.3'))?.value.checkpoint === 2);
  assert.equal(a.events.length, SHARDS, 'each shard was started once');
  await a.leases.stop();
});

test('a lease is written again before its bucket removes it, even if its checkpoint has not moved', async t => {
  const time = virtualTime(t);
  const log = createMemoryLog();
  let skippedMs = 0;
  const now = () => time.options.now() + skippedMs;
  const starting = member(log.another(), 'a', { ...time.options, now });
  await time.advance(1_000);
  const a = await starting;
  const revisions = async () => Promise.all([0, 7].map(async shard => (await log.leases.get(`shard.${shard}`))!.revision));
  const taken = await revisions();
  await time.advance(2_000);
  assert.deepEqual(await revisions(), taken, 'not before');
  skippedMs = LEASE_RENEWAL_MS;
  await time.advance(2_000);
  const renewed = await revisions();
  assert.ok(renewed.every((revision, index) => revision > taken[index]!));
  await time.advance(2_000);
  assert.deepEqual(await revisions(), renewed, 'once');
  assert.deepEqual([a.running.size, a.events.length], [SHARDS, SHARDS], 'each shard was started once');
  const stopping = a.leases.stop();
  await time.advance(2_000);
  await stopping;
});

test('a lease that was deleted is written again', { timeout: 120_000 }, async () => {
  const log = createMemoryLog();
  const a = await member(log.another(), 'a');
  await log.leases.delete('shard.3');
  a.running.set(3, 9);
  await until(async () => (await log.leases.get('shard.3'))?.value.owner === 'a');
  await until(() => a.running.has(3));
  await a.leases.stop();
});

test('a process whose lease the bucket has lost keeps the shard, and writes its progress again', {
  timeout: 120_000,
}, async () => {
  const log = createMemoryLog();
  const processLog = log.another();
  const { watch, update } = processLog.leases;
  let lost: { before: Entry<LeaseValue>; revision: number } | undefined;
  processLog.leases.watch = async function* (signal) {
    const isSecond = lost !== undefined;
    for await (const change of watch.call(processLog.leases, signal)) {
      if (!isSecond && lost !== undefined) throw new LogUnavailable('the bucket has lost its newest entries');
      const isLost = change.type === 'entry' && change.key === 'shard.3' && change.revision === lost?.revision;
      yield isLost ? { ...change, ...lost!.before } : change;
    }
  };
  processLog.leases.update = (key, value, expected) => {
    const isNext = lost !== undefined && key === 'shard.3' && expected === lost.before.revision;
    return update.call(processLog.leases, key, value, isNext ? lost!.revision : expected);
  };
  const a = await member(processLog, 'a', { leaseMs: LONG_LEASE_MS });
  const stored = async () => (await log.leases.get('shard.3'))!;
  const before = await stored();
  a.running.set(3, 7);
  await until(async () => (await stored()).value.checkpoint === 7);
  lost = { before, revision: (await stored()).revision };
  await until(async () => (await stored()).revision > lost!.revision, 'the lease is written again');
  assert.deepEqual([(await stored()).value.checkpoint, a.events.length], [7, SHARDS], 'no shard was started again');
  await a.leases.stop();
});

/** A process whose writes of leases take `ms`. */
function withSlowWrites(log: MemoryLog, ms: number): MemoryLog {
  const processLog = log.another();
  for (const write of ['put', 'create', 'update'] as const) {
    const original = processLog.leases[write].bind(processLog.leases) as (...args: unknown[]) => Promise<number>;
    processLog.leases[write] = async (...args: unknown[]) => {
      await new Promise(resolve => setTimeout(resolve, ms));
      return original(...args);
    };
  }
  return processLog;
}

for (const writeMs of [100, 200]) {
  test(`if writes take ${writeMs} ms, no shard moves needlessly, and the shards of a dead process are taken in time`, async t => {
    const time = virtualTime(t);
    const log = createMemoryLog();
    const options = { ...time.options, shards: () => 16 };
    const dying = withSlowWrites(log, writeMs);
    const starting = Promise.all([member(dying, 'a', options), member(withSlowWrites(log, writeMs), 'b', options)]);
    await time.advance(10_000);
    const [a, b] = await starting;
    assert.deepEqual([a.running.size, b.running.size], [8, 8]);
    const moves = () => a.events.length + b.events.length;
    const before = moves();
    for (let second = 1; second <= 20; second += 1) {
      // Checkpoints move, so that each round renews every lease.
      for (const { running } of [a, b]) for (const shard of running.keys()) running.set(shard, second);
      await time.advance(1_000);
    }
    assert.equal(moves(), before, 'shards moved');
    await dying.close();
    await time.advance(LEASE_MS + 2 * LEASE_HEARTBEAT_MS + 3 * writeMs);
    assert.equal(b.running.size, 16);
    const stopping = Promise.allSettled([a.leases.stop(), b.leases.stop()]);
    await time.advance(5_000);
    await stopping;
  });
}
