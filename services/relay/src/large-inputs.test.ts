import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type AgentInput, type AgentRecord, Layouts } from '@hopline/events';
import { createMemoryLog, type MemoryLog } from '@hopline/log/memory';
import { countingMetrics } from '../../../test/kit/counting-metrics.ts';
import { until } from '../../../test/kit/until.ts';
import { COALESCE, logger, sendMessage, writerOf } from './relay.test-kit.ts';
import { createRelay } from './relay.ts';
import { RELAY_WAITING_UNITS_MAX } from './shard.ts';

const coalesce = { ...COALESCE, eventCostMs: 80 };

/** Counts the inputs that reached their tasks. */
function counting() {
  let received = 0;
  const metrics = countingMetrics((_name, count, { kind, outcome }) => {
    if (kind !== undefined && outcome === 'received') received += count;
  });
  return { metrics, received: () => received };
}

/** A relay that counts the records that it reads, and loads no task but `free` before `load`. */
async function relayThatLoadsNothing(log: MemoryLog, free?: string) {
  const processLog = log.another();
  const loaded = Promise.withResolvers<void>();
  const last = processLog.facts.last.bind(processLog.facts);
  processLog.facts.last = async taskId => {
    if (taskId !== free) await loaded.promise;
    return last(taskId);
  };
  let read = 0;
  const readShard = processLog.inputs.readShard.bind(processLog.inputs);
  processLog.inputs.readShard = async function* (...reading) {
    for await (const input of readShard(...reading)) {
      read += 1;
      yield input;
    }
  };
  const { metrics, received } = counting();
  const relay = await createRelay({ log: processLog, instance: 'relay', coalesce, metrics, logger });
  return { relay, received, read: () => read, load: loaded.resolve };
}

/** A data part of `units` UTF-16 units, without text. */
const file = (lane: string, units: number): AgentInput => ({
  kind: 'artifact',
  lane,
  artifact: { name: lane },
  parts: [{ data: { table: 'x'.repeat(units) } }],
  append: false,
  last: true,
});

test('promise 1: inputs that each fit into a record are stored, however many wait for the same append', {
  timeout: 120_000,
}, async () => {
  const log = createMemoryLog();
  const processLog = log.another();
  const append = processLog.facts.append.bind(processLog.facts);
  const held = Promise.withResolvers<void>();
  processLog.facts.append = async (record, options) => {
    if (record.aggregate.generation > 1) await held.promise;
    return append(record, options);
  };
  const { metrics, received } = counting();
  const relay = await createRelay({ log: processLog, instance: 'relay', coalesce, metrics, logger });
  await sendMessage(log);
  const writer = writerOf(log);
  writer.add({ kind: 'status', state: 'TASK_STATE_WORKING' });
  const half = log.recordBytesMax / 2;
  for (const lane of ['f1', 'f2', 'f3']) writer.add(file(lane, half));
  writer.add({ kind: 'status', state: 'TASK_STATE_COMPLETED' });
  await writer.flush();
  await until(() => received() === 6);
  held.resolve();
  const names: (string | undefined)[] = [];
  for await (const { record } of await log.facts.follow('t', 0, new AbortController().signal)) {
    for (const fact of record.facts) if (fact.kind === 'artifact.updated') names.push(fact.event.artifactUpdate.artifact.name);
    const { state } = record.aggregate;
    assert.notEqual(state, 'TASK_STATE_FAILED');
    if (state === 'TASK_STATE_COMPLETED') break;
  }
  assert.deepEqual(names, ['f1', 'f2', 'f3']);
  await relay.stop();
});

test('promise 5: a shard that cannot load its tasks stops reading inputs at its bound', { timeout: 120_000 }, async () => {
  const log = createMemoryLog({ shards: 1 });
  const units = 256 * 1024;
  const records = (3 * RELAY_WAITING_UNITS_MAX) / units;
  for (let n = 1; n <= records; n += 1) {
    const record: AgentRecord = {
      v: 1,
      at: Date.now(),
      from: { id: 'agent', agent: 'echo', turn: 1, attempt: 1 },
      n,
      inputs: [file('f', units)],
    };
    await log.inputs.append('t', record, { id: `t:${n}` });
  }
  const { relay, received, read, load } = await relayThatLoadsNothing(log);
  await until(() => read() >= RELAY_WAITING_UNITS_MAX / units);
  await new Promise(resolve => setTimeout(resolve, 200));
  assert.ok(read() < records, `${read()} of ${records} were read`);
  load();
  await until(() => received() === records);
  await relay.stop();
});

test('promise 5: shards that cannot append stop reading at a bound for all of them, and the others go on', {
  timeout: 120_000,
}, async () => {
  const SHARDS = 16;
  const layouts = Layouts.one(SHARDS);
  const taskOf = (shard: number) => {
    for (let n = 0; ; n += 1) if (layouts.shardOf(`t-${n}`) === shard) return `t-${n}`;
  };
  const tasks = Array.from({ length: SHARDS }, (_, shard) => taskOf(shard));
  const log = createMemoryLog({ shards: SHARDS });
  const units = 256 * 1024;
  const perShard = RELAY_WAITING_UNITS_MAX / units / 4;
  const append = (taskId: string, n: number) => {
    const from = { id: 'agent', agent: 'echo', turn: 1, attempt: 1 };
    return log.inputs.append(taskId, { v: 1, at: Date.now(), from, n, inputs: [file('f', units)] }, { id: `${taskId}:${n}` });
  };
  const [free, ...held] = tasks;
  for (const taskId of held) for (let n = 1; n <= perShard; n += 1) await append(taskId, n);
  const { relay, received, read, load } = await relayThatLoadsNothing(log, free);
  await until(() => read() >= RELAY_WAITING_UNITS_MAX / units);
  for (let n = 1; n <= perShard; n += 1) await append(free!, n);
  await until(() => received() === perShard, 'all inputs of the shard that is not held');
  // Each shard may have read up to a check more.
  assert.ok(read() <= RELAY_WAITING_UNITS_MAX / units + 2 * SHARDS + perShard, `${read()} of ${SHARDS * perShard} were read`);
  load();
  await until(() => received() === SHARDS * perShard, 'the inputs of all shards');
  await relay.stop();
});
