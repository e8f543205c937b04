import assert from 'node:assert/strict';
import test from 'node:test';
import type { FactRecord } from '@hopline/events';
import fc from 'fast-check';
import { until, untilTick } from '../../../test/kit/until.ts';
import { HistoryLost } from './errors.ts';
import type { FollowStart, StoredFacts } from './fact-log.ts';
import {
  type FollowSource,
  follow,
  type LiveRecord,
  NEWEST_CHECK_MS,
  PUSH_AFTER_CHECKS,
  type RereadReason,
  type Tail,
} from './follow.ts';
import { factRecord } from './records.test-kit.ts';

const TAIL_CHECK_MS = 4;
const tick = () => new Promise<void>(resolve => setImmediate(resolve));

/** The records of a task, and live messages that arrive once, twice or never. */
function taskLog() {
  const records: StoredFacts[] = [];
  const listeners = new Set<{ onLive: (live: LiveRecord) => void; onReconnect: () => void }>();
  const pushes = new Set<{ onTail: (tail: Tail) => void; onLost: () => void }>();
  const reads: number[] = [];
  /** The sequences that the follower asked the leader about. */
  const asked: number[] = [];
  let checks = 0;
  let seq = 0;
  let generation = 0;
  let appends = 0;
  const source: FollowSource = {
    async subscribe(onLive, onReconnect) {
      const listener = { onLive, onReconnect };
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    async *read(from) {
      reads.push(from);
      const found = records.filter(record => record.seq >= from);
      for (const record of found) {
        await tick();
        yield record;
      }
      return found.at(-1)?.seq ?? 0;
    },
    async tail() {
      checks += 1;
      const last = records.at(-1);
      return last && { seq: last.seq, startSeq: last.record.startSeq, ...(last.id !== undefined && { id: last.id }) };
    },
    async isLost(lostSeq, id) {
      asked.push(lostSeq);
      const stored = records.find(record => record.seq === lostSeq);
      return lostSeq > seq || (id !== undefined && stored !== undefined && stored.id !== id);
    },
  };
  return {
    asked,
    source,
    records,
    reads,
    listeners,
    pushes,
    get checks() {
      return checks;
    },
    /** A source that pushes tails. `push` pushes the newest record. */
    pushing: {
      ...source,
      pushTail(onTail, onLost) {
        const push = { onTail, onLost };
        pushes.add(push);
        return () => pushes.delete(push);
      },
    } satisfies FollowSource,
    push() {
      const last = records.at(-1);
      const id = last?.id;
      const tail = { seq: last?.seq ?? 0, startSeq: last?.record.startSeq ?? 0, ...(id !== undefined && { id }) };
      for (const { onTail } of pushes) onTail(tail);
    },
    losePush() {
      for (const { onLost } of pushes) onLost();
    },
    /** `times`: number of times the live message arrives. */
    append(times: number, { gap = 1, continuesText = false } = {}) {
      const last = records.at(-1)?.seq ?? 0;
      seq += gap;
      generation += 1;
      const record: FactRecord = factRecord('task-1', generation, records[0]?.seq ?? 0);
      const id = `append-${++appends}`;
      const stored = { seq, record };
      records.push({ ...stored, id });
      const live: LiveRecord = { seq, last, bytes: 100, continuesText, decode: () => stored, id: () => id };
      for (let i = 0; i < times; i += 1) for (const { onLive } of listeners) onLive(live);
    },
    /** Stores a record whose task begins at `startSeq`, without a live message. */
    next(at: number, startSeq: number): LiveRecord {
      const stored = { seq: at, record: factRecord('task-1', at, startSeq) };
      const last = records.at(-1)!.seq;
      records.push(stored);
      return { seq: at, last, bytes: 100, continuesText: false, decode: () => stored, id: () => undefined };
    },
    expire: (count: number) => void records.splice(0, count),
    /** Removes the newest records, so that their sequences are used again. */
    lose(count: number) {
      records.splice(-count);
      seq = records.at(-1)?.seq ?? 0;
    },
    reconnect: () => {
      for (const { onReconnect } of listeners) onReconnect();
    },
  };
}

async function collect(
  live: AsyncIterable<StoredFacts>,
  into: number[],
  between: () => Promise<void> = async () => {},
): Promise<void> {
  for await (const { seq } of live) {
    into.push(seq);
    await between();
  }
}

test('each stored record is yielded once and in order, whatever is lost, duplicated or cut, and at any speed of the reader', async () => {
  const step = fc.oneof(
    {
      weight: 6,
      arbitrary: fc.record({
        kind: fc.constant('append' as const),
        times: fc.constantFrom(0, 1, 1, 1, 2),
        gap: fc.integer({ min: 1, max: 4 }),
      }),
    },
    fc.constantFrom({ kind: 'reconnect' as const }, { kind: 'tick' as const }),
  );
  const starts = fc.constantFrom('middle', 'newest', 'newest, then one');
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 40 }), fc.nat(10), starts, fc.boolean(), async (steps, before, start, slow) => {
      const log = taskLog();
      for (let i = 0; i < before; i += 1) log.append(1);
      const after = start === 'middle' ? (log.records[Math.floor(before / 2)]?.seq ?? 0) : (log.records.at(-1)?.seq ?? 0);
      // Stores a record between the newest one and the subscription, so that it has no live message.
      if (start === 'newest, then one') log.append(1);
      const abort = new AbortController();
      const options = { tailCheckMs: TAIL_CHECK_MS, bufferRecordsMax: 3 };
      const got: number[] = [];
      const ended = collect(
        await follow(log.source, start === 'middle' ? after : { newest: after }, abort.signal, options),
        got,
        slow ? tick : undefined,
      );
      for (const { kind, ...how } of steps) {
        if (kind === 'append' && 'times' in how) log.append(how.times, { gap: how.gap });
        else if (kind === 'reconnect') log.reconnect();
        else await tick();
      }
      const expected = log.records.map(({ seq }) => seq).filter(seq => seq > after);
      for (let i = 0; i < 500 && got.length < expected.length; i += 1) await new Promise(resolve => setTimeout(resolve, 1));
      abort.abort();
      await ended;
      assert.deepEqual(got, expected);
      assert.equal(log.listeners.size, 0);
    }),
    { numRuns: 150 },
  );
});

test('each record is yielded once and in order while tails are pushed, and no tail is checked', async () => {
  const step = fc.oneof(
    fc.record({ kind: fc.constant('append' as const), times: fc.constantFrom(0, 0, 1, 2), gap: fc.integer({ min: 1, max: 4 }) }),
    fc.constantFrom({ kind: 'push' as const }, { kind: 'tick' as const }),
  );
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 30 }), fc.nat(3), fc.boolean(), async (steps, before, slow) => {
      const log = taskLog();
      for (let i = 0; i < before; i += 1) log.append(1);
      const abort = new AbortController();
      const got: number[] = [];
      const options = { tailCheckMs: TAIL_CHECK_MS, bufferRecordsMax: 3 };
      const ended = collect(await follow(log.pushing, 0, abort.signal, options), got, slow ? tick : undefined);
      await until(() => log.pushes.size > 0);
      log.push();
      await tick();
      const { checks } = log;
      for (const { kind, ...how } of steps) {
        if (kind === 'append' && 'times' in how) log.append(how.times, { gap: how.gap });
        else if (kind === 'push') log.push();
        else await tick();
      }
      log.push();
      const expected = log.records.map(({ seq }) => seq);
      for (let i = 0; i < 500 && got.length < expected.length; i += 1) await new Promise(resolve => setTimeout(resolve, 1));
      await new Promise(resolve => setTimeout(resolve, 2 * TAIL_CHECK_MS));
      assert.deepEqual(got, expected);
      assert.equal(log.checks, checks);
      abort.abort();
      await ended;
      assert.equal(log.pushes.size, 0);
    }),
    { numRuns: 100 },
  );
});

test('a follower whose push is lost checks the tail again, until the push is back', async () => {
  const log = taskLog();
  const abort = new AbortController();
  const got: number[] = [];
  const ended = collect(await follow(log.pushing, 'new', abort.signal, { tailCheckMs: TAIL_CHECK_MS }), got);
  await until(() => log.pushes.size > 0);
  log.push();
  // From now on the follower relies only on the push.
  await tick();
  log.losePush();
  log.append(0);
  await until(() => got.length >= 1);
  log.push();
  await tick();
  const { checks } = log;
  log.append(0);
  await new Promise(resolve => setTimeout(resolve, 5 * TAIL_CHECK_MS));
  assert.deepEqual(got, [1]);
  assert.equal(log.checks, checks);
  log.push();
  await untilTick(() => got.length >= 2);
  abort.abort();
  await ended;
  assert.deepEqual(got, [1, 2]);
});

test('a pushed record that retention removed is read once, not again and again', async () => {
  const log = taskLog();
  const abort = new AbortController();
  const got: number[] = [];
  const ended = collect(await follow(log.pushing, 'new', abort.signal, { tailCheckMs: TAIL_CHECK_MS }), got);
  await until(() => log.pushes.size > 0);
  log.append(0);
  log.push();
  log.expire(1);
  await new Promise(resolve => setTimeout(resolve, 5 * TAIL_CHECK_MS));
  assert.equal(log.reads.length, 1);
  abort.abort();
  await ended;
});

test('the tail is pushed after PUSH_AFTER_CHECKS checks that found nothing, not sooner', async () => {
  const log = taskLog();
  const abort = new AbortController();
  const checksBefore: number[] = [];
  const source: FollowSource = {
    ...log.source,
    pushTail() {
      checksBefore.push(log.checks);
      return () => {};
    },
  };
  const ended = collect(await follow(source, 'new', abort.signal, { tailCheckMs: TAIL_CHECK_MS }), []);
  await until(() => log.checks >= PUSH_AFTER_CHECKS + 3);
  abort.abort();
  await ended;
  assert.deepEqual(checksBefore, [PUSH_AFTER_CHECKS]);
});

test('a tail that is not a record is read once, not after each check', async () => {
  const log = taskLog();
  const abort = new AbortController();
  let checks = 0;
  const source: FollowSource = {
    ...log.source,
    async *read(from) {
      yield* log.source.read(from);
      return 7;
    },
    async tail() {
      checks += 1;
      return { seq: 7, startSeq: 0 };
    },
  };
  const ended = collect(await follow(source, 'new', abort.signal, { tailCheckMs: TAIL_CHECK_MS }), []);
  await until(() => checks >= 4);
  abort.abort();
  await ended;
  assert.deepEqual(log.reads, [1]);
});

test('a check of the tail that fails is reported, and repeated after the next quiet time', async () => {
  const log = taskLog();
  const abort = new AbortController();
  const got: number[] = [];
  let failures = 0;
  const tail = async () => {
    if (++failures <= 2) throw new Error('no leader');
    return log.source.tail();
  };
  const failed: unknown[] = [];
  const options = { tailCheckMs: TAIL_CHECK_MS, onCheckFailed: (error: unknown) => void failed.push(error) };
  const ended = collect(await follow({ ...log.source, tail }, 'new', abort.signal, options), got);
  log.append(0);
  await until(() => got.length >= 1);
  abort.abort();
  await ended;
  assert.ok(failures > 2);
  assert.deepEqual(failed.map(String), ['Error: no leader', 'Error: no leader']);
});

test('a gap is read from its first record (or the first record of a new task), never from the beginning of the log', async () => {
  const log = taskLog();
  const reasons: RereadReason[] = [];
  const abort = new AbortController();
  const got: number[] = [];
  const options = { tailCheckMs: 60_000, onReread: (reason: RereadReason) => void reasons.push(reason) };
  const ended = collect(await follow(log.source, 'new', abort.signal, options), got);
  log.append(0, { gap: 1_000 });
  log.append(1);
  log.append(1);
  await untilTick(() => got.length >= 3);
  log.append(0);
  log.append(1);
  await untilTick(() => got.length >= 5);
  abort.abort();
  await ended;
  assert.deepEqual(got, [1_000, 1_001, 1_002, 1_003, 1_004]);
  assert.deepEqual(log.reads, [1_000, 1_003]);
  assert.deepEqual(reasons, ['gap', 'gap']);
});

test('a follower that starts after the newest record reads nothing from the log if live records show that none is missing', async () => {
  const log = taskLog();
  log.append(1);
  const abort = new AbortController();
  const got: number[] = [];
  const ended = collect(await follow(log.source, { newest: 1 }, abort.signal), got);
  log.append(1);
  log.append(1);
  await new Promise(resolve => setTimeout(resolve, 2 * NEWEST_CHECK_MS));
  abort.abort();
  await ended;
  assert.deepEqual(got, [2, 3]);
  assert.deepEqual(log.reads, []);
});

test('a record stored between the newest one and the subscription is read when the next one arrives, or after a short quiet time', async () => {
  for (const next of [true, false]) {
    const log = taskLog();
    log.append(1);
    log.append(1);
    const abort = new AbortController();
    const got: number[] = [];
    const reasons: RereadReason[] = [];
    const options = { tailCheckMs: 60_000, onReread: (reason: RereadReason) => void reasons.push(reason) };
    const ended = collect(await follow(log.source, { newest: 1 }, abort.signal, options), got);
    if (next) log.append(1);
    await until(() => got.length >= (next ? 2 : 1));
    abort.abort();
    await ended;
    assert.deepEqual(got, next ? [2, 3] : [2]);
    assert.deepEqual(log.reads, [2]);
    assert.deepEqual(reasons, next ? ['gap'] : []);
  }
});

test('a follower misses no record when the start of the task moves past those that it has seen', async () => {
  const log = taskLog();
  for (let i = 0; i < 3; i += 1) log.append(1);
  const abort = new AbortController();
  const got: number[] = [];
  const ended = collect(await follow(log.source, 1, abort.signal, { tailCheckMs: 60_000 }), got);
  await untilTick(() => got.length >= 2);
  log.append(0);
  log.append(0);
  const live = log.next(6, 5);
  for (const { onLive } of log.listeners) onLive(live);
  await untilTick(() => got.length >= 5);
  abort.abort();
  await ended;
  assert.deepEqual(got, [2, 3, 4, 5, 6]);
});

test('the buffer of a follower is bounded in records and bytes; on overflow the log is read again', async () => {
  for (const bound of [{ bufferRecordsMax: 4 }, { bufferBytesMax: 400 }]) {
    const log = taskLog();
    const reasons: RereadReason[] = [];
    const abort = new AbortController();
    const onReread = (reason: RereadReason) => void reasons.push(reason);
    const live = await follow(log.source, 'new', abort.signal, { ...bound, tailCheckMs: 60_000, onReread });
    for (let i = 0; i < 4; i += 1) log.append(1);
    assert.deepEqual(reasons, []);
    log.append(1);
    assert.deepEqual(reasons, ['overflow']);
    const got: number[] = [];
    const ended = collect(live, got);
    await untilTick(() => got.length >= 5);
    for (let count = 6; count <= 20; count += 1) {
      log.append(1);
      await untilTick(() => got.length >= count);
    }
    assert.deepEqual(reasons, ['overflow'], 'what was read leaves its room');
    abort.abort();
    await ended;
    assert.deepEqual(
      got,
      Array.from({ length: 20 }, (_, index) => index + 1),
    );
  }
});

test('a predecessor that retention removed is not a gap', async () => {
  const log = taskLog();
  for (let i = 0; i < 3; i += 1) log.append(1);
  const abort = new AbortController();
  const got: number[] = [];
  const ended = collect(await follow(log.source, 3, abort.signal, { tailCheckMs: 60_000 }), got);
  await untilTick(() => log.reads.length >= 1);
  log.expire(3);
  log.append(1);
  await untilTick(() => got.length >= 1);
  abort.abort();
  await ended;
  assert.deepEqual(got, [4]);
  assert.deepEqual(log.reads, [4]);
});

test('a follower that cannot read fails and unsubscribes', async () => {
  const log = taskLog();
  const source: FollowSource = {
    ...log.source,
    // biome-ignore lint/correctness/useYield: it fails before the first record
    async *read() {
      throw new Error('no log');
    },
  };
  const live = await follow(source, 0, new AbortController().signal);
  await assert.rejects(collect(live, []), /no log/);
  assert.equal(log.listeners.size, 0);
});

test('a follower whose signal aborts while it subscribes unsubscribes, even if it is not being read', async () => {
  const log = taskLog();
  const abort = new AbortController();
  const subscribe: FollowSource['subscribe'] = async (...listeners) => {
    const unsubscribe = await log.source.subscribe(...listeners);
    abort.abort();
    return unsubscribe;
  };
  await follow({ ...log.source, subscribe }, 'new', abort.signal);
  assert.equal(log.listeners.size, 0);
});

test('follow rejects when the subscription fails', async () => {
  const subscribe = () => Promise.reject(new Error('no log'));
  await assert.rejects(follow({ ...taskLog().source, subscribe }, 0, new AbortController().signal), /no log/);
});

/** A follower that has received five records. */
async function followerOfFive(source: (log: ReturnType<typeof taskLog>) => FollowSource, tailCheckMs: number) {
  const log = taskLog();
  const abort = new AbortController();
  const got: number[] = [];
  const ended = collect(await follow(source(log), 'new', abort.signal, { tailCheckMs }), got);
  for (let i = 0; i < 5; i += 1) log.append(1);
  await untilTick(() => got.length >= 5);
  return { log, abort, got, ended };
}

test('a log that ends before a yielded record ends the follower, after a quiet time or a reconnect', async () => {
  for (const lost of [2, 5]) {
    const quiet = await followerOfFive(({ source }) => source, TAIL_CHECK_MS);
    quiet.log.lose(lost);
    await assert.rejects(quiet.ended, HistoryLost);
    const reconnected = await followerOfFive(({ source }) => source, 60_000);
    reconnected.log.lose(lost);
    reconnected.log.reconnect();
    await assert.rejects(reconnected.ended, HistoryLost);
    assert.deepEqual(reconnected.log.asked, [5]);
  }
});

test('a live record whose predecessor is older than a yielded record ends the follower', async () => {
  const { log, got, ended } = await followerOfFive(({ source }) => source, 60_000);
  log.lose(3);
  log.append(1, { gap: 10 });
  await assert.rejects(ended, HistoryLost);
  assert.deepEqual(got, [1, 2, 3, 4, 5]);
});

test('reused sequences are noticed before they pass the newest one', async () => {
  const { log, got, ended } = await followerOfFive(({ source }) => source, 60_000);
  log.lose(3);
  log.append(1);
  await assert.rejects(ended, HistoryLost);
  assert.deepEqual(got, [1, 2, 3, 4, 5]);
});

/** Followers that have received record 5, which `replace` then replaces with another one at the same sequence. */
for (const [how, start] of Object.entries({
  'arrived live': { after: 'new', continuesText: false },
  'was skipped': { after: { newest: 0, skipsText: true }, continuesText: true },
  'was read from the log': { after: 0, continuesText: false },
  'was named by its reader': { after: { newest: 5, id: 'append-5' }, continuesText: false },
  'was only named by its sequence': { after: { newest: 5 }, continuesText: false },
} satisfies Record<string, { after: FollowStart; continuesText: boolean }>)) {
  test(`a follower ends if another record has replaced the newest one and that ${how}`, async () => {
    const quiet = { tailCheckMs: TAIL_CHECK_MS };
    const live = { tailCheckMs: 60_000 };
    const noticedBy = {
      'a check of the tail': { options: quiet, notice: () => {} },
      'a reconnect': { options: live, notice: (log: ReturnType<typeof taskLog>) => log.reconnect() },
      'a live message': { options: live, times: 1, notice: () => {} },
    };
    for (const [by, { options, notice, times = 0 }] of Object.entries({ ...noticedBy } as Record<
      string,
      { options: { tailCheckMs: number }; times?: number; notice: (log: ReturnType<typeof taskLog>) => void }
    >)) {
      const log = taskLog();
      const stop = new AbortController();
      const isStored = typeof start.after === 'number' || (typeof start.after === 'object' && start.after.newest > 0);
      if (isStored) for (let n = 0; n < 5; n += 1) log.append(0, start);
      const got: number[] = [];
      const ended = collect(await follow(log.source, start.after, stop.signal, options), got);
      if (!isStored) for (let n = 0; n < 5; n += 1) log.append(1, start);
      if (typeof start.after !== 'object') await untilTick(() => got.length >= 5);
      // Only now does the follower know which record it is. Without the id, only a check of the tail can name it.
      const knows = typeof start.after !== 'object' || 'id' in start.after || 'skipsText' in start.after;
      if (!knows) log.reconnect();
      await untilTick(() => knows || log.checks !== 0);
      await tick();
      log.lose(1);
      log.append(times, start);
      notice(log);
      await assert.rejects(ended, HistoryLost, by);
      assert.equal(log.asked.at(-1), 5, by);
    }
  });
}

test('a follower whose tail is pushed ends if another record has replaced the newest one', async () => {
  for (const isPushed of [false, true]) {
    const { log, ended } = await followerOfFive(({ pushing }) => pushing, TAIL_CHECK_MS);
    await until(() => log.pushes.size > 0);
    if (isPushed) log.push();
    await tick();
    const { checks } = log;
    log.lose(1);
    log.append(0);
    log.push();
    await assert.rejects(ended, HistoryLost);
    if (isPushed) assert.equal(log.checks, checks + 1);
  }
});

test('a follower ends at a pushed tail that is older than the previous one, if the log has lost records', async () => {
  const { log, ended } = await followerOfFive(({ pushing }) => pushing, TAIL_CHECK_MS);
  await until(() => log.pushes.size > 0);
  log.push();
  await tick();
  log.lose(3);
  log.append(0);
  log.push();
  await assert.rejects(ended, HistoryLost);
});

test('a record that is reported again, in any way, is recognized without a request to the leader', async () => {
  const { log, abort, got, ended } = await followerOfFive(({ pushing }) => pushing, TAIL_CHECK_MS);
  await until(() => log.pushes.size > 0);
  log.push();
  log.push();
  await tick();
  const { checks } = log;
  log.reconnect();
  await untilTick(() => log.checks !== checks);
  log.append(2);
  await untilTick(() => got.length >= 6);
  log.push();
  await tick();
  abort.abort();
  await ended;
  assert.deepEqual([got, log.asked], [[1, 2, 3, 4, 5, 6], []]);
});

test('a record folded again after a loss ends only followers that have yielded lost records', async () => {
  const folded = (log: ReturnType<typeof taskLog>, lostAfter: number) => {
    const live = log.next(log.records.at(-1)!.seq + 1, 1);
    const record = live.decode()!.record;
    for (const fact of record.facts) Object.assign(fact, { generation: 1_000, lostAfter });
    for (const { onLive } of log.listeners) onLive(live);
  };
  const other = await followerOfFive(({ source }) => source, 60_000);
  folded(other.log, 3);
  await assert.rejects(other.ended, HistoryLost);
  const same = await followerOfFive(({ source }) => source, 60_000);
  folded(same.log, 5);
  await untilTick(() => same.got.length >= 6);
  same.abort.abort();
  await same.ended;
});

test('a lagging tail, or one that retention removed, does not end a follower', async () => {
  const lagging = await followerOfFive(
    ({ source, records }) => ({ ...source, tail: async () => ({ seq: records.length - 1, startSeq: 1 }) }),
    TAIL_CHECK_MS,
  );
  const { log, abort, got, ended } = lagging;
  await untilTick(() => log.asked.length >= 3);
  log.append(1);
  await untilTick(() => got.length >= 6);
  abort.abort();
  await ended;
  const expired = await followerOfFive(({ source }) => source, TAIL_CHECK_MS);
  expired.log.expire(5);
  await untilTick(() => expired.log.asked.length >= 3);
  expired.log.append(1);
  await untilTick(() => expired.got.length >= 6);
  expired.abort.abort();
  await expired.ended;
});

test('a follower that skips text receives the other records in order, and reads the log if one of them is lost', async () => {
  const log = taskLog();
  log.append(1);
  const abort = new AbortController();
  const reread: RereadReason[] = [];
  const options = { tailCheckMs: TAIL_CHECK_MS, onReread: (why: RereadReason) => void reread.push(why) };
  const seen: number[] = [];
  const ended = collect(await follow(log.source, { newest: 1, skipsText: true }, abort.signal, options), seen);
  for (let n = 0; n < 5; n += 1) log.append(1, { continuesText: true });
  log.append(1);
  await until(() => seen.length === 1);
  assert.deepEqual([seen, log.reads], [[7], []]);
  log.append(1, { continuesText: true });
  // The live message is lost. The next live record names this one, and the log is read, together with the text that follows it.
  log.append(0);
  log.append(1, { continuesText: true });
  await until(() => seen.includes(9));
  assert.ok(reread.includes('gap'));
  abort.abort();
  await ended;
});
