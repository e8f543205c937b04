import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import type { Fold, Task } from '@hopline/a2a';
import type { Log } from '@hopline/log';
import { openJetStreamLog } from '@hopline/log-jetstream';
import { until } from '../kit/until.ts';
import { collect, type Frame, foldOf, frames, rpc } from '../support/cluster/a2a-stream.ts';
import { Cluster } from '../support/cluster/cluster.ts';
import { factsOf } from '../support/cluster/facts-of.ts';
import { OtlpReceiver } from '../support/telemetry/otlp-receiver.ts';

/** Profile `aion` with real graphs, end to end: the requirements of S1. */

const receiver = new OtlpReceiver();
let cluster: Cluster;
let log: Log;

before(async () => {
  const endpoint = await receiver.start();
  cluster = await Cluster.start({
    profile: 'aion',
    agents: [{ name: 'graph', adapter: 'langgraph', module: 'graphs/graphs.ts', export: 'routed' }],
    agentsFolder: fileURLToPath(new URL('../support/agents', import.meta.url)),
    // Disables coalescing: one frame per model chunk.
    env: { HOPLINE_EVENT_COST_MS: '0', OTEL_EXPORTER_OTLP_ENDPOINT: endpoint, OTEL_BSP_SCHEDULE_DELAY: '200' },
  });
  log = await openJetStreamLog({ servers: cluster.nats.url, name: 'test' });
});

after(async () => {
  await log?.close();
  await cluster?.[Symbol.asyncDispose]();
  await receiver.stop();
});

type Turn = { list: Frame[]; fold: Fold; task: Task; deltas: { id: string; text: string; append: boolean; last: boolean }[] };

/** Sends the name of a graph; returns its stream and the stored task. */
async function ask(graph: string, traceId?: string): Promise<Turn> {
  const headers = traceId === undefined ? {} : { traceparent: `00-${traceId}-b7ad6b7169203331-01` };
  const list = await collect(cluster.url, { dialect: '1.0', method: 'SendStreamingMessage', params: params10(graph), headers });
  const fold = foldOf(list);
  const deltas = list.flatMap(({ event }) => {
    if (!('artifactUpdate' in event) || event.artifactUpdate.artifact.name !== 'Stream Delta') return [];
    const { artifact, append = false, lastChunk = false } = event.artifactUpdate;
    return [{ id: artifact.artifactId, text: artifact.parts.map(part => part.text).join(''), append, last: lastChunk }];
  });
  return { list, fold, task: await getTask(fold.task!.id), deltas };
}

function params10(text: string): Record<string, unknown> {
  return { message: { messageId: `m-${text}-${Math.random()}`, role: 'ROLE_USER', parts: [{ text }] } };
}

async function getTask(id: string): Promise<Task> {
  const response = await rpc(cluster.url, { dialect: '1.0', method: 'GetTask', params: { id } });
  return ((await response.json()) as { result: Task }).result;
}

const answerOf = ({ status }: Task) => status.message?.parts.map(part => part.text).join('');

test('one Stream Delta has a frame per chunk, append false first, lastChunk once [S1-26 S1-27 C-18]', async () => {
  const { deltas, list } = await ask('chat');
  assert.deepEqual(new Set(deltas.map(({ id }) => id)), new Set(['aion:stream-delta']));
  assert.deepEqual(
    deltas.map(({ text }) => text).filter(text => text !== ''),
    ['Hel', 'lo', ' ', '\n', 'world'],
  );
  assert.deepEqual(
    deltas.map(({ append }) => append),
    deltas.map((_delta, index) => index > 0),
  );
  assert.deepEqual(
    deltas.map(({ last }) => last),
    deltas.map((_delta, index) => index === deltas.length - 1),
  );
  for (const { result } of list) {
    const members = Object.keys(result).filter(key => ['task', 'message', 'statusUpdate', 'artifactUpdate'].includes(key));
    assert.equal(members.length, 1, 'S1-22');
  }
});

test('the delta is in the working task and is removed at its end; the message remains [S1-28 C-19]', async () => {
  const seen: string[][] = [];
  let id = '';
  for await (const { event } of frames(cluster.url, {
    dialect: '1.0',
    method: 'SendStreamingMessage',
    params: params10('endless'),
  })) {
    if ('task' in event) id = event.task.id;
    if (!('artifactUpdate' in event)) continue;
    seen.push(((await getTask(id)).artifacts ?? []).map(({ artifactId }) => artifactId));
    break;
  }
  assert.deepEqual(seen, [['aion:stream-delta']]);
  const cancel = await rpc(cluster.url, { dialect: '1.0', method: 'CancelTask', params: { id } });
  assert.equal(((await cancel.json()) as { result: Task }).result.status.state, 'TASK_STATE_CANCELED');
  assert.deepEqual((await getTask(id)).artifacts ?? [], []);
  const { task } = await ask('chat');
  assert.deepEqual([task.artifacts ?? [], answerOf(task)], [[], 'Hello \nworld']);
});

test('two model calls end in one terminal event, whose message is the last AI message, with its id [S1-19 S1-23 S1-18]', async () => {
  const { list, fold, task, deltas } = await ask('react');
  assert.equal(deltas.map(({ text }) => text).join(''), 'I look it up. Found value of a and value of b');
  assert.equal(answerOf(task), 'Found value of a and value of b');
  assert.equal(task.status.message?.parts.length, 1);
  assert.equal(task.status.message?.role, 'ROLE_AGENT');
  assert.match(task.status.message?.messageId ?? '', /^run-/, 'the id of the AIMessage');
  assert.equal(
    list.filter(({ event }) => 'statusUpdate' in event && event.statusUpdate.status.state === 'TASK_STATE_COMPLETED').length,
    1,
  );
  const names = [...fold.artifacts.values()].map(({ name }) => name);
  assert.equal(names.filter(name => name === 'tool_notification_start').length, 2);
  assert.equal(names.filter(name => name === 'tool_notification_end').length, 2);
});

test('two parallel models make two texts; the first has the well-known id [S1-25]', async () => {
  const { fold } = await ask('parallel');
  const texts = [...fold.artifacts.values()].map(({ artifactId, text }) => [artifactId, text]);
  assert.deepEqual(
    texts.map(([id]) => id),
    ['aion:stream-delta', 'aion:stream-delta:2'],
  );
  assert.deepEqual(texts.map(([, text]) => text?.replace('both', '')).toSorted(), ['alpha', 'beta']);
});

test('the outbox takes precedence, and is in the history once, with our ids [S1-12 S1-16 S1-14]', async () => {
  const { task, deltas } = await ask('outbox');
  assert.equal(answerOf(task), 'the outbox');
  assert.ok(deltas.length > 0);
  const messages = task.history?.filter(({ messageId }) => messageId === 'out-1');
  assert.equal(messages?.length, 1);
  assert.deepEqual([messages[0]?.taskId, messages[0]?.contextId], [task.id, task.contextId]);
});

test('an outbox with both a message and a task fails the task with its reason [S1-13]', async () => {
  const { task } = await ask('bothOutbox');
  assert.equal(task.status.state, 'TASK_STATE_FAILED');
  assert.equal(task.metadata?.reason, 'the a2a_outbox of the graph holds both a message and a task');
});

test('an outbox task is merged into ours: history and artifacts grow, metadata merges, our keys win [S1-17]', async () => {
  const { task } = await ask('outboxTask');
  assert.deepEqual(
    task.history?.slice(1).map(({ messageId }) => messageId),
    ['h-1', 'out-2'],
  );
  assert.deepEqual(
    task.artifacts?.map(({ name, parts }) => [name, parts]),
    [['report', [{ data: { rows: 2 } }]]],
  );
  assert.deepEqual([task.metadata?.cost, task.metadata?.['aion:network']], [3, undefined]);
  assert.equal(answerOf(task), 'see the report');
});

test('without outbox and messages the streamed text becomes the message [S1-24]', async () => {
  const { task } = await ask('deltasOnly');
  assert.equal(answerOf(task), 'only deltas');
});

test("A2A events of the graph are passed on unchanged, without the graph's ids [S1-29 S1-30 S1-32]", async () => {
  const { list, fold, task } = await ask('custom');
  assert.equal(fold.textOf('report'), 'one two');
  assert.ok(
    list.some(({ event }) => 'statusUpdate' in event && event.statusUpdate.status.message?.parts[0]?.text === 'half way'),
  );
  assert.ok(!JSON.stringify(list).includes('remote'));
  assert.deepEqual(
    task.artifacts?.map(({ name }) => name),
    ['report'],
  );
  assert.equal((await ask('customEnd')).task.status.state, 'TASK_STATE_REJECTED');
});

test('the mode is in the log, the node in the trace, and neither in a frame [S1-21 S1-31]', async () => {
  const traceId = '0af7651916cd43dd8448eb211c80319c';
  const { list, task } = await ask('parallel', traceId);
  const sources = (await factsOf(log, task.id)).flatMap(fact => ('source' in fact ? [fact.source] : []));
  assert.deepEqual(
    sources.map(source => source?.mode),
    ['messages', 'messages'],
  );
  assert.deepEqual(sources.map(source => source?.node).toSorted(), ['left', 'right']);
  const nodes = () =>
    receiver.spans
      .filter(span => span.traceId === traceId && span.service === 'hopline-sub-agent')
      .flatMap(span => span.events.map(({ name, attributes }) => [name, ...Object.values(attributes)]));
  await until(
    () => nodes().length >= 3,
    () => `the nodes of the graph, not ${JSON.stringify(nodes())}`,
  );
  assert.deepEqual([...new Set(nodes().map(([name, node]) => `${name} ${node}`))].toSorted(), [
    'hopline.step left',
    'hopline.step parallel',
    'hopline.step right',
    'hopline.step sum',
  ]);
  assert.ok(!/"(source|mode|node)"/.test(JSON.stringify(list)));
});

test('a node that throws fails only its own task, with a reason', async () => {
  const [failed, fine] = await Promise.all([ask('fails'), ask('nested')]);
  assert.deepEqual(
    [failed.task.status.state, failed.task.metadata?.reason],
    ['TASK_STATE_FAILED', 'the graph failed: TypeError'],
  );
  assert.equal(answerOf(fine.task), 'inner');
  for (const { output } of cluster.services) assert.ok(!output.includes('a secret of the user'));
});
