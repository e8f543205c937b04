import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { after, before, test } from 'node:test';
import { type RemoteAgent, type Step, startRemoteAgent } from '../support/agents/remote-agent.ts';
import { collect, foldOf } from '../support/cluster/a2a-stream.ts';
import { Cluster } from '../support/cluster/cluster.ts';
import { readTraces, TRACES_ABSENT, type Trace } from '../support/recorded-traces.ts';

const traces = readTraces() ?? [];
const skip = traces.length === 0 && TRACES_ABSENT;
const BURST = 24;

let remote: RemoteAgent;
let cluster: Cluster;

/** A 0.3 agent with one status-update per token, for messages `play <file> at <tokens per second, 0 = bursts>`. */
async function* play(text: string): AsyncGenerator<Step> {
  const [, file, rate] = /play (\S+) at (\d+)/.exec(text)!;
  const { tokens } = traces.find(trace => trace.file === file)!;
  const perSecond = Number(rate);
  const startedAt = performance.now();
  for (const [index, token] of tokens.entries()) {
    const dueMs = perSecond === 0 ? 0 : (index * 1000) / perSecond - (performance.now() - startedAt);
    if (dueMs >= 1) yield { pause: dueMs };
    if (perSecond === 0 && index % BURST === BURST - 1) yield { pause: 20 };
    yield { token };
  }
  yield { marker: true };
  yield { complete: true };
}

before(async () => {
  if (skip) return;
  remote = await startRemoteAgent({ dialect: '0.3', script: ({ text }) => play(text) });
  const entry = (name: string) => ({
    name,
    adapter: 'a2a',
    url: remote.url,
    skills: [{ id: name, name, description: name, tags: [name] }],
  });
  cluster = await Cluster.shared({ agents: [entry('alpha'), entry('beta')] });
});

after(async () => {
  await cluster?.[Symbol.asyncDispose]();
  await remote?.close();
});

const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex');

const ask = (trace: Trace, rate: number, agents = 'alpha') =>
  collect(cluster.url, { text: `${agents} play ${trace.file} at ${rate}` });

for (const trace of traces) {
  test(`${trace.file} folds byte-identical in bursts and at 500 tokens/s (promise 1)`, { skip }, async () => {
    for (const rate of [0, 500]) {
      const list = await ask(trace, rate);
      const fold = foldOf(list);
      assert.equal(sha256(fold.textOf('streaming_result')), trace.sha256);
      const chunks = list.filter(
        ({ event }) => 'artifactUpdate' in event && event.artifactUpdate.artifact.name === 'streaming_result',
      ).length;
      // A loaded machine delivers the tokens in bursts with pauses between them, which make more chunks: `npm run bench -- coalescer` has
      // the number for undisturbed streams.
      if (rate === 500 && trace.tokens.length >= 200)
        assert.ok(chunks * 2 <= trace.tokens.length, `${chunks} frames for ${trace.tokens.length} tokens`);
    }
  });
}

test('all recorded streams in parallel at 50 tokens/s fold byte-identical (promise 1)', { skip, timeout: 120_000 }, async () => {
  await Promise.all(
    traces.map(async trace => {
      const fold = foldOf(await ask(trace, 50));
      assert.equal(sha256(fold.textOf('streaming_result')), trace.sha256, trace.file);
    }),
  );
});

test('twenty parallel streams at 500 tokens/s fold byte-identical (promise 1)', { skip, timeout: 120_000 }, async () => {
  const twenty = Array.from({ length: 20 }, (_, index) => traces[index % traces.length]!);
  await Promise.all(
    twenty.map(async trace => {
      const fold = foldOf(await ask(trace, 500));
      assert.equal(sha256(fold.textOf('streaming_result')), trace.sha256, trace.file);
    }),
  );
});

test('the interleaved texts of two agents stay two texts [S0-47]', { skip }, async () => {
  const trace = traces.find(({ tokens }) => tokens.length > 250)!;
  const fold = foldOf(await ask(trace, 500, 'alpha beta'));
  const texts = [...fold.artifacts.values()].filter(artifact => artifact.name === 'streaming_result');
  assert.deepEqual(
    texts.map(artifact => sha256(artifact.text)),
    [trace.sha256, trace.sha256],
  );
  assert.deepEqual(texts.map(artifact => artifact.metadata?.sourceAgent).sort(), ['alpha', 'beta']);
});
