import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import {
  type Frame,
  foldOf,
  frames,
  messageParams,
  type StreamRequest,
  shapeOf,
  textOf,
} from '../../support/cluster/a2a-stream.ts';
import { Cluster } from '../../support/cluster/cluster.ts';

/** Graphs in profile `caipe`. One process is killed: its thread is in a file, its turn in the log. */

const COUNTED = Array.from({ length: 150 }, (_, index) => `${index} `).join('');
let folder: string;
let cluster: Cluster;

before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'langgraph-death-'));
  cluster = await Cluster.start({
    agents: [
      {
        name: 'graph',
        adapter: 'langgraph',
        module: 'graphs/durable.ts',
        export: 'slow',
        checkpointer: 'saver',
        env: ['THREADS_FILE'],
      },
      { name: 'routed', adapter: 'langgraph', module: 'graphs/graphs.ts', export: 'routed' },
    ],
    agentsFolder: fileURLToPath(new URL('../../support/agents', import.meta.url)),
    env: { HOPLINE_ACK_WAIT_MS: '5000', THREADS_FILE: join(folder, 'threads.json') },
  });
});

after(async () => {
  await cluster?.[Symbol.asyncDispose]();
  await rm(folder, { recursive: true, force: true });
});

async function restartAgent(): Promise<void> {
  await cluster.agents[0]!.kill();
  await cluster.agents[0]!.start();
}

async function follow(request: StreamRequest, onFrame: (frame: Frame) => void = () => {}) {
  const list: Frame[] = [];
  for await (const frame of frames(cluster.url, request)) {
    list.push(frame);
    onFrame(frame);
  }
  return list;
}

test('a graph killed in mid-stream continues from its checkpoint in another process, without lost or repeated text [S2-2 C-5]', {
  timeout: 120_000,
}, async () => {
  let death: Promise<void> | undefined;
  const list = await follow({ params: messageParams('count', { metadata: { agent: 'graph' } }) }, ({ event }) => {
    if (death === undefined && JSON.stringify(event).includes('20 ')) death = restartAgent();
  });
  await death;
  assert.ok(death !== undefined);
  assert.equal(textOf(list, 'streaming_result'), `first. ${COUNTED}`);
  assert.equal(shapeOf(list.at(-1)!), 'status:input-required'.replace('-', '_'));
  const fold = foldOf(list);

  // The process that asked the question has ended before the answer arrives.
  await restartAgent();
  const { id: taskId, contextId } = fold.task!;
  const answered = await follow({ params: messageParams('blue', { taskId, contextId }) });
  assert.equal(textOf(answered, 'streaming_result'), 'painted blue');
  assert.equal(textOf(answered, 'partial_result'), 'painted blue');
  assert.equal(shapeOf(answered.at(-1)!), 'status:completed');
});

const ask = (graph: string) => follow({ params: messageParams(graph, { metadata: { agent: 'routed' } }) });
const segments = (list: Frame[]) => {
  const fold = foldOf(list);
  return [...fold.artifacts.values()].filter(({ name }) => name === 'streaming_result').map(({ text }) => text);
};

test('in caipe each model call is a segment of the answer, sent once [S1-25 S2-2]', async () => {
  const parallel = await ask('parallel');
  assert.deepEqual(segments(parallel).toSorted(), ['alpha', 'beta', 'both']);
  assert.equal(textOf(parallel, 'partial_result'), segments(parallel).join(''));
  const react = await ask('react');
  assert.deepEqual(segments(react), ['I look it up. ', 'Found value of a and value of b']);
  assert.equal(
    react.filter(frame => shapeOf(frame) === 'artifact:tool_notification_start').length,
    1 + 2,
    "the supervisor's, and two of the graph",
  );
});

test('in caipe the outbox replaces the text streamed before it [S1-12]', async () => {
  const list = await ask('outbox');
  assert.equal(textOf(list, 'partial_result'), 'the outbox');
});
