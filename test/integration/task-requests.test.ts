import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { BUCKETS, FACTS_STREAM, INPUTS_STREAM, WORK_STREAM } from '@hopline/log-jetstream';
import { jetstreamManager } from '@nats-io/jetstream';
import { connect, type NatsConnection } from '@nats-io/transport-node';
import { PATH_PAUSE_MS } from '../../services/relay/src/path-measurement.ts';
import { until } from '../kit/until.ts';
import { userMessage } from '../kit/user-message.ts';
import { countingTokens, startCountingAgent } from '../support/agents/counting-agent.ts';
import type { RemoteAgent } from '../support/agents/remote-agent.ts';
import { collect } from '../support/cluster/a2a-stream.ts';
import { Cluster } from '../support/cluster/cluster.ts';

const TASKS = 10;
/**
 * Appends of a task of one token that a supervisor conducts: at most as many as the task has steps that may be stored separately. An idle
 * machine stores 5 inputs and 5 facts.
 */
const INPUTS_MAX = 8;
const FACTS_MAX = 8;
/** The supervisor's work item and the agent's. */
const WORK = 2;
/** Entries by id: the one for the end and, on a slow machine, one for a state in between. */
const INDEX_WRITES_MAX = 2;
/** Reads of an index that a task of one token causes: its relay reads the entry in the lists once. A machine that is slow may read it again. */
const INDEX_READS_MAX = 2;
const BYTES_MAX = 32_000;

/** A stream at the pace of a model. */
const TOKENS = 60;
const TOKEN_MS = 50;
/** A stream of this pace stores its text at most this often, in milliseconds: chunks of two tokens, and sometimes of one. */
const CHUNK_MS_MIN = 75;
/** A record of a chunk, with its subject and headers. */
const RECORD_BYTES_MAX = 1_200;

let remote: RemoteAgent;
let paced: RemoteAgent;
let cluster: Cluster;
let observer: NatsConnection;
const calls: string[] = [];

before(async () => {
  remote = await startCountingAgent(['one'], 0);
  paced = await startCountingAgent(countingTokens(TOKENS), TOKEN_MS);
  cluster = await Cluster.start({
    agents: [
      { name: 'one', adapter: 'a2a', url: remote.url },
      { name: 'paced', adapter: 'a2a', url: paced.url },
    ],
  });
  observer = await connect({ servers: cluster.nats.url });
  // The shards of a relay that has started begin with several consumers, which then become one.
  const { streams } = await jetstreamManager(observer);
  await until(async () => (await streams.info(INPUTS_STREAM)).state.consumer_count === 1, 'one consumer of inputs');
  observer.subscribe('$JS.API.>', { callback: (_error, { subject }) => void calls.push(subject.slice('$JS.API.'.length)) });
  await observer.flush();
});

after(async () => {
  await observer?.close();
  await cluster?.[Symbol.asyncDispose]();
  await remote?.close();
  await paced?.close();
});

const askAgent = (name: string) =>
  collect(cluster.url, {
    dialect: '1.0',
    method: 'SendStreamingMessage',
    params: { message: userMessage('x'), metadata: { agent: name } },
  });

/** Messages that each stream has ever stored, and the bytes of inputs and facts. */
async function stored(): Promise<{ messages: (stream: string) => number; bytes: number }> {
  const { streams } = await jetstreamManager(observer);
  const lasts = new Map<string, number>();
  let bytes = 0;
  for await (const { config, state } of streams.list()) {
    lasts.set(config.name, state.last_seq);
    if (config.name === INPUTS_STREAM || config.name === FACTS_STREAM) bytes += state.bytes;
  }
  return { messages: stream => lasts.get(stream)!, bytes };
}

/** The relay reads the inputs of at most one ended turn a second for its critical path (ADR 192), whatever the number of tasks. */
function assertNoConsumers(fromMs: number): void {
  const created = calls.filter(call => call.startsWith('CONSUMER.CREATE.'));
  const [sampled = [], others = []] = [true, false].map(isSample =>
    created.filter(call => call.startsWith(`CONSUMER.CREATE.${INPUTS_STREAM}.`) === isSample),
  );
  assert.deepEqual(others, []);
  const samplesMax = 1 + (performance.now() - fromMs) / PATH_PAUSE_MS;
  assert.ok(sampled.length <= samplesMax, `${sampled.length} consumers, at most ${samplesMax}`);
}

test('a task of one token takes a bounded number of appends, bytes and index writes, and needs no consumer', {
  timeout: 120_000,
}, async () => {
  const ask = () => askAgent('one');
  // The first task opens what all others share.
  await ask();
  const before = await stored();
  calls.length = 0;
  const fromMs = performance.now();
  for (let n = 0; n < TASKS; n += 1) await ask();
  assertNoConsumers(fromMs);
  const after = await stored();
  const each = (stream: string) => (after.messages(stream) - before.messages(stream)) / TASKS;
  assert.equal(each(WORK_STREAM), WORK);
  assert.ok(each(INPUTS_STREAM) <= INPUTS_MAX, `${each(INPUTS_STREAM)} inputs`);
  assert.ok(each(FACTS_STREAM) <= FACTS_MAX, `${each(FACTS_STREAM)} facts`);
  assert.ok(each(`KV_${BUCKETS.tasks}`) <= INDEX_WRITES_MAX, `${each(`KV_${BUCKETS.tasks}`)} index writes`);
  const reads = calls.filter(call => call.startsWith('STREAM.MSG.GET.KV_hopline_task')).length / TASKS;
  assert.ok(reads <= INDEX_READS_MAX, `${reads} reads of an index`);
  const bytes = (after.bytes - before.bytes) / TASKS;
  assert.ok(bytes <= BYTES_MAX, `${bytes} bytes`);
});

test('a token at the pace of a model takes a bounded number of appends and bytes, and needs no consumer', {
  timeout: 120_000,
}, async () => {
  await askAgent('paced');
  const before = await stored();
  calls.length = 0;
  const fromMs = performance.now();
  await askAgent('paced');
  // A machine that delays tokens may store each of them separately, and then needs more time for them.
  const chunksMax = (performance.now() - fromMs) / CHUNK_MS_MIN;
  assertNoConsumers(fromMs);
  const after = await stored();
  const inputs = after.messages(INPUTS_STREAM) - before.messages(INPUTS_STREAM);
  const facts = after.messages(FACTS_STREAM) - before.messages(FACTS_STREAM);
  assert.ok(inputs <= chunksMax + INPUTS_MAX, `${inputs} inputs, at most ${chunksMax + INPUTS_MAX}`);
  assert.ok(facts <= chunksMax + FACTS_MAX, `${facts} facts, at most ${chunksMax + FACTS_MAX}`);
  const bytes = after.bytes - before.bytes;
  const bytesMax = BYTES_MAX + RECORD_BYTES_MAX * (inputs + facts);
  assert.ok(bytes <= bytesMax, `${bytes} bytes, at most ${bytesMax}`);
  assert.ok(inputs + facts >= TOKENS / 10, 'text is stored while it arrives');
});
