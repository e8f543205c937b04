import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { Fold } from '@hopline/a2a';
import { type FactRecord, isVisible } from '@hopline/events';
import { createInputWriter, type InputWriter } from '@hopline/log';
import { createMemoryLog, type MemoryLog } from '@hopline/log/memory';
import { createLogger, type HopMetrics } from '@hopline/telemetry';
import { createRelay, type Relay } from './relay.ts';

const metrics = new Proxy({}, { get: () => ({ add() {}, recordMs() {}, observe() {} }) }) as HopMetrics;
const logger = createLogger({ service: 'relay', instance: 'test', level: 'silent' as never });
const coalesce = { eventCostMs: 0, holdMsMax: 100, chunkBytesMax: 32_768 };
const COMPLETED = 'TASK_STATE_COMPLETED';

const relayOn = (log: MemoryLog, metered = metrics): Promise<Relay> =>
  createRelay({ log, instance: 'relay', coalesce, metrics: metered, logger, leaseMs: 120, heartbeatMs: 30 });

async function sendMessage(log: MemoryLog, taskId: string): Promise<void> {
  const message = { messageId: 'm', role: 'ROLE_USER' as const, parts: [{ text: 'hello' }] };
  const input = { kind: 'message', message, contextId: 'c', role: 'agent.echo', profile: 'transparent', creates: true } as const;
  await log.inputs.append(taskId, { v: 1, at: Date.now(), from: 'client', input }, { id: `${taskId}:m` });
}

const writerOf = (log: MemoryLog, taskId: string): InputWriter =>
  createInputWriter(log.inputs, { taskId, producer: { id: 'agent', agent: 'echo', turn: 1, item: 1, attempt: 1 } });

async function write(out: InputWriter, ...tokens: string[]): Promise<void> {
  for (const token of tokens) {
    out.token('a', token);
    await out.flush();
  }
}

async function begin(log: MemoryLog, taskId: string, ...tokens: string[]): Promise<InputWriter> {
  await sendMessage(log, taskId);
  const out = writerOf(log, taskId);
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
  const records: FactRecord[] = [];
  const fold = new Fold();
  for await (const { record } of log.facts.read(taskId, 1)) records.push(record);
  const visible = records.flatMap(({ facts }) => facts).filter(isVisible);
  for (const { event } of visible) fold.add(event);
  return {
    fold,
    generations: visible.map(({ generation }) => generation),
    losses: visible.flatMap(({ lostAfter }) => lostAfter ?? []),
  };
}

async function storedWhen(log: MemoryLog, taskId: string, isEnough: (fold: Fold) => boolean) {
  for (;;) {
    const found = await stored(log, taskId);
    if (isEnough(found.fold)) return found;
    await sleep(5);
  }
}

const isDone = ({ task }: Fold) => task?.status.state === COMPLETED;
const hasText = (text: string) => (fold: Fold) => fold.textOf('response') === text;

/** Asserts that each generation follows the previous one, with one exception: there it is the time, and its event names the previous one. */
function assertLeap({ generations, losses }: Stored, startedAt: number): void {
  const leaps = generations.flatMap((generation, index) => {
    const before = generations[index - 1] ?? 0;
    return generation === before + 1 ? [] : [{ before, generation }];
  });
  assert.equal(leaps.length, 1, generations.join());
  assert.ok(leaps[0]!.generation >= startedAt);
  assert.deepEqual(losses, [leaps[0]!.before]);
}

test('a running task whose newest facts are gone has all its text, and its generations continue above the lost ones', {
  timeout: 20_000,
}, async t => {
  const log = createMemoryLog();
  const startedAt = Date.now();
  const kinds: string[] = [];
  const logEvents = { add: (_count: number, labels?: { kind?: string }) => void kinds.push(labels?.kind ?? '') };
  const relay = await relayOn(
    log.another(),
    new Proxy(metrics, { get: (to, name) => (name === 'logEvents' ? logEvents : to[name as never]) }),
  );
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

for (const when of ['while its relay runs', 'while no relay runs'] as const) {
  test(`lost tasks come back with their ends when the log loses its tail ${when}`, { timeout: 30_000 }, async t => {
    const log = createMemoryLog({ shards: 2 });
    let relay = await relayOn(log.another());
    t.after(() => relay.stop());
    await begin(log, 'early');
    await storedWhen(log, 'early', ({ task }) => task?.status.state === 'TASK_STATE_WORKING');
    const { lastSeq } = await log.facts.extent();
    for (const taskId of ['a', 'b', 'c', 'd']) await complete(await begin(log, taskId, 'whole ', taskId));
    for (const taskId of ['a', 'b', 'c', 'd']) await storedWhen(log, taskId, isDone);
    while ((await log.tasks.get('d'))?.value.state !== COMPLETED) await sleep(5);
    if (when === 'while no relay runs') await relay.stop();
    log.loseFacts(lastSeq);
    if (when === 'while no relay runs') {
      // Another task reuses the sequences, so the end of the log does not show the loss.
      for (let n = 1; n <= 20; n += 1) log.garbage('facts', 'x');
      relay = await relayOn(log.another());
    }
    for (const taskId of ['a', 'b', 'c', 'd']) {
      const { fold } = await storedWhen(log, taskId, isDone);
      assert.deepEqual([fold.textOf('response'), fold.violations], [`whole ${taskId}`, []]);
    }
    await sendMessage(log, 'new');
    await storedWhen(log, 'new', ({ task }) => task !== undefined);
  });
}

test('an idle task that continues before its relay has noticed the loss does not fail because of lost inputs', {
  timeout: 30_000,
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

test('a task whose facts retention removed does not begin again when the log loses its tail', { timeout: 20_000 }, async t => {
  const log = createMemoryLog({ shards: 1 });
  let relay = await relayOn(log.another());
  t.after(() => relay.stop());
  await complete(await begin(log, 'old', 'x'));
  await storedWhen(log, 'old', isDone);
  while ((await log.tasks.get('old'))?.value.state !== COMPLETED) await sleep(5);
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

test('a relay that dies while it folds lost facts again leaves the rest to its successor', { timeout: 20_000 }, async t => {
  const log = createMemoryLog({ shards: 1 });
  const first = await relayOn(log.another());
  const out = await begin(log, 't', 'one ', 'two ', 'three ');
  await storedWhen(log, 't', hasText('one two three '));
  await first.stop();
  log.loseFacts(1);
  const own = log.another();
  const second = await relayOn(own);
  const { append } = own.facts;
  own.facts.append = () => new Promise(() => {});
  while ((await log.leases.get('shard.0'))?.value.refoldTo === undefined) await sleep(5);
  own.facts.append = append;
  await own.close();
  void second.stop().catch(() => {});
  const third = await relayOn(log.another());
  t.after(() => third.stop());
  const { losses } = await storedWhen(log, 't', hasText('one two three '));
  await complete(out);
  assert.equal(losses.length, 1);
  while ((await log.leases.get('shard.0'))?.value.refoldTo !== undefined) await sleep(5);
});
