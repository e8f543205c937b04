import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, test } from 'node:test';
import type { Log } from '@hopline/log';
import { openJetStreamLog } from '@hopline/log-jetstream';
import { until } from '../kit/until.ts';
import { type RemoteAgent, type Step, startRemoteAgent } from '../support/agents/remote-agent.ts';
import { Cluster } from '../support/cluster/cluster.ts';
import { factsOf } from '../support/cluster/facts-of.ts';
import { ask, type Frame, fold, type Json, post, read, rpc, states, stream } from '../support/cluster/legacy-client.ts';

const STOCK = { 'SKU-12345': { quantity: 240, location: 'Warehouse-A' } };
const WORDS = Array.from({ length: 40 }, (_, index) => `${index} ha ha\n`);
/** Far more than closing takes, and far less than a heartbeat of an open stream. */
const CLOSED_MS_MAX = 10_000;
const TERMINAL = ['completed', 'failed', 'canceled'];
/** Answers by session of the agent; the example of S3: 4, 6, and their sum. */
const sums = new Map<string, number[]>();

let agent: RemoteAgent;
let cluster: Cluster;
let log: Log;

function* play(text: string, contextId: string, turn: number): Generator<Step> {
  if (text.includes('stock')) {
    yield { status: 'working', text: 'Querying warehouse database...' };
    yield { status: 'working', text: 'Processing SKU-67890 threshold analysis...' };
    const parts = [{ kind: 'data', data: STOCK }];
    yield {
      artifact: { artifactId: 's', name: 'stock-levels', description: 'Current inventory levels', parts },
      lastChunk: true,
    };
  } else if (text.includes('report')) {
    for (const [index, word] of WORDS.entries()) {
      const name = index % 2 === 0 ? 'report' : 'notes';
      yield { artifact: { artifactId: name, name, text: word }, append: index > 1, lastChunk: index >= WORDS.length - 2 };
      yield { pause: 5 };
    }
  } else if (text.includes('reorder') && turn === 1) return yield { inputRequired: 'Please confirm quantity to proceed.' };
  else if (text.includes('hang')) yield* [{ status: 'working', text: 'begun' }, { hang: true }] as Step[];
  else if (text.includes('broken')) {
    return yield { fail: true, text: 'no database', metadata: { reason: 'database timeout', retryable: true } };
  } else if (/^\d/.test(text) || text === 'Add them together') {
    const known = sums.get(contextId) ?? [];
    const [a = 0, b = 0] = text === 'Add them together' ? known : text.split('+').map(Number);
    sums.set(contextId, [...known, a + b]);
    yield { artifact: { artifactId: 'sum', name: 'sum', text: `${a} + ${b} = ${a + b}` }, lastChunk: true };
  } else yield { artifact: { artifactId: 'echo', name: 'echo', text }, lastChunk: true };
  yield { complete: true };
}

before(async () => {
  agent = await startRemoteAgent({
    dialect: '0.3',
    script: ({ text, params, turn }) => play(text, (params.message as { contextId: string }).contextId, turn),
  });
  const agents = [{ name: 'inventory', adapter: 'a2a', url: agent.url, text: 'progress' }];
  cluster = await Cluster.shared({ agents, balanced: true, profile: 'transparent' });
  log = await openJetStreamLog({ servers: cluster.nats.url, name: 'test' });
});

after(async () => {
  await log?.close();
  await cluster?.[Symbol.asyncDispose]();
  await agent?.close();
});

function reached(id: string, state: string): Promise<Json> {
  return until(async () => {
    const { result } = await rpc(cluster.url, 'tasks/get', { id });
    if (result?.status.state === state) return result;
    assert.equal(TERMINAL.includes(result?.status.state), false);
  }, `${id} is ${state}`);
}

test('the stream of S4, frame by frame [S3-14 S3-15 S3-16 S4-15 S4-16 S4-17 S4-18 S4-19 S4-20 S4-21]', async () => {
  const id = randomUUID();
  const response = await post(cluster.url, 'tasks/sendSubscribe', ask(id, 'check stock'), { id: 'req-7' });
  const frames = await read(response);
  const closedAfterMs = performance.now() - frames.at(-1)!.atMs;
  assert.ok(closedAfterMs < CLOSED_MS_MAX, `closed after ${closedAfterMs} ms`);
  for (const { data } of frames) {
    assert.deepEqual([data.jsonrpc, data.id, data.taskId], ['2.0', 'req-7', id]);
    assert.equal(data.type, data.status ? 'taskStatusUpdate' : 'taskArtifactUpdate');
    assert.deepEqual([data.result.id, data.result.status, data.result.artifact], [id, data.status, data.artifact]);
  }
  assert.deepEqual(
    frames.map(({ data }) => data.status?.message?.parts[0].text ?? data.status?.state ?? data.artifact.name),
    ['submitted', 'Querying warehouse database...', 'Processing SKU-67890 threshold analysis...', 'stock-levels', 'completed'],
  );
  const { artifact } = frames.find(({ data }) => data.artifact)!.data;
  assert.deepEqual([artifact.index, artifact.lastChunk, artifact.parts], [0, true, [{ type: 'data', data: STOCK }]]);
  assert.equal(fold(frames).size, 1, 'progress is not part of the answer');
  const times = frames.flatMap(({ data }) => (data.status ? [data.status.timestamp] : []));
  for (const time of times) assert.match(time, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
  assert.deepEqual(times, times.toSorted());
  assert.deepEqual(
    frames.map(({ data }) => data.result.final === true),
    frames.map((_frame, index) => index === frames.length - 1),
  );
});

test('tasks/send of S4 returns the same id, artifacts, metadata and duration [S3-4 S3-10 S4-8 S4-9 S4-14]', async () => {
  const id = randomUUID();
  const metadata = { correlationId: 'order-workflow-42', requestedBy: 'procurement-agent-v2' };
  const { result, id: rpcId } = await rpc(cluster.url, 'tasks/send', ask(id, 'check stock', { metadata }), { id: 'req-001' });
  assert.deepEqual([rpcId, result.id, result.status.state], ['req-001', id, 'completed']);
  assert.match(result.status.timestamp, /^\d{4}-\d\d-\d\dT.*\.\d{3}Z$/);
  const [artifact] = result.artifacts;
  assert.deepEqual(
    [artifact.name, artifact.description, artifact.parts],
    ['stock-levels', 'Current inventory levels', [{ type: 'data', data: STOCK }]],
  );
  const { processingTimeMs, ...own } = result.metadata;
  assert.deepEqual(own, metadata);
  assert.ok(Number.isInteger(processingTimeMs) && processingTimeMs >= 0);
  const got = await rpc(cluster.ingresses[1]!.url, 'tasks/get', { id });
  assert.deepEqual(got.result, result, 'on the other replica too');
});

test('a question is answered with the same id on the other replica, and both are in the history [S3-11 S4-11 S4-26 S4-27 S4-28]', async () => {
  const id = randomUUID();
  const question = await stream(cluster.url, 'tasks/sendSubscribe', ask(id, 'reorder'));
  assert.deepEqual([...new Set(states(question))], ['submitted', 'working', 'input-required']);
  assert.equal(question.at(-1)!.data.status.message.parts[0].text, 'Please confirm quantity to proceed.');
  const { result } = await rpc(cluster.ingresses[1]!.url, 'tasks/send', ask(id, 'Proceed with 250 units.'));
  assert.deepEqual(
    [result.id, result.status.state, result.artifacts[0].parts[0].text],
    [id, 'completed', 'Proceed with 250 units.'],
  );
  assert.deepEqual(
    result.history.map((message: Json) => [message.role, message.parts[0].text]),
    [
      ['user', 'reorder'],
      ['agent', 'Please confirm quantity to proceed.'],
      ['user', 'Proceed with 250 units.'],
    ],
  );
  const kept = (await factsOf(log, id)).flatMap(fact => {
    if (fact.kind === 'task.created') return [fact.event.task.status.state];
    return fact.kind === 'status.changed' ? [fact.event.statusUpdate.status.state] : [];
  });
  const path = kept.map(state => state.replace('TASK_STATE_', '')).filter((state, index, all) => state !== all[index - 1]);
  assert.deepEqual(path, ['SUBMITTED', 'WORKING', 'INPUT_REQUIRED', 'WORKING', 'COMPLETED']);
});

test("tasks of one session share the agent's history: 4, 6, 10 [S3-17]", async () => {
  const sessionId = `session-${process.pid}`;
  const answers: string[] = [];
  for (const [index, text] of ['2+2', '3+3', 'Add them together'].entries()) {
    const url = cluster.ingresses[index % 2]!.url;
    const { result } = await rpc(url, 'tasks/send', ask(randomUUID(), text, { sessionId }));
    assert.equal(result.sessionId, sessionId);
    answers.push(result.artifacts[0].parts[0].text);
  }
  assert.deepEqual(answers, ['2 + 2 = 4', '3 + 3 = 6', '4 + 6 = 10']);
});

test('tasks/cancel stops the agent, and no event follows [S3-26 S3-28 S4-35]', async () => {
  const id = randomUUID();
  const streaming = stream(cluster.url, 'tasks/sendSubscribe', ask(id, 'hang'));
  await reached(id, 'working');
  await until(() => agent.requests.some(({ text }) => text === 'hang'));
  const { result } = await rpc(cluster.ingresses[1]!.url, 'tasks/cancel', { id });
  assert.deepEqual([result.id, result.status.state], [id, 'canceled']);
  assert.equal(states(await streaming).at(-1), 'canceled');
  const again = await rpc(cluster.url, 'tasks/cancel', { id });
  assert.deepEqual([again.error.code, again.error.data.taskId], [-32002, id]);
  await until(() => agent.openStreams() === 0, 'the agent stops');
  const last = (await factsOf(log, id)).at(-1)!;
  assert.ok(last.kind === 'status.changed' && last.event.statusUpdate.status.state === 'TASK_STATE_CANCELED');
  const asking = randomUUID();
  await rpc(cluster.url, 'tasks/send', ask(asking, 'reorder'));
  assert.equal((await rpc(cluster.url, 'tasks/cancel', { id: asking })).result.status.state, 'canceled');
});

test('tasks/resubscribe on the other replica after any frame returns the same artifacts at the same indexes [S3-31]', async () => {
  const id = randomUUID();
  const whole = await stream(cluster.url, 'tasks/sendSubscribe', ask(id, 'report'));
  const expected = [...fold(whole).values()].map(({ text }) => text);
  const words = (rest: number) => WORDS.filter((_word, index) => index % 2 === rest).join('');
  assert.deepEqual(expected, [words(0), words(1)]);
  const url = cluster.ingresses[1]!.url;
  const datas = (frames: Frame[]) => frames.map(({ id: place, data }) => [place, data.result]);
  for (let cut = 1; cut < whole.length; cut += 1) {
    const rest = await stream(url, 'tasks/resubscribe', { id }, { lastEventId: whole[cut - 1]!.id! });
    assert.deepEqual(datas(rest), datas(whole.slice(cut)));
  }
  const live = randomUUID();
  const cut = new AbortController();
  const seen = await read(await post(cluster.url, 'tasks/sendSubscribe', ask(live, 'report'), { signal: cut.signal }), 5);
  cut.abort();
  const snapshot = await stream(url, 'tasks/resubscribe', { id: live });
  assert.deepEqual(
    [...fold(snapshot).values()].map(({ text }) => text),
    expected,
  );
  assert.equal(states([...seen, ...snapshot]).at(-1), 'completed');
});

test('a client disconnect right after the request does not affect the task [S4-25]', async () => {
  const id = randomUUID();
  const gone = new AbortController();
  await post(cluster.url, 'tasks/sendSubscribe', ask(id, 'report'), { signal: gone.signal });
  gone.abort();
  assert.equal((await reached(id, 'completed')).artifacts.length, 2);
});

test('a failed task has a reason and a retryable flag; a request that creates no task is an error [S3-12 S3-13 S4-39]', async () => {
  const id = randomUUID();
  const { result, error } = await rpc(cluster.url, 'tasks/send', ask(id, 'broken'));
  assert.deepEqual([error, result.id, result.status.state], [undefined, id, 'failed']);
  assert.deepEqual([typeof result.metadata.reason, typeof result.metadata.retryable], ['string', 'boolean']);
  const refused = await rpc(cluster.url, 'tasks/send', { ...ask(randomUUID(), 'x'), message: { role: 'user', parts: [] } });
  assert.deepEqual([refused.result, refused.error.code], [undefined, -32602]);
});

test('a task for an unknown agent fails from submitted, with a reason [S3-7]', async () => {
  const id = randomUUID();
  const frames = await stream(cluster.url, 'tasks/sendSubscribe', ask(id, 'hello', { metadata: { agent: 'unknown' } }));
  assert.deepEqual(states(frames), ['submitted', 'failed']);
  const { result } = await rpc(cluster.ingresses[1]!.url, 'tasks/get', { id });
  assert.deepEqual([result.status.state, result.metadata.retryable], ['failed', false]);
  assert.match(result.metadata.reason, /not available/);
});

test('the seven methods exist, and each invalid request has its code [S3-3 S3-20 S3-21 S4-7 S4-29 S4-30 S4-31 S4-32 S4-34 S4-37]', async () => {
  const raw = async (body: string): Promise<number> => {
    const response = await fetch(`${cluster.url}/a2a`, { method: 'POST', headers: { 'content-type': 'application/json' }, body });
    return ((await response.json()) as Json).error.code;
  };
  assert.equal(await raw('{"jsonrpc":"2.0","id":1,"method":"tasks/send",'), -32700);
  assert.equal(await raw('{"jsonrpc":"2.0","id":1}'), -32600);
  assert.equal(await raw('{"jsonrpc":"2.0","id":1,"method":"tasks/fly"}'), -32601);
  const code = async (method: string, params: Json) => (await rpc(cluster.url, method, params)).error.code;
  for (const name of ['send', 'sendSubscribe', 'get', 'cancel', 'resubscribe']) {
    assert.equal(await code(`tasks/${name}`, {}), -32602, name);
  }
  for (const method of ['tasks/get', 'tasks/cancel', 'tasks/resubscribe'])
    assert.equal(await code(method, { id: 'unknown' }), -32001);
  for (const method of ['tasks/pushNotification/set', 'tasks/pushNotification/get'])
    assert.equal(await code(method, { id: 'x' }), -32003);
  const id = randomUUID();
  await rpc(cluster.url, 'tasks/send', ask(id, 'hello'));
  assert.equal(await code('tasks/send', ask(id, 'hello')), -32004);
  assert.equal(await code('tasks/resubscribe', { id }), -32004);
});

test('parts of each type are returned as sent [S3-29 S4-10]', async () => {
  const parts = [
    { type: 'text', text: ' a\n' },
    { type: 'data', data: { k: [1, null] } },
    { type: 'file', file: { name: 'x.bin', mimeType: 'x/y', bytes: 'AAEC' } },
    { type: 'file', file: { uri: 'https://example.org/a.pdf' } },
  ];
  const media = { type: 'application/json', data: { n: 1 } };
  const { result } = await rpc(cluster.url, 'tasks/send', {
    id: randomUUID(),
    message: { role: 'user', parts: [...parts, media] },
  });
  assert.deepEqual(result.history[0].parts.slice(0, 4), parts);
  assert.deepEqual(result.history[0].parts[4].data, media.data);
});

test('concurrent requests keep their ids [S4-6]', async () => {
  await Promise.all(
    Array.from({ length: 30 }, async (_, n) => {
      const id = randomUUID();
      const url = cluster.ingresses[n % 2]!.url;
      const answer = await rpc(url, 'tasks/send', ask(id, `hello ${n}`), { id: `r-${n}` });
      assert.deepEqual([answer.id, answer.result.id, answer.result.artifacts[0].parts[0].text], [`r-${n}`, id, `hello ${n}`]);
    }),
  );
});

test('one task in three dialects: started in this one, read and followed in 1.0 and 0.3, canceled in this one', async () => {
  const id = randomUUID();
  const streaming = stream(cluster.url, 'tasks/sendSubscribe', ask(id, 'hang', { sessionId: 's' }));
  await reached(id, 'working');
  const other = async (version: string, method: string): Promise<Json> => {
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method, params: { id } });
    const headers = { 'content-type': 'application/json', 'a2a-version': version };
    return (await (await fetch(cluster.url, { method: 'POST', headers, body })).json()) as Json;
  };
  assert.deepEqual(
    [(await other('1.0', 'GetTask')).result.status.state, (await other('0.3', 'tasks/get')).result.kind],
    ['TASK_STATE_WORKING', 'task'],
  );
  const { result } = await rpc(cluster.url, 'tasks/cancel', { id });
  assert.deepEqual([result.sessionId, result.kind], ['s', undefined]);
  assert.equal(states(await streaming).at(-1), 'canceled');
  assert.equal((await other('0.3', 'tasks/get')).result.status.state, 'canceled');
});
