import assert from 'node:assert/strict';
import { after, describe, test } from 'node:test';
import { type Fact, type FactRecord, Layouts, shardOf } from '@hopline/events';
import type { Log } from '@hopline/log';
import { createMemoryLog } from '@hopline/log/memory';
import { openJetStreamLog } from '@hopline/log-jetstream';
import { type Checkpoint, CheckpointMismatch, replayFacts, replayInputs } from '@hopline/replay';
import { agent, Scenario, StoredScenario } from '@hopline/task/test-kit';
import { collect } from '../../kit/collect.ts';
import { startNats } from '../../support/nats/nats-server.ts';

const SHARDS = 4;
const LAYOUTS = Layouts.one(SHARDS);
const TASKS = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'];
const RECORDS = 6;

async function openNats(): Promise<Log> {
  const server = await startNats();
  const log = await openJetStreamLog({ servers: server.url, name: 'replay', shards: SHARDS });
  const close = async () => {
    await log.close();
    await server.stop();
  };
  after(close);
  return log;
}

/** Stores the inputs and the facts of all tasks, one record per task in turn. */
async function fill(log: Log, tasks = TASKS): Promise<void> {
  const scenarios = tasks.map(taskId => new StoredScenario(log.facts, taskId));
  for (const scenario of scenarios) await scenario.message('hi', 'm1', 'agent.argocd').store();
  for (let n = 1; n <= RECORDS; n += 1) {
    for (const scenario of scenarios) {
      const { taskId } = scenario;
      const input = { kind: 'step', step: `${n}`, payload: n } as const;
      const record = { v: 1, at: n, from: agent('agent'), n, inputs: [input] } as const;
      await log.inputs.append(taskId, { ...record, inputs: [input] }, { id: `${taskId}:${n}` });
      await scenario.input(agent('agent'), input).store();
    }
  }
}

/** Steps of each task in the order in which they were yielded. */
function stepsOf(items: readonly { taskId: string; steps: number[] }[]): Record<string, number[]> {
  const steps: Record<string, number[]> = {};
  for (const { taskId, steps: own } of items) steps[taskId] = [...(steps[taskId] ?? []), ...own];
  return steps;
}

async function readFacts(log: Log, range: Parameters<typeof replayFacts>[1], max = Number.POSITIVE_INFINITY) {
  const replay = replayFacts(log, range);
  const items: { taskId: string; steps: number[] }[] = [];
  for await (const { taskId, facts } of replay) {
    items.push({
      taskId,
      steps: facts.flatMap(fact => (fact.kind === 'step.recorded' ? [Number(fact.step)] : [])),
    });
    if (items.length >= max) break;
  }
  return { items, checkpoint: replay.checkpoint };
}

const ALL = Object.fromEntries(TASKS.map(taskId => [taskId, [1, 2, 3, 4, 5, 6]]));

for (const [name, open] of [
  ['memory', async () => createMemoryLog({ shards: SHARDS })],
  ['JetStream', openNats],
] as const) {
  describe(`replay of records, ${name}`, () => {
    test('yields every record once, in order per task, however many records are read at a time', async () => {
      const log = await open();
      await fill(log);
      for (const shardsAtOnce of [1, 3, 16]) {
        const { items } = await readFacts(log, { shardsAtOnce });
        assert.equal(items.length, TASKS.length * (RECORDS + 1));
        assert.deepEqual(stepsOf(items), ALL);
        const inputs = await collect(replayInputs(log, { shardsAtOnce }));
        assert.equal(inputs.length, TASKS.length * RECORDS);
        const steps = inputs.map(({ taskId, record }) => ({ taskId, steps: 'n' in record ? [record.n] : [] }));
        assert.deepEqual(stepsOf(steps), ALL);
      }
    });

    test('batches hold the same records, and replay continues after a batch from its checkpoint', async () => {
      const log = await open();
      await fill(log);
      const whole: { taskId: string; steps: number[] }[] = [];
      let after: Checkpoint | undefined;
      for (let isDone = false; !isDone; ) {
        isDone = true;
        const replay = replayFacts(log, after === undefined ? {} : { after });
        for await (const records of replay.batches()) {
          assert.ok(records.length > 0);
          for (const { taskId, facts } of records)
            whole.push({ taskId, steps: facts.flatMap(fact => (fact.kind === 'step.recorded' ? [Number(fact.step)] : [])) });
          after = JSON.parse(JSON.stringify(replay.checkpoint)) as Checkpoint;
          isDone = false;
          break;
        }
      }
      assert.equal(whole.length, TASKS.length * (RECORDS + 1));
      assert.deepEqual(stepsOf(whole), ALL);
      let inputs = 0;
      for await (const records of replayInputs(log, { untilMs: Date.now() + 60_000 }).batches()) inputs += records.length;
      assert.equal(inputs, TASKS.length * RECORDS);
    });

    test('replay continues after a checkpoint without missing or repeating a record, including records stored since', async () => {
      const log = await open();
      await fill(log, TASKS.slice(0, 4));
      const whole: { taskId: string; steps: number[] }[] = [];
      let checkpoint: Checkpoint | undefined;
      for (let part = 0; part < 30; part += 1) {
        if (part === 1) await fill(log, TASKS.slice(4));
        const range = checkpoint === undefined ? {} : { after: JSON.parse(JSON.stringify(checkpoint)) as Checkpoint };
        const read = await readFacts(log, range, 5);
        whole.push(...read.items);
        ({ checkpoint } = read);
      }
      assert.equal(whole.length, TASKS.length * (RECORDS + 1));
      assert.deepEqual(stepsOf(whole), ALL);
    });

    test('reads one task, one shard, or a range of time', async () => {
      const log = await open();
      await fill(log, TASKS.slice(0, 4));
      await new Promise(resolve => setTimeout(resolve, 20));
      const sinceMs = Date.now();
      await fill(log, TASKS.slice(4));
      assert.deepEqual(Object.keys(stepsOf((await readFacts(log, { sinceMs })).items)).sort(), TASKS.slice(4));
      assert.deepEqual(Object.keys(stepsOf((await readFacts(log, { untilMs: sinceMs })).items)).sort(), TASKS.slice(0, 4));
      const { items, checkpoint } = await readFacts(log, { taskId: 'c' });
      assert.deepEqual(stepsOf(items), { c: ALL.c });
      assert.deepEqual((await readFacts(log, { taskId: 'c', after: checkpoint })).items, []);
      const shard = shardOf('c', LAYOUTS);
      const ofShard = await readFacts(log, { shards: [shard] });
      assert.ok(ofShard.items.length > 0 && ofShard.items.every(({ taskId }) => shardOf(taskId, LAYOUTS) === shard));
      assert.deepEqual((await readFacts(log, { taskId: 'c', sinceMs })).items, []);
      await new StoredScenario(log.facts, 'whole').message('hi').store();
      assert.equal((await readFacts(log, { taskId: 'whole', sinceMs })).items.length, 1);
      assert.deepEqual((await readFacts(log, { taskId: 'whole', untilMs: sinceMs })).items, []);
      assert.equal((await collect(replayInputs(log, { taskId: 'c', sinceMs }))).length, 0);
      assert.equal((await collect(replayInputs(log, { taskId: 'c' }))).length, RECORDS);
    });

    test('facts that were copied forward are not repeated', async () => {
      const log = await open();
      const scenario = await new StoredScenario(log.facts, 'a').message('hi', 'm1', 'agent.argocd').store();
      const { seq, record } = scenario.newest!;
      const copied = { part: 1, last: true, facts: record.facts };
      await log.facts.append({ ...record, facts: [], startSeq: 0, copied }, { expected: seq, id: 'copy' });
      assert.equal((await readFacts(log, {})).items.length, 1);
      const [, ...none] = (await readFacts(log, { taskId: 'a' })).items;
      assert.deepEqual(none, []);
    });

    test('yields the copy of a task once if nothing else of the task precedes it', async () => {
      const log = await open();
      const task = new Scenario('a').message('hi', 'm1', 'agent.argocd');
      const step = (n: number) => task.input(agent('agent'), { kind: 'step', step: `${n}`, payload: n });
      step(1);
      step(2);
      const aggregate = task.aggregate!;
      let seq = 0;
      const copy = async (part: number, last: boolean, facts: Fact[]) => {
        const copied = { part, last, facts };
        const record: FactRecord = { v: 1, facts: [], aggregate, startSeq: 0, startStoredAt: 1, copied };
        ({ seq } = await log.facts.append(record, { expected: seq, id: `a:${seq}` }));
      };
      // The relay died before the last part, and its successor copied the facts again.
      await copy(1, false, task.facts.slice(0, 1));
      await copy(1, false, task.facts.slice(0, 2));
      await new StoredScenario(log.facts, 'b').message('hi').store();
      await copy(2, true, task.facts.slice(2));
      const { checkpoint } = await readFacts(log, {});
      const [, , , newest] = step(3).facts;
      const record: FactRecord = { v: 1, facts: [newest!], aggregate: task.aggregate!, startSeq: 2, startStoredAt: 1 };
      ({ seq } = await log.facts.append(record, { expected: seq, id: 'a:3' }));
      await copy(1, true, task.facts);
      const whole = await collect(replayFacts(log));
      const ofTask = whole.filter(({ taskId }) => taskId === 'a').flatMap(({ facts }) => facts);
      assert.deepEqual(ofTask, task.facts);
      assert.deepEqual(stepsOf((await readFacts(log, { after: checkpoint })).items), { a: [3] });
    });

    test('rejects a checkpoint that is ahead of the log, or names another record', async () => {
      const [log, other] = [await open(), await open()];
      await fill(log);
      await fill(other, TASKS.slice(0, 4));
      const { checkpoint } = await readFacts(log, {});
      await assert.rejects(readFacts(other, { after: checkpoint }), CheckpointMismatch);
      await assert.rejects(readFacts(other, { taskId: 'a', after: checkpoint }), /replay from the beginning/);
      assert.deepEqual((await readFacts(log, { after: checkpoint })).items, []);
      // The other log has grown beyond the checkpoint, as after a loss of power.
      await fill(other, TASKS.slice(4));
      await fill(other, ['i', 'j', 'k', 'l']);
      await assert.rejects(readFacts(other, { after: checkpoint }), CheckpointMismatch);
    });

    test('ends when its signal aborts, and rejects a checkpoint of another number of shards', async () => {
      const log = await open();
      await fill(log);
      const leave = new AbortController();
      let count = 0;
      for await (const _ of replayFacts(log, { signal: leave.signal })) if (++count === 3) leave.abort();
      assert.equal(count, 3);
      assert.throws(() => replayFacts(log, { after: { v: 1, shards: SHARDS + 1, seqs: {} } }), CheckpointMismatch);
    });
  });
}
