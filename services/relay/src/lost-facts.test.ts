import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Fold } from '@hopline/a2a';
import { isVisible } from '@hopline/events';
import { type InputWriter, LogUnavailable } from '@hopline/log';
import { createMemoryLog, type MemoryLog } from '@hopline/log/memory';
import { countingMetrics } from '../../../test/kit/counting-metrics.ts';
import { until } from '../../../test/kit/until.ts';
import { foldOf, kill, recordsOf, relayOn, sendMessage, writerOf } from './relay.test-kit.ts';

const COMPLETED = 'TASK_STATE_COMPLETED';

async function write(out: InputWriter, ...tokens: string[]): Promise<void> {
  for (const token of tokens) {
    out.token('a', token);
    await out.flush();
  }
}

async function begin(log: MemoryLog, taskId: string, ...tokens: string[]): Promise<InputWriter> {
  await sendMessage(log, taskId, { creates: true });
  const out = writerOf(log, { taskId, item: 1 });
  out.add({ kind: 'status', state: 'TASK_STATE_WORKING' });
  out.add({ kind: 'open', lane: 'a', artifact: { name: 'response' } });
  await write(out, ...tokens);
  return out;
}

async function complete(out: InputWriter): Promise<void> {
  out.add({ kind: 'close', lane: 'a' });
  out.add({ kind: 'status', state: COMPLETED });
  await out.flush();
}

type Stored = { fold: Fold; generations: number[]; losses: number[] };

async function stored(log: MemoryLog, taskId: string): Promise<Stored> {
  const records = (await recordsOf(log, taskId)).map(({ record }) => record);
  const visible = records.flatMap(({ facts }) => facts).filter(isVisible);
  return {
    fold: foldOf(records),
    generations: visible.map(({ generation }) => generation),
    losses: visible.flatMap(({ lostAfter }) => lostAfter ?? []),
  };
}

const storedWhen = (log: MemoryLog, taskId: string, isEnough: (fold: Fold) => boolean): Promise<Stored> =>
  until(async () => {
    const found = await stored(log, taskId);
    return isEnough(found.fold) && found;
  }, `task ${taskId} with ${isEnough}`);

const isDone = ({ task }: Fold) => task?.status.state === COMPLETED;
const hasText = (text: string) => (fold: Fold) => fold.textOf('response') === text;

/** A log of one shard, and its first relay, which has stored the first token of task `t`. */
async function begun() {
  const log = createMemoryLog({ shards: 1 });
  const processLog = log.another();
  const startedAt = Date.now();
  const first = await relayOn(processLog);
  const out = await begin(log, 't', 'one ');
  await storedWhen(log, 't', hasText('one '));
  return { log, processLog, startedAt, first, out };
}

/**
 * Asserts that each generation follows the previous one, except for one event whose generation is the time and which names the previous
 * generation.
 */
function assertLeap({ generations, losses }: Stored, startedAt: number): void {
  const leaps = generations.flatMap((generation, index) => {
    const before = generations[index - 1] ?? 0;
    return generation === before + 1 ? [] : [{ before, generation }];
  });
  assert.equal(leaps.length, 1, generations.join());
  assert.ok(leaps[0]!.generation >= startedAt);
  assert.deepEqual(losses, [leaps[0]!.before]);
}

test('a running task whose newest facts are lost keeps all its text, and its generations continue above the lost ones', {
  timeout: 120_000,
}, async t => {
  const log = createMemoryLog();
  const startedAt = Date.now();
  const kinds: string[] = [];
  const metrics = countingMetrics((name, _count, { kind = '' }) => void (name === 'logEvents' && kinds.push(kind)));
  const relay = await relayOn(log.another(), { metrics });
  t.after(() => relay.stop());
  const out = await begin(log, 't', 'one ', 'two ', 'three ');
  await storedWhen(log, 't', hasText('one two three '));
  log.loseFacts(2);
  await write(out, 'four');
  await complete(out);
  const found = await storedWhen(log, 't', isDone);
  assert.equal(found.fold.textOf('response'), 'one two three four');
  assert.deepEqual(found.fold.violations, []);
  assertLeap(found, startedAt);
  assert.deepEqual([...new Set(kinds)], ['facts_lost']);
});

test('a loss that removes the leap after an earlier loss does not make the relay repeat a generation', {
  timeout: 120_000,
}, async t => {
  const log = createMemoryLog();
  const relay = await relayOn(log.another());
  t.after(() => relay.stop());
  const out = await begin(log, 't', 'one ');
  const once = await storedWhen(log, 't', hasText('one '));
  log.loseFacts(1);
  await until(async () => (await stored(log, 't')).generations.at(-1)! > once.generations.at(-1)! + 1);
  await storedWhen(log, 't', hasText('one '));
  const { lastSeq } = await log.facts.extent();
  await write(out, 'two ');
  const shown = [(await storedWhen(log, 't', hasText('one two '))).generations.at(-1)!];
  // After the first of these, the task is ahead of the clock.
  for (let losses = 1; losses <= 2; losses += 1) {
    log.loseFacts(lastSeq);
    const again = await until(async () => {
      const { fold, generations } = await stored(log, 't');
      return hasText('one two ')(fold) && generations.at(-1) !== shown.at(-1) && generations.at(-1);
    });
    assert.ok(again > shown.at(-1)!, `${again} after ${shown}`);
    shown.push(again);
  }
});

for (const when of ['while its relay runs', 'while no relay runs'] as const) {
  test(`lost tasks come back with their ends when the log loses its tail ${when}`, { timeout: 120_000 }, async t => {
    const log = createMemoryLog({ shards: 2 });
    let relay = await relayOn(log.another());
    t.after(() => relay.stop());
    await begin(log, 'early');
    await storedWhen(log, 'early', ({ task }) => task?.status.state === 'TASK_STATE_WORKING');
    const { lastSeq } = await log.facts.extent();
    for (const taskId of ['a', 'b', 'c', 'd']) await complete(await begin(log, taskId, 'whole ', taskId));
    for (const taskId of ['a', 'b', 'c', 'd']) await storedWhen(log, taskId, isDone);
    await until(async () => (await log.tasks.get('d'))?.value.state === COMPLETED);
    if (when === 'while no relay runs') await relay.stop();
    log.loseFacts(lastSeq);
    if (when === 'while no relay runs') {
      // Another task reuses the sequences, so the end of the log does not reveal the loss.
      for (let n = 1; n <= 20; n += 1) log.garbage('facts', 'x');
      relay = await relayOn(log.another());
    }
    for (const taskId of ['a', 'b', 'c', 'd']) {
      const { fold } = await storedWhen(log, taskId, isDone);
      assert.deepEqual([fold.textOf('response'), fold.violations], [`whole ${taskId}`, []]);
    }
    await sendMessage(log, 'new', { creates: true });
    await storedWhen(log, 'new', ({ task }) => task !== undefined);
  });
}

test('a loss hidden by a later record is found by the next owner if the shard was handed over before the check', {
  timeout: 120_000,
}, async t => {
  const log = createMemoryLog({ shards: 1 });
  const relay = await relayOn(log.another());
  await complete(await begin(log, 'early', 'whole'));
  await storedWhen(log, 'early', isDone);
  await until(async () => (await log.tasks.get('early'))?.value.state === COMPLETED);
  log.loseFacts(0);
  for (let n = 1; n <= 20; n += 1) log.garbage('facts', 'x');
  await complete(await begin(log, 'later', 'whole'));
  await storedWhen(log, 'later', isDone);
  await relay.stop();
  const next = await relayOn(log.another());
  t.after(() => next.stop());
  const { fold } = await storedWhen(log, 'early', isDone);
  assert.deepEqual([fold.textOf('response'), fold.violations], ['whole', []]);
});

test('an idle task that continues before its relay has noticed the loss does not fail because of lost inputs', {
  timeout: 120_000,
}, async t => {
  const log = createMemoryLog({ shards: 1 });
  const relay = await relayOn(log.another());
  const out = await begin(log, 't', 'one ', 'two ');
  await storedWhen(log, 't', hasText('one two '));
  await relay.stop();
  const next = await relayOn(log.another());
  t.after(() => next.stop());
  log.loseFacts(2);
  await write(out, 'three');
  await complete(out);
  const { fold } = await storedWhen(log, 't', ({ task }) => task !== undefined && /COMPLETED|FAILED/.test(task.status.state));
  assert.deepEqual([fold.task?.status.state, fold.textOf('response')], [COMPLETED, 'one two three']);
});

test('a task whose facts retention removed does not begin again when the log loses its tail', { timeout: 120_000 }, async t => {
  const log = createMemoryLog({ shards: 1 });
  let relay = await relayOn(log.another());
  t.after(() => relay.stop());
  await complete(await begin(log, 'old', 'x'));
  await storedWhen(log, 'old', isDone);
  await until(async () => (await log.tasks.get('old'))?.value.state === COMPLETED);
  const kept = (await log.facts.extent()).lastSeq;
  await complete(await begin(log, 'kept', 'y'));
  await storedWhen(log, 'kept', isDone);
  const { lastSeq } = await log.facts.extent();
  await complete(await begin(log, 'lost', 'z'));
  await storedWhen(log, 'lost', isDone);
  await relay.stop();
  log.expireAll('facts', kept + 1);
  log.loseFacts(lastSeq);
  relay = await relayOn(log.another());
  await storedWhen(log, 'lost', isDone);
  assert.equal(await log.facts.last('old'), undefined);
  assert.deepEqual((await stored(log, 'kept')).losses, []);
});

test('when a relay dies while it folds lost facts again, its successor does the rest', { timeout: 120_000 }, async t => {
  const log = createMemoryLog({ shards: 1 });
  const first = await relayOn(log.another());
  const out = await begin(log, 't', 'one ', 'two ', 'three ');
  await storedWhen(log, 't', hasText('one two three '));
  await first.stop();
  log.loseFacts(1);
  const processLog = log.another();
  const second = await relayOn(processLog);
  const { append } = processLog.facts;
  processLog.facts.append = () => new Promise(() => {});
  await until(async () => (await log.leases.get('shard.0'))?.value.refoldTo);
  processLog.facts.append = append;
  await kill(processLog, second);
  const third = await relayOn(log.another());
  t.after(() => third.stop());
  const { losses } = await storedWhen(log, 't', hasText('one two three '));
  await complete(out);
  assert.equal(losses.length, 1);
  await until(async () => (await log.leases.get('shard.0'))?.value.refoldTo === undefined);
});

test('if the log loses facts that a dead relay stored after its last lease, their generations are not used again', {
  timeout: 120_000,
}, async t => {
  const log = createMemoryLog({ shards: 1 });
  const processLog = log.another();
  const startedAt = Date.now();
  const first = await relayOn(processLog, { heartbeatMs: 60_000, leaseMs: 120 });
  const out = await begin(log, 't', 'one ', 'two ', 'three ');
  await storedWhen(log, 't', hasText('one two three '));
  await kill(processLog, first);
  log.loseFacts(2);
  assert.equal((await log.leases.get('shard.0'))?.value.newest, undefined, 'no mark shows the loss');
  const second = await relayOn(log.another());
  await complete(out);
  const found = await storedWhen(log, 't', isDone);
  assert.equal(found.fold.textOf('response'), 'one two three ');
  assertLeap(found, startedAt);
  await second.stop();
  // The next owner inherits the doubt, but this task has already leaped.
  const third = await relayOn(log.another());
  t.after(() => third.stop());
  await complete(await begin(log, 'later', 'x'));
  assert.deepEqual((await storedWhen(log, 'later', isDone)).losses, []);
});

test('a task of a dead owner continues above the lost generations, whenever its next input arrives', {
  timeout: 120_000,
}, async t => {
  const { log, processLog, startedAt, first, out } = await begun();
  await kill(processLog, first);
  // The stream has a new leader, which may have lost records.
  log.loseFacts((await log.facts.extent()).lastSeq);
  const second = await relayOn(log.another());
  await until(async () => typeof (await log.leases.get('shard.0'))?.value.leapTo === 'number');
  await second.stop();
  const third = await relayOn(log.another());
  t.after(() => third.stop());
  await write(out, 'two');
  await complete(out);
  const found = await storedWhen(log, 't', isDone);
  assert.equal(found.fold.textOf('response'), 'one two');
  assertLeap(found, startedAt);
});

test('if an append is lost whose answer a stopped relay did not await, the task continues above its generation', {
  timeout: 120_000,
}, async t => {
  const { log, processLog, startedAt, first, out } = await begun();
  const { lastSeq } = await log.facts.extent();
  const append = processLog.facts.append.bind(processLog.facts);
  processLog.facts.append = async (...args) => {
    await append(...args);
    return new Promise(() => {});
  };
  await write(out, 'two ');
  await storedWhen(log, 't', hasText('one two '));
  await first.stop();
  log.loseFacts(lastSeq);
  const second = await relayOn(log.another());
  t.after(() => second.stop());
  await complete(out);
  const found = await storedWhen(log, 't', isDone);
  assert.equal(found.fold.textOf('response'), 'one two ');
  assertLeap(found, startedAt);
});

test('after a failed start, a relay still doubts what a dead owner has stored', { timeout: 120_000 }, async t => {
  const { log, processLog, startedAt, first, out } = await begun();
  await kill(processLog, first);
  log.loseFacts((await log.facts.extent()).lastSeq);
  const next = log.another();
  const extent = next.facts.extent.bind(next.facts);
  let failures = 0;
  next.facts.extent = async () => {
    if (failures > 0) return extent();
    failures += 1;
    throw new LogUnavailable('the first start of the shard fails');
  };
  const second = await relayOn(next);
  t.after(() => second.stop());
  await write(out, 'two');
  await complete(out);
  assertLeap(await storedWhen(log, 't', isDone), startedAt);
  assert.equal(failures, 1);
});

test('a task whose relay dies continues with the next generation while the stream of facts keeps its leader', {
  timeout: 120_000,
}, async t => {
  const { log, processLog, first, out } = await begun();
  await until(async () => (await log.leases.get('shard.0'))?.value.leadership !== undefined);
  await kill(processLog, first);
  const second = await relayOn(log.another());
  t.after(() => second.stop());
  await write(out, 'two');
  await complete(out);
  const { fold, generations, losses } = await storedWhen(log, 't', isDone);
  assert.equal(fold.textOf('response'), 'one two');
  assert.deepEqual(
    generations,
    Array.from(generations, (_, index) => index + 1),
  );
  assert.deepEqual(losses, []);
});
