import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { AgentRecord, FactRecord, Work } from '@hopline/events';
import { InputWriter, type Log } from '@hopline/log';
import { openJetStreamLog } from '@hopline/log-jetstream';
import { until } from '../../kit/until.ts';
import { type NatsServer, startNats } from '../../support/nats/nats-server.ts';

/** The server is killed and restarted twice under load. Every acknowledged record must be stored once and in order. */
const TASKS = 12;
const KILLS = 2;
/** Tokens of each task, which it writes before, between and after the kills. */
const TOKENS_MIN = 100;
const BETWEEN_MS = 700;

const sleep = (ms: number) => new Promise(resolve => setTimeout(resolve, ms));
const range = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, i) => from + i);
const tasks = (name: string) => range(1, TASKS).map(i => `${name}-${i}`);

/** Each kill waits until the client has reconnected after the previous one. */
async function killTwice(server: NatsServer, reconnects: () => number): Promise<void> {
  for (const kill of range(1, KILLS)) {
    await sleep(BETWEEN_MS);
    await server.kill();
    await sleep(BETWEEN_MS / 2);
    await server.restart();
    await until(() => reconnects() === kill, `reconnect ${kill}`);
  }
  await sleep(BETWEEN_MS);
}

function factRecord(taskId: string, generation: number, first: number): FactRecord {
  const aggregate = {
    taskId,
    contextId: 'c',
    state: 'TASK_STATE_WORKING',
    generation,
    at: 1,
    role: 'supervisor',
    profile: 'caipe',
  } as const;
  const rest = { turn: 1, messageIds: [], lanes: {}, calls: {}, producers: {}, foldedSeq: generation };
  return { v: 1, facts: [], aggregate: { ...aggregate, ...rest }, startSeq: first, startStoredAt: 1 };
}

/** All cases run concurrently under the same kills. */
describe('a server that is killed and restarted', { concurrency: true }, () => {
  let server: NatsServer;
  let log: Log;
  let killing: Promise<void> | undefined;
  const kill = () => {
    killing ??= killTwice(server, () => events.filter(type => type === 'reconnected').length);
    return killing;
  };
  const events: string[] = [];
  before(async () => {
    server = await startNats();
    const onEvent = ({ type }: { type: string }) => void events.push(type);
    log = await openJetStreamLog({ servers: server.url, name: 'restart', ackWaitMs: 1_500, onEvent });
  });
  after(async () => {
    await log?.close();
    await server?.stop();
  });

  test('inputs: shard readers read every token once and in order', async () => {
    const ids = tasks('append');
    const read = new Map<string, string[]>(ids.map(id => [id, []]));
    const abort = new AbortController();
    const readers = range(0, log.shards - 1).map(async shard => {
      for await (const { taskId, record, seq } of log.inputs.readShard(shard, 1, abort.signal)) {
        assert.ok(seq > 0);
        for (const input of (record as AgentRecord).inputs) if (input.kind === 'text') read.get(taskId)?.push(...input.tokens);
      }
    });
    let stop = false;
    const written = ids.map(() => 0);
    const writers = ids.map(async (taskId, index) => {
      const writer = new InputWriter(log.inputs, { taskId, producer: { id: 'c', agent: 'a', turn: 1, attempt: 1 } });
      let n = 0;
      for (; !stop; n += 1) {
        writer.token('answer', `${n}`);
        await writer.ready();
        written[index] = n + 1;
        if (n % 5 === 0) await sleep(1);
      }
      await writer.flush();
      return n;
    });
    await kill();
    await until(() => written.every(count => count > TOKENS_MIN), 'enough tokens of each task');
    stop = true;
    const counts = await Promise.all(writers);
    await until(() => ids.every((id, i) => read.get(id)!.length >= counts[i]!), 'all tokens');
    await sleep(200);
    abort.abort();
    await Promise.all(readers);
    for (const [i, id] of ids.entries()) {
      assert.deepEqual(read.get(id), range(0, counts[i]! - 1).map(String));
    }
    assert.equal(events.filter(type => type === 'disconnected').length, KILLS);
    assert.equal(events.filter(type => type === 'reconnected').length, KILLS);
  });

  test('facts: no append is lost, duplicated or in conflict with itself, and followers receive each once', async () => {
    const ids = tasks('fact');
    const abort = new AbortController();
    const seen = new Map<string, number[]>(ids.map(id => [id, []]));
    const followers: Promise<void>[] = [];
    for (const taskId of ids) {
      const live = await log.facts.follow(taskId, 'new', abort.signal);
      const following = async () => {
        for await (const { record } of live) seen.get(taskId)?.push(record.aggregate.generation);
      };
      followers.push(following());
    }
    let stop = false;
    const owners = ids.map(async taskId => {
      let generation = 0;
      let [seq, first] = [0, 0];
      while (!stop) {
        generation += 1;
        ({ seq } = await log.facts.append(factRecord(taskId, generation, first), {
          expected: seq,
          id: `${taskId}:${generation}`,
        }));
        first ||= seq;
        await sleep(2);
      }
      return generation;
    });
    await kill();
    stop = true;
    const counts = await Promise.all(owners);
    await until(() => ids.every((id, i) => seen.get(id)!.length >= counts[i]!), 'all generations');
    abort.abort();
    await Promise.all(followers);
    for (const [i, id] of ids.entries()) {
      const stored: number[] = [];
      for await (const { record } of log.facts.read(id, 1)) stored.push(record.aggregate.generation);
      assert.deepEqual(stored, range(1, counts[i]!));
      assert.deepEqual(seen.get(id), stored);
    }
  });

  test('work: a running item continues, and queued items are done', async () => {
    const done: string[] = [];
    const abort = new AbortController();
    const taking = log.work.take('agent.restart', { slots: 4, signal: abort.signal }, async ({ work }) => {
      await sleep(300);
      done.push(work.taskId);
    });
    const ids = tasks('work');
    let stop = false;
    const requesting = (async () => {
      for (const taskId of ids) {
        const work: Work = {
          v: 1,
          taskId,
          contextId: 'c',
          turn: 1,
          profile: 'caipe',
          message: { messageId: 'm', role: 'ROLE_USER', parts: [] },
        };
        await log.work.request('agent.restart', work, { id: taskId });
        if (!stop) await sleep(250);
      }
    })();
    await kill();
    stop = true;
    await requesting;
    await until(() => ids.every(id => done.includes(id)), 'all items');
    abort.abort();
    await taking;
  });

  test('key-values: writes are retried, a watch continues', async () => {
    const abort = new AbortController();
    const seen: string[] = [];
    const watching = (async () => {
      for await (const change of log.tasks.watch(abort.signal)) {
        if (change.type === 'entry' && change.value) seen.push(`${change.key}:${change.value.generation}`);
      }
    })();
    let stop = false;
    const writing = (async () => {
      const value = {
        contextId: 'c',
        role: 'supervisor',
        state: 'TASK_STATE_WORKING',
        startSeq: 1,
        generation: 0,
        at: 1,
      } as const;
      let revision = await log.tasks.create('kv', value);
      let generation = 0;
      while (!stop) {
        generation += 1;
        revision = await log.tasks.update('kv', { ...value, generation }, revision);
        await sleep(20);
      }
      return generation;
    })();
    await kill();
    stop = true;
    const last = await writing;
    await until(() => seen.includes(`kv:${last}`), 'the last value');
    abort.abort();
    await watching;
    const generations = seen.map(entry => Number(entry.slice(3)));
    assert.deepEqual(
      generations,
      [...new Set(generations)].sort((a, b) => a - b),
    );
    assert.equal((await log.tasks.get('kv'))?.value.generation, last);
  });
});
