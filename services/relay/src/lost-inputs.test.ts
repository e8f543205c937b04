import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ArtifactUpdated } from '@hopline/events';
import type { InputWriter } from '@hopline/log';
import { createMemoryLog, type MemoryLog } from '@hopline/log/memory';
import { INPUTS_LOST } from '@hopline/task';
import { recordsOf, relayOn, sendMessage, shownWhen, storedWhen, writerOf } from './relay.test-kit.ts';

async function write(out: InputWriter, text: string): Promise<void> {
  out.token('a', text);
  await out.flush();
}

/** Waits until another input of the same shard, stored after `seq`, is folded. That shows that a relay has read everything up to `seq`. */
async function readUpTo(log: MemoryLog, seq: number): Promise<void> {
  const stored = await sendMessage(log, 'other');
  assert.ok(stored.seq > seq);
  await storedWhen(log, () => true, 'other');
}

/** Simulates retention: removes every stored input of the task. */
async function expireInputs(log: MemoryLog): Promise<void> {
  let newest = 0;
  for await (const { seq } of log.inputs.read('t')) newest = seq;
  log.expire('inputs', 't', newest + 1);
}

for (const heldBefore of ['nothing', 'half a pair'] as const) {
  test(`inputs removed while every relay was away fail the task, ${heldBefore} held before`, { timeout: 120_000 }, async () => {
    const log = createMemoryLog();
    const first = await relayOn(log.another());
    await sendMessage(log);
    const out = writerOf(log, { item: 1 });
    out.add({ kind: 'status', state: 'TASK_STATE_WORKING' });
    out.add({ kind: 'open', lane: 'a', artifact: { name: 'response' } });
    await write(out, 'The dose is 1');
    if (heldBefore === 'half a pair') {
      await write(out, '\ud83d');
      out.add({ kind: 'artifact', lane: 'n', artifact: { name: 'n' }, parts: [{ text: 'n' }], append: false, last: true });
      await out.flush();
      await shownWhen(log, fold => fold.textOf('n') === 'n');
    }
    await shownWhen(log, fold => fold.textOf('response') === 'The dose is 1');
    await first.stop();
    if (heldBefore === 'nothing') await write(out, '00');
    await expireInputs(log);
    const second = await relayOn(log.another());
    await write(out, ' mg a day');
    out.add({ kind: 'status', state: 'TASK_STATE_COMPLETED' });
    await out.flush();
    const fold = await shownWhen(log, ({ ended }) => ended);
    assert.deepEqual(
      [fold.task?.status.state, fold.task?.metadata, fold.textOf('response')],
      ['TASK_STATE_FAILED', { reason: INPUTS_LOST, retryable: false }, 'The dose is 1'],
    );
    await second.stop();
  });
}

test('an attempt whose first inputs were removed fails the task', { timeout: 120_000 }, async () => {
  const log = createMemoryLog();
  const first = await relayOn(log.another());
  await sendMessage(log);
  await shownWhen(log, fold => fold.task !== undefined);
  await first.stop();
  const out = writerOf(log, { item: 1 });
  out.add({ kind: 'status', state: 'TASK_STATE_WORKING' });
  await out.flush();
  await expireInputs(log);
  const second = await relayOn(log.another());
  out.add({ kind: 'status', state: 'TASK_STATE_COMPLETED' });
  const fold = await shownWhen(log, ({ ended }) => ended);
  assert.equal(fold.task?.metadata?.reason, INPUTS_LOST);
  await second.stop();
});

test('the next relay reads an input without a fact again, so that the input after it does not look like a gap', {
  timeout: 120_000,
}, async () => {
  const log = createMemoryLog({ shards: 1 });
  const first = await relayOn(log.another());
  await sendMessage(log);
  const before = writerOf(log, { item: 1 });
  before.add({ kind: 'status', state: 'TASK_STATE_WORKING' });
  before.add({ kind: 'open', lane: 'a', artifact: { name: 'response' } });
  await write(before, 'one');
  await shownWhen(log, fold => fold.textOf('response') === 'one');
  const again = writerOf(log, { item: 1, attempt: 2 });
  // The task is working already.
  again.add({ kind: 'status', state: 'TASK_STATE_WORKING' });
  await again.flush();
  let newest = 0;
  for await (const { seq } of log.inputs.read('t')) newest = seq;
  await readUpTo(log, newest);
  await first.stop();
  const second = await relayOn(log.another());
  again.add({ kind: 'open', lane: 'a', artifact: { name: 'response' } });
  await write(again, 'two');
  again.add({ kind: 'status', state: 'TASK_STATE_COMPLETED' });
  const fold = await shownWhen(log, ({ ended }) => ended);
  assert.deepEqual([fold.task?.status.state, fold.task?.metadata?.reason], ['TASK_STATE_COMPLETED', undefined]);
  await second.stop();
});

test('a task does not fail because an earlier version did not keep its last ordinals up to date', {
  timeout: 120_000,
}, async () => {
  const log = createMemoryLog();
  const first = await relayOn(log.another());
  await sendMessage(log);
  const out = writerOf(log, { item: 1 });
  out.add({ kind: 'open', lane: 'a', artifact: { name: 'response' } });
  await write(out, 'one');
  await shownWhen(log, fold => fold.textOf('response') === 'one');
  await first.stop();
  await write(out, ' two');
  let folded = 0;
  for await (const { seq } of log.inputs.read('t')) folded = seq;
  // An earlier version folds the record, and leaves members unchanged that it does not know.
  const { seq: expected, record } = (await log.facts.last('t'))!;
  const [fact] = record.facts.filter(({ kind }) => kind === 'artifact.updated') as ArtifactUpdated[];
  const generation = record.aggregate.generation + 1;
  const update = fact!.event.artifactUpdate;
  const artifactUpdate = { ...update, artifact: { ...update.artifact, parts: [{ text: ' two' }] }, append: true };
  const next = { ...fact!, generation, event: { artifactUpdate } };
  const lanes = { a: { ...record.aggregate.lanes.a!, n: 3, phase: 'open' as const } };
  const aggregate = { ...record.aggregate, generation, lanes, foldedSeq: folded };
  await log.facts.append({ ...record, facts: [next], aggregate, startSeq: 1 }, { expected, id: 'earlier' });
  const second = await relayOn(log.another());
  await write(out, ' three');
  out.add({ kind: 'status', state: 'TASK_STATE_COMPLETED' });
  const fold = await shownWhen(log, ({ ended }) => ended);
  assert.deepEqual([fold.task?.status.state, fold.textOf('response')], ['TASK_STATE_COMPLETED', 'one two three']);
  await second.stop();
});

test('the first record after a takeover has the takeover’s time and cause, and each record names the relay that stored it', async () => {
  const log = createMemoryLog();
  const first = await relayOn(log.another());
  await sendMessage(log);
  const out = writerOf(log, { item: 1 });
  out.add({ kind: 'open', lane: 'a', artifact: { name: 'response' } });
  await write(out, 'one ');
  await shownWhen(log, fold => fold.textOf('response') === 'one ');
  await first.stop();
  const takenAt = Date.now();
  const second = await relayOn(log.another());
  await write(out, 'two ');
  await shownWhen(log, fold => fold.textOf('response') === 'one two ');
  await write(out, 'three ');
  await shownWhen(log, fold => fold.textOf('response') === 'one two three ');
  await second.stop();
  const records = await recordsOf(log);
  const relays = [...new Set(records.map(({ relay }) => relay))];
  assert.equal(relays.length, 2, `${relays}`);
  assert.match(relays[0] ?? '', /^relay-[0-9a-f]{8}$/);
  const [taken, ...more] = records.filter(({ record }) => record.takeover !== undefined);
  assert.deepEqual([taken?.relay, taken?.record.takeover?.cause, more.length], [relays[1], 'released', 0]);
  assert.ok(taken!.record.takeover!.at >= takenAt);
});

test('a takeover does not fail a task whose inputs are all stored, even while a later attempt writes', {
  timeout: 120_000,
}, async () => {
  const log = createMemoryLog();
  let relay = await relayOn(log.another());
  await sendMessage(log);
  let text = '';
  for (const attempt of [1, 2]) {
    const out = writerOf(log, { item: 1, attempt });
    text = '';
    out.add({ kind: 'open', lane: 'a', artifact: { name: 'response' } });
    for (let token = 0; token < 5; token++) {
      text += `${attempt}.${token} `;
      await write(out, `${attempt}.${token} `);
      await shownWhen(log, fold => fold.textOf('response') === text);
      await relay.stop();
      relay = await relayOn(log.another());
    }
    if (attempt === 2) out.add({ kind: 'status', state: 'TASK_STATE_COMPLETED' });
  }
  const fold = await shownWhen(log, ({ ended }) => ended);
  assert.deepEqual([fold.task?.status.state, fold.textOf('response')], ['TASK_STATE_COMPLETED', text]);
  await relay.stop();
});
