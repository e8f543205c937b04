import assert from 'node:assert/strict';
import { test } from 'node:test';
import { textOf } from '@hopline/a2a';
import type { InputWriter } from '@hopline/log';
import { createMemoryLog, type MemoryLog } from '@hopline/log/memory';
import { TURN_LANES_MAX } from '@hopline/task';
import { until } from '../../../test/kit/until.ts';
import { COALESCE, recordsOf, relayOn as relayWith, sendMessage, storedWhen, write, writerOf } from './relay.test-kit.ts';

/** The first half of a surrogate pair, which the coalescer holds. */
const HALF = '\ud83d';

async function startTask(log: MemoryLog): Promise<InputWriter> {
  await sendMessage(log);
  const writer = writerOf(log);
  await write(writer, { kind: 'open', lane: 'a', artifact: { name: 'a' } });
  return writer;
}

const reachedState = (log: MemoryLog, state: string) => storedWhen(log, ({ aggregate }) => aggregate.state === state);

/** Waits until the shard's checkpoint reaches the newest input. */
async function checkpointReachesEnd(log: MemoryLog): Promise<void> {
  let newest = 0;
  for await (const { seq } of log.inputs.read('t')) newest = seq;
  await until(
    async () => ((await log.leases.get('shard.0'))?.value.checkpoint ?? 0) >= newest,
    'the checkpoint reaches the newest input',
  );
}

const relayOn = (log: MemoryLog) => relayWith(log.another(), { coalesce: { ...COALESCE, eventCostMs: 80 } });

for (const when of ['before', 'after'] as const) {
  test(`half a surrogate pair ${when} the end of its task does not hold back the checkpoint or stay in memory`, {
    timeout: 120_000,
  }, async () => {
    const log = createMemoryLog({ shards: 1 });
    const relay = await relayOn(log);
    const writer = await startTask(log);
    if (when === 'before') {
      writer.token('a', HALF);
      for (let n = 0; n <= TURN_LANES_MAX; n += 1) writer.add({ kind: 'open', lane: `more ${n}`, artifact: { name: 'b' } });
      await writer.flush();
      await reachedState(log, 'TASK_STATE_FAILED');
    } else {
      await log.inputs.append('t', { v: 1, at: Date.now(), from: 'client', input: { kind: 'cancel' } }, { id: 't:cancel' });
      await reachedState(log, 'TASK_STATE_CANCELED');
      writer.token('a', HALF);
      await writer.flush();
    }
    await checkpointReachesEnd(log).finally(() => relay.stop());
  });
}

test('half a surrogate pair that ends an attempt is stored before the next attempt replaces the text', {
  timeout: 120_000,
}, async () => {
  const log = createMemoryLog({ shards: 1 });
  const relay = await relayOn(log);
  const first = await startTask(log);
  first.token('a', `x${HALF}`);
  await first.flush();
  const COMPLETED = { kind: 'status', state: 'TASK_STATE_COMPLETED' } as const;
  await write(writerOf(log, { attempt: 2 }), { kind: 'open', lane: 'a', artifact: { name: 'a' } }, COMPLETED);
  await reachedState(log, 'TASK_STATE_COMPLETED');
  await relay.stop();
  const texts: string[] = [];
  for (const { record } of await recordsOf(log))
    for (const fact of record.facts)
      if (fact.kind === 'artifact.updated' && fact.attempt === 1) texts.push(textOf(fact.event.artifactUpdate.artifact.parts));
  assert.equal(texts.join(''), `x${HALF}`);
});
