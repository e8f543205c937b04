import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { status } from '@grpc/grpc-js';
import { DIALECTS, decodeSse, Fold, type StreamResponse } from '@hopline/a2a';
import { CallFailed, GrpcClient, userMessage } from '@hopline/a2a-grpc/test-client';
import { until } from '../kit/until.ts';
import { countingTokens, startCountingAgent } from '../support/agents/counting-agent.ts';
import type { RemoteAgent } from '../support/agents/remote-agent.ts';
import { messageParams } from '../support/cluster/a2a-stream.ts';
import { Cluster } from '../support/cluster/cluster.ts';

const TOKENS = countingTokens(400);
const ANSWER = TOKENS.join('');
/** Servers report the log as unavailable after trying for 20 s. */
const ANSWER_MS_MAX = 30_000;
/** Events of an open stream before the log becomes unavailable. */
const EVENTS_BEFORE = 8;

let remote: RemoteAgent;
let cluster: Cluster;
let grpc: GrpcClient;

before(async () => {
  remote = await startCountingAgent(TOKENS, 20);
  cluster = await Cluster.start({
    agents: [{ name: 'counter', adapter: 'a2a', url: remote.url }],
    ingresses: 2,
    grpc: true,
    env: { HOPLINE_PUSH: 'true' },
  });
  grpc = clientOf(1);
});

after(async () => {
  grpc?.close();
  await cluster?.[Symbol.asyncDispose]();
  await remote?.close();
});

/** Tasks start at the first ingress and are read at the second, which has none of them in memory. */
const clientOf = (index: number) => new GrpcClient(`127.0.0.1:${cluster.ingresses[index]!.spec.env.HOPLINE_GRPC_PORT}`);

type Headers = Record<string, string>;

function request(index: number, method: string, path: string, headers: Headers, body?: object): Promise<Response> {
  return fetch(new URL(path, cluster.ingresses[index]!.url), {
    method,
    headers: { ...headers, ...(body && { 'content-type': 'application/json' }) },
    ...(body && { body: JSON.stringify(body) }),
  });
}

/** Each service's metric of its connection to NATS. */
function connections(): Promise<number[]> {
  const connection = async ({ url }: { url: string }) => {
    const text = await (await fetch(`${url}/metrics`)).text();
    return Number(/^hopline_log_connected\{.*\} (\d)$/m.exec(text)?.[1]);
  };
  return Promise.all(cluster.services.map(connection));
}

/** `ok`, or the error with its retry delay. A stream is read up to its first frame. */
async function answered(method: string, path: string, headers: Headers, body?: object): Promise<string> {
  const response = await request(1, method, path, headers, body);
  if (response.headers.get('content-type')?.startsWith('text/event-stream')) {
    for await (const { event, data } of decodeSse(response.body!)) {
      const { error, code } = JSON.parse(data);
      if (event === 'error' || error !== undefined || code !== undefined)
        return data.includes('"UNAVAILABLE"') ? 'unavailable' : data;
      return 'ok';
    }
    return 'a stream without a word';
  }
  const text = await response.text();
  if (response.ok && !text.includes('"error"')) return 'ok';
  const isClear = response.status === 503 && response.headers.get('retry-after') === '1' && text.includes('"UNAVAILABLE"');
  return isClear ? 'unavailable' : `${response.status} ${text}`;
}

async function called(run: Promise<unknown>): Promise<string> {
  try {
    await run;
    return 'ok';
  } catch (error) {
    assert.ok(error instanceof CallFailed, String(error));
    const isClear = error.code === status.UNAVAILABLE && error.details.some(detail => detail.retryDelay === '1s');
    return isClear ? 'unavailable' : `${error.code} ${error.message}`;
  }
}

type Operation = [name: string, run: () => Promise<string>];

function operations(taskId: string): Operation[] {
  const rpc = (version: string, method: string, params: object): Operation => [
    `JSON-RPC ${version} ${method}`,
    () => answered('POST', '/', { 'a2a-version': version }, { jsonrpc: '2.0', id: 1, method, params }),
  ];
  const rest = (method: string, path: string, body?: object): Operation => [
    `HTTP+JSON ${method} ${path}`,
    () => answered(method, path, path.startsWith('/v1/') ? {} : { 'a2a-version': '1.0' }, body),
  ];
  const options = (version: '1.0' | '0.3') => ({ version, deadline: ANSWER_MS_MAX * 2 });
  const unary = (version: '1.0' | '0.3', name: string, message: object): Operation => [
    `gRPC ${version} ${name}`,
    () => called(grpc.call(name, message, options(version))),
  ];
  const stream = (version: '1.0' | '0.3', name: string, message: object): Operation => [
    `gRPC ${version} ${name}`,
    () => called(grpc.stream(name, message, options(version)).take(1)),
  ];
  const send = () => ({ message: userMessage('count'), configuration: { returnImmediately: true } });
  const message03 = () => ({ message: { messageId: crypto.randomUUID(), role: 'ROLE_USER', content: [{ text: 'count' }] } });
  return [
    rpc('0.3', 'message/send', { ...messageParams('count'), configuration: { blocking: false } }),
    rpc('0.3', 'message/stream', messageParams('count')),
    rpc('0.3', 'tasks/get', { id: taskId }),
    rpc('1.0', 'ListTasks', {}),
    rpc('1.0', 'SubscribeToTask', { id: taskId }),
    rest('POST', '/message:send', send()),
    rest('POST', '/message:stream', send()),
    rest('GET', '/tasks'),
    rest('GET', `/tasks/${taskId}`),
    rest('GET', `/tasks/${taskId}:subscribe`),
    rest('POST', '/v1/message:send', { ...message03(), configuration: { blocking: false } }),
    rest('GET', `/v1/tasks/${taskId}`),
    rest('GET', `/v1/tasks/${taskId}/pushNotificationConfigs`),
    unary('1.0', 'SendMessage', send()),
    stream('1.0', 'SendStreamingMessage', send()),
    unary('1.0', 'GetTask', { id: taskId }),
    unary('1.0', 'ListTasks', {}),
    stream('1.0', 'SubscribeToTask', { id: taskId }),
    stream('0.3', 'SendStreamingMessage', message03()),
    unary('0.3', 'GetTask', { name: `tasks/${taskId}` }),
  ];
}

async function outcomes(taskId: string): Promise<{ of: Record<string, string>; msMax: number }> {
  let msMax = 0;
  const ask = async ([name, run]: Operation) => {
    const startedAt = performance.now();
    const outcome = await run();
    msMax = Math.max(msMax, performance.now() - startedAt);
    return [name, outcome] as const;
  };
  const of = Object.fromEntries(await Promise.all(operations(taskId).map(ask)));
  return { of, msMax };
}

/** Follows one task to its end. */
type Viewer = { events: StreamResponse[]; ended: Promise<void>; open: boolean };

function view(events: AsyncIterable<StreamResponse>): Viewer {
  const viewer: Viewer = { events: [], ended: Promise.resolve(), open: true };
  const read = async () => {
    for await (const event of events) viewer.events.push(event);
  };
  viewer.ended = read().finally(() => {
    viewer.open = false;
  });
  viewer.ended.catch(() => {});
  return viewer;
}

async function* sseEvents(response: Response, eventOf: (json: { result?: object }) => unknown): AsyncGenerator<StreamResponse> {
  assert.equal(response.status, 200);
  for await (const { event, data } of decodeSse(response.body!)) {
    if (event === undefined || event === 'message') yield eventOf(JSON.parse(data)) as StreamResponse;
  }
}

async function* grpcEvents(client: GrpcClient, id: string): AsyncGenerator<StreamResponse> {
  const stream = client.stream('SubscribeToTask', { id });
  for (let event = await stream.next(); event !== undefined; event = await stream.next()) yield event;
}

async function viewersOf(client: GrpcClient): Promise<{ taskId: string; viewers: Viewer[] }> {
  const begin = { jsonrpc: '2.0', id: 1, method: 'message/stream', params: messageParams('count') };
  const decode = ({ result }: { result?: object }) => {
    const decoded = DIALECTS['0.3'].decodeEvent(result);
    assert.ok('event' in decoded);
    return decoded.event;
  };
  const first = view(sseEvents(await request(0, 'POST', '/', {}, begin), decode));
  await until(() => first.events.length > 0);
  const [opening] = first.events;
  assert.ok(opening !== undefined && 'task' in opening);
  const taskId = opening.task.id;
  const rest = await request(0, 'GET', `/tasks/${taskId}:subscribe`, { 'a2a-version': '1.0' });
  return { taskId, viewers: [first, view(sseEvents(rest, json => json)), view(grpcEvents(client, taskId))] };
}

test('without nats-server each binding returns 503 in bounded time, open streams stay open, and all continue after its restart', {
  timeout: 180_000,
}, async t => {
  const client = clientOf(0);
  t.after(() => client.close());
  const { taskId, viewers } = await viewersOf(client);
  await until(() => viewers.every(({ events }) => events.length >= EVENTS_BEFORE));
  await cluster.nats.kill();

  const away = await outcomes(taskId);
  t.diagnostic(`${Math.round(away.msMax)} ms`);
  for (const [name, outcome] of Object.entries(away.of)) assert.equal(outcome, 'unavailable', name);
  assert.ok(away.msMax < ANSWER_MS_MAX, `${away.msMax} ms`);
  for (const { url } of cluster.ingresses)
    assert.deepEqual([(await fetch(`${url}/readyz`)).status, (await fetch(`${url}/livez`)).status], [503, 200]);
  assert.deepEqual(
    await connections(),
    cluster.services.map(() => 0),
  );
  assert.deepEqual(
    viewers.map(({ open }) => open),
    [true, true, true],
  );

  await cluster.nats.restart();
  for (const { events, ended } of viewers) {
    await ended;
    const fold = new Fold();
    for (const event of events) fold.add(event);
    assert.deepEqual([fold.violations, fold.task?.status.state], [[], 'TASK_STATE_COMPLETED']);
    assert.equal(fold.textOf('streaming_result'), ANSWER);
  }
  // The task may end before a service that has no part in it connects again.
  await until(
    async () => (await connections()).every(connected => connected === 1),
    'every service reports that it is connected',
  );
  const { of } = await outcomes(taskId);
  for (const [name, outcome] of Object.entries(of)) {
    // The task has ended, and 1.0 rejects a subscription to an ended task.
    if (/[sS]ubscribe/.test(name)) assert.match(outcome, /UNSUPPORTED_OPERATION|^9 /, name);
    else assert.equal(outcome, 'ok', name);
  }
});
