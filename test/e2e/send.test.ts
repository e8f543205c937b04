import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { Fact } from '@hopline/events';
import type { Log } from '@hopline/log';
import { openJetStreamLog } from '@hopline/log-jetstream';
import { answer, type RemoteAgent, startRemoteAgent } from '../support/agents/remote-agent.ts';
import { collect, messageParams, rpc, shapeOf, textOf } from '../support/cluster/a2a-stream.ts';
import { Cluster } from '../support/cluster/cluster.ts';
import { factsOf } from '../support/cluster/facts-of.ts';

let echo: RemoteAgent;
let cluster: Cluster;
let log: Log;

before(async () => {
  echo = await startRemoteAgent({ dialect: '0.3', script: ({ text }) => answer(text.split(/(?<= )/)) });
  cluster = await Cluster.shared({ replicas: 2, agents: [{ name: 'words', adapter: 'a2a', url: echo.url }] });
  log = await openJetStreamLog({ servers: cluster.nats.url, name: 'test' });
});

after(async () => {
  await log?.close();
  await cluster?.[Symbol.asyncDispose]();
  await echo?.close();
});

type TaskJson = {
  id: string;
  contextId: string;
  status: { state: string };
  history: unknown[];
  artifacts: { name: string; parts: { text: string }[] }[];
};
type Answer = { result: TaskJson; error?: { code: number } };

const call = async (request: Parameters<typeof rpc>[1], url = cluster.url): Promise<Answer> =>
  (await (await rpc(url, request)).json()) as Answer;
const send = (params: Record<string, unknown>, url?: string) => call({ method: 'message/send', params }, url);

/** Facts without ids and times, with the chunks of an artifact joined. */
function storyOf(facts: Fact[]): unknown[] {
  const story: unknown[][] = [];
  for (const fact of facts) {
    if (fact.kind !== 'artifact.updated') {
      story.push([fact.kind, fact.kind === 'status.changed' ? fact.event.statusUpdate.status.state : '']);
      continue;
    }
    const { name, parts } = fact.event.artifactUpdate.artifact;
    const text = parts.map(part => part.text).join('');
    const last = story.at(-1);
    if (fact.event.artifactUpdate.append && last !== undefined && last[0] === name) last[1] += text;
    else story.push([name, text]);
  }
  return story;
}

test('send and stream store the same facts [S1-1 S1-2]', async () => {
  const [first] = await collect(cluster.url, { text: 'one two three' });
  const streamed = (first!.result as { id: string }).id;
  const { result } = await send(messageParams('one two three'));
  assert.equal(result.status.state, 'completed');
  assert.deepEqual(storyOf(await factsOf(log, result.id)), storyOf(await factsOf(log, streamed)));
});

test('send and stream take the same params, and text parts reach the agent joined without a separator [S1-5 S1-6 S2-28]', async () => {
  const parts = ['one ', 'two', ' three'].map(text => ({ kind: 'text', text }));
  const params = { message: { kind: 'message', role: 'user', messageId: 'parts-1', parts } };
  const list = await collect(cluster.url, { params });
  const { result } = await send({ message: { ...params.message, messageId: 'parts-2' } });
  assert.equal(textOf(list, 'streaming_result'), 'one two three');
  assert.equal(result.artifacts.find(artifact => artifact.name === 'streaming_result')?.parts[0]?.text, 'one two three');
});

test('the log keeps the message as received, with non-text parts and metadata [S1-8]', async () => {
  const message = {
    kind: 'message',
    role: 'user',
    messageId: 'raw-1',
    parts: [
      { kind: 'text', text: 'hello' },
      { kind: 'data', data: { a: [1, { b: null }] } },
      { kind: 'file', file: { name: 'x.bin', mimeType: 'x/y', bytes: 'AAEC' } },
    ],
    metadata: { nested: { deep: true } },
  };
  const { result } = await send({ message, metadata: { network: 'n1' } });
  const [created] = await factsOf(log, result.id);
  assert.ok(created?.kind === 'task.created');
  assert.deepEqual(created.request, { network: 'n1' });
  const { id: taskId, contextId } = result;
  assert.deepEqual((result.history as unknown[])[0], { ...message, taskId, contextId });
});

test('a message id starts one task in its context, on any replica, and another task in another context [S1-9 S1-10]', async () => {
  const params = (contextId: string) => messageParams('twice', { messageId: 'same', contextId });
  const [one, two] = await Promise.all([send(params('ctx-1')), send(params('ctx-1'), cluster.ingresses[1]!.url)]);
  assert.equal(one.result.id, two.result.id);
  const again = await send(params('ctx-1'), cluster.ingresses[1]!.url);
  assert.equal(again.result.id, one.result.id);
  const other = await send(params('ctx-2'));
  assert.notEqual(other.result.id, one.result.id);
  assert.equal(echo.requests.filter(request => request.text === 'twice').length, 2);
  const changed = await send(messageParams('another text', { messageId: 'same', contextId: 'ctx-1' }));
  assert.equal(changed.error?.code, -32602);
});

test("a task in the 1.0 dialect has wrapped frames with exactly one member, and the caller's id", async () => {
  const params = { message: { role: 'ROLE_USER', messageId: 'v1', parts: [{ text: 'hello world' }] } };
  const list = await collect(cluster.url, { dialect: '1.0', method: 'SendStreamingMessage', params, rpcId: 1 });
  for (const { result, rpcId } of list) {
    assert.equal(Object.keys(result).length, 1);
    assert.equal(rpcId, 1);
  }
  assert.equal(textOf(list, 'streaming_result'), 'hello world');
  assert.equal(shapeOf(list.at(-1)!), 'status:completed');
  const taskId = (list[0]!.result as { task: { id: string } }).task.id;
  const got = await call({ dialect: '1.0', method: 'GetTask', params: { id: taskId } });
  assert.equal(got.result.status.state, 'TASK_STATE_COMPLETED');
});

test('a message to an ended task is rejected without effect', async () => {
  const { result } = await send(messageParams('hello'));
  const before = await factsOf(log, result.id);
  const answered = await send(messageParams('more', { taskId: result.id }));
  assert.equal(answered.error?.code, -32004);
  assert.deepEqual(await factsOf(log, result.id), before);
});

test('invalid JSON, an invalid request, an unknown method and an unknown task have their error codes [S3-19 S3-20 S4-29 S4-30 S4-31]', async () => {
  const post = async (body: string) =>
    (await (await fetch(cluster.url, { method: 'POST', headers: { 'content-type': 'application/json' }, body })).json()) as {
      error: { code: number };
      id: unknown;
    };
  assert.equal((await post('{"id": 1, ')).error.code, -32700);
  assert.equal((await post('{"id":1}')).error.code, -32600);
  assert.equal((await post('{"jsonrpc":"1.0","id":1,"method":"message/send"}')).error.code, -32600);
  const unknown = await post('{"jsonrpc":"2.0","id":"u","method":"no/such"}');
  assert.deepEqual([unknown.error.code, unknown.id], [-32601, 'u']);
  assert.equal((await call({ method: 'tasks/get', params: { id: 'no-such-task' } })).error?.code, -32001);
});
