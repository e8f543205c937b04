import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, test } from 'node:test';
import { decodeSse, type StreamResponse, type Task } from '@hopline/a2a';
import type { Log } from '@hopline/log';
import { openJetStreamLog } from '@hopline/log-jetstream';
import fc from 'fast-check';
import { userMessage } from '../kit/user-message.ts';
import { type RemoteAgent, type Step, startRemoteAgent } from '../support/agents/remote-agent.ts';
import { rpc } from '../support/cluster/a2a-stream.ts';
import { Cluster } from '../support/cluster/cluster.ts';

const WORDS = Array.from({ length: 60 }, (_, index) => `${index} `);

let agent: RemoteAgent;
let cluster: Cluster;
let log: Log;

function* play(text: string, turn: number): Generator<Step> {
  if (text === 'ask' && turn === 1) return yield { inputRequired: 'Which one?' };
  if (text === 'hang') return yield* [{ status: 'working' }, { hang: true }] as Step[];
  if (text === 'fail') return yield { fail: true, text: 'no database' };
  for (const word of WORDS) yield* [{ token: word }, { pause: 4 }] as Step[];
  yield { complete: true };
}

before(async () => {
  agent = await startRemoteAgent({ dialect: '1.0', script: ({ text, turn }) => play(text, turn) });
  cluster = await Cluster.shared({
    agents: [{ name: 'sixty', adapter: 'a2a', url: agent.url }],
    balanced: true,
    ownEnv: { HOPLINE_BODY_BYTES_MAX: '4096' },
  });
  log = await openJetStreamLog({ servers: cluster.nats.url, name: 'test' });
});

after(async () => {
  await log?.close();
  await cluster?.[Symbol.asyncDispose]();
  await agent?.close();
});

type Answer = { status: number; type: string | null; text: string; body: Record<string, unknown> };
type Listed = { tasks: Task[]; nextPageToken: string; totalSize?: number };

async function open(line: string, body?: unknown, replica?: number, headers: Record<string, string> = {}): Promise<Response> {
  const [method = '', path = ''] = line.split(' ');
  const content = typeof body === 'string' || body instanceof Uint8Array ? body : body && JSON.stringify(body);
  const url = replica === undefined ? cluster.url : cluster.ingresses[replica]!.url;
  return fetch(`${url}${path}`, {
    method,
    headers: { 'a2a-version': '1.0', ...(content !== undefined && { 'content-type': 'application/a2a+json' }), ...headers },
    ...(content !== undefined && { body: content as string }),
  });
}

async function rest(...request: Parameters<typeof open>): Promise<Answer> {
  const response = await open(...request);
  const text = await response.text();
  return { status: response.status, type: response.headers.get('content-type'), text, body: text === '' ? {} : JSON.parse(text) };
}

const message = (text: string, more: object = {}) => ({
  message: userMessage(text, more),
});

async function send(text: string, more: object = {}): Promise<Task> {
  const { status, body } = await rest('POST /message:send', message(text, more));
  assert.equal(status, 200, JSON.stringify(body));
  return body.task as Task;
}

type Frame = { id: string; event: StreamResponse };

async function framesOf(response: Response, count = Number.POSITIVE_INFINITY): Promise<Frame[]> {
  assert.match(response.headers.get('content-type') ?? '', /^text\/event-stream/);
  const frames: Frame[] = [];
  for await (const { id = '', data } of decodeSse(response.body!)) {
    frames.push({ id, event: JSON.parse(data) as StreamResponse });
    if (frames.length >= count) break;
  }
  return frames;
}

function answerOf(frames: Frame[]): string {
  return frames
    .flatMap(({ event }) => ('artifactUpdate' in event ? [event.artifactUpdate.artifact] : []))
    .filter(artifact => artifact.name === 'streaming_result')
    .flatMap(artifact => artifact.parts.map(part => part.text))
    .join('');
}

/** Polls, because another replica learns of a task through the log. */
async function listed(query: string, replica: number, until: (page: Listed) => boolean): Promise<Listed> {
  for (const limit = Date.now() + 20_000; ; ) {
    const { status, body } = await rest(`GET /tasks?${query}`, undefined, replica);
    assert.equal(status, 200);
    const page = body as unknown as Listed;
    if (until(page)) return page;
    assert(Date.now() < limit, `still ${JSON.stringify(page).slice(0, 500)}`);
  }
}

test('send, get and stream over HTTP+JSON equal JSON-RPC for the same task, on either replica [S1-22]', async () => {
  const task = await send('count');
  assert.equal(task.status.state, 'TASK_STATE_COMPLETED');
  const { body, type } = await rest(`GET /tasks/${task.id}`, undefined, 1);
  assert.equal(type, 'application/a2a+json');
  const other = await rpc(cluster.url, { dialect: '1.0', method: 'GetTask', params: { id: task.id } });
  assert.deepEqual(body, ((await other.json()) as { result: unknown }).result);
  const frames = await framesOf(await open('POST /message:stream', message('count')));
  for (const { event } of frames) assert.equal(Object.keys(event).length, 1);
  assert.equal(answerOf(frames), WORDS.join(''));
});

test('an interrupted stream resumes by cursor on the other replica, by GET and POST, header and query, each frame once [S3-31]', async () => {
  const begun = await open('POST /message:stream', message('count'));
  let frames = await framesOf(begun, 3);
  const [first] = frames;
  assert(first !== undefined && 'task' in first.event);
  const { id } = first.event.task;
  const cut = async (response: Response) => {
    frames = [...frames, ...(await framesOf(response, 4))];
  };
  await cut(await open(`GET /tasks/${id}:subscribe`, undefined, 1, { 'last-event-id': frames.at(-1)!.id }));
  await cut(await open(`POST /tasks/${id}:subscribe?cursor=${frames.at(-1)!.id}`, '', 0));
  frames = [...frames, ...(await framesOf(await open(`GET /tasks/${id}:subscribe?cursor=${frames.at(-1)!.id}`, undefined, 1)))];
  assert.deepEqual(
    frames.map(frame => Number(frame.id.split('.')[0])),
    frames.map((_, index) => index + 1),
  );
  assert.equal(answerOf(frames), WORDS.join(''));
  const replay = await framesOf(await open(`GET /tasks/${id}:subscribe?cursor=0.0`, undefined, 1));
  assert.deepEqual(replay, frames, 'from the start, after the end');
  assert.equal(
    (await rest(`GET /tasks/${id}:subscribe`)).status,
    400,
    'without a cursor there is nothing to subscribe to (S4-37)',
  );
});

test('both replicas list tasks of a context: newest status first, filtered, in pages, without artifacts', async () => {
  const contextId = randomUUID();
  const query = `contextId=${contextId}`;
  const tasks: Task[] = [];
  for (const text of ['count', 'ask', 'fail', 'ask']) tasks.push(await send(text, { contextId }));
  const ids = tasks.map(task => task.id).toReversed();
  const here = await listed(query, 0, ({ totalSize }) => totalSize === 4);
  assert.deepEqual(
    here.tasks.map(task => task.id),
    ids,
  );
  const there = await listed(query, 1, ({ totalSize }) => totalSize === 4);
  assert.deepEqual(there, here);
  assert.equal(
    here.tasks.some(task => 'artifacts' in task),
    false,
  );
  const waiting = await listed(`${query}&status=TASK_STATE_INPUT_REQUIRED&pageSize=1`, 1, () => true);
  assert.deepEqual(
    waiting.tasks.map(task => task.id),
    [ids[0]],
  );
  // The total is absent if this page needed only the newest of the tasks that other files have left.
  assert.ok([2, undefined].includes(waiting.totalSize), `${waiting.totalSize}`);
  const next = await listed(
    `${query}&status=TASK_STATE_INPUT_REQUIRED&pageSize=1&pageToken=${waiting.nextPageToken}`,
    0,
    () => true,
  );
  assert.deepEqual([next.tasks.map(task => task.id), next.nextPageToken], [[ids[2]], '']);
  const since = encodeURIComponent(here.tasks[1]!.status.timestamp!);
  const late = await listed(`${query}&statusTimestampAfter=${since}&includeArtifacts=true&historyLength=0`, 1, () => true);
  assert.deepEqual(
    late.tasks.map(task => task.id),
    ids.slice(0, 2),
  );
  for (const task of late.tasks) assert.deepEqual(['history' in task, Array.isArray(task.artifacts)], [false, true]);
  await send('go on', { taskId: ids[2] });
  const moved = await listed(query, 1, page => page.tasks[0]?.status.state === 'TASK_STATE_COMPLETED');
  assert.deepEqual(
    moved.tasks.map(task => task.id),
    [ids[2], ids[0], ids[1], ids[3]],
  );
});

test('a task is canceled on the other replica; an ended task cannot be canceled [S3-26 S4-34 S4-35 S4-37]', async () => {
  const stream = await open('POST /message:stream', message('hang'));
  const events = decodeSse(stream.body!)[Symbol.asyncIterator]();
  const { task } = JSON.parse((await events.next()).value!.data) as { task: Task };
  const canceled = await rest(`POST /tasks/${task.id}:cancel`, {}, 1);
  assert.deepEqual([canceled.status, (canceled.body as unknown as Task).status.state], [200, 'TASK_STATE_CANCELED']);
  let last = '';
  for (let next = await events.next(); next.done !== true; next = await events.next()) last = next.value.data;
  assert.match(last, /TASK_STATE_CANCELED/);
  assert.equal(statusAndReason(await rest(`POST /tasks/${task.id}:cancel`, {})), '400 TASK_NOT_CANCELABLE');
  assert.equal(
    statusAndReason(await rest('POST /message:send', message('more', { taskId: task.id }))),
    '400 UNSUPPORTED_OPERATION',
  );
});

function statusAndReason({ status, body }: Answer): string {
  const { error } = body as { error?: { code: number; details: { reason: string }[] } };
  assert.equal(error?.code, status, JSON.stringify(body));
  return `${status} ${error?.details[0]?.reason}`;
}

test('each error that a REST client can cause has its status [C-12 S3-20 S4-29 S4-32 S4-36 S4-38]', async () => {
  const cases: [expected: string, ...Parameters<typeof open>][] = [
    ['400 PARSE_ERROR', 'POST /message:send', '{'],
    ['400 INVALID_PARAMS', 'POST /message:send', {}],
    ['400 INVALID_PARAMS', 'GET /tasks?pageSize=101'],
    ['400 INVALID_PARAMS', 'GET /tasks/%zz'],
    ['404 TASK_NOT_FOUND', 'GET /tasks/unknown'],
    ['404 TASK_NOT_FOUND', 'POST /tasks/unknown:cancel'],
    ['404 TASK_NOT_FOUND', 'POST /tasks/unknown:subscribe'],
    ['404 TASK_NOT_FOUND', 'GET /acme/tasks'],
    ['404 METHOD_NOT_FOUND', 'POST /tasks/unknown:fly'],
    ['405 METHOD_NOT_FOUND', 'PUT /tasks'],
    ['400 PUSH_NOTIFICATION_NOT_SUPPORTED', 'GET /tasks/unknown/pushNotificationConfigs'],
    ['400 UNSUPPORTED_OPERATION', 'GET /extendedAgentCard'],
    ['400 CONTENT_TYPE_NOT_SUPPORTED', 'POST /message:send', 'x', 0, { 'content-type': 'text/plain' }],
    ['400 VERSION_NOT_SUPPORTED', 'GET /tasks', undefined, 0, { 'a2a-version': '2.0' }],
    ['400 VERSION_NOT_SUPPORTED', 'GET /tasks', undefined, 0, { 'a2a-version': '' }],
    ['413 REQUEST_TOO_LARGE', 'POST /message:send', message('x'.repeat(4_096))],
  ];
  for (const [expected, ...request] of cases) assert.equal(statusAndReason(await rest(...request)), expected, request[0]);
});

test('card and OpenAPI document name the address of this binding', async () => {
  const { body } = await rest('GET /.well-known/agent-card.json');
  const interfaces = body.supportedInterfaces as { url: string; protocolBinding: string; protocolVersion: string }[];
  const { url, protocolVersion } = interfaces.find(one => one.protocolBinding === 'HTTP+JSON')!;
  assert.deepEqual([url, protocolVersion], [cluster.url, '1.0']);
  const document = await rest('GET /openapi.json');
  assert.deepEqual([document.body.openapi, document.body.servers], ['3.1.0', [{ url }]]);
});

test('no request causes a 500, a stack trace or a change of state [S4-33]', async () => {
  const { id, contextId } = await send('ask');
  const state = async () => {
    const newest = await log.facts.last(id);
    return {
      newest,
      tasks: (await rest(`GET /tasks?contextId=${contextId}`)).body.totalSize,
      all: (await rest('GET /tasks')).body.totalSize,
    };
  };
  const before = await state();
  const path = fc.oneof(
    fc.constantFrom(
      '/message:send',
      '/message:stream',
      '/tasks',
      `/tasks/${id}`,
      `/tasks/${id}:fly`,
      '/a/tasks',
      '/openapi.json',
    ),
    fc.webPath(),
    fc.string().map(text => `/tasks/${encodeURIComponent(text)}`),
  );
  const valid = message('x').message;
  const member = fc.constantFrom('messageId', 'role', 'parts', 'taskId');
  const broken = fc
    .tuple(member, fc.oneof(fc.constantFrom<unknown>(null, '', [], {}, 7, '\u0000'), fc.object()))
    .map(([name, value]) =>
      JSON.stringify({
        message: { ...valid, taskId: 'unknown', [name]: name === 'taskId' ? `no.${JSON.stringify(value)}` : value },
      }),
    );
  const body = fc.oneof(fc.json(), fc.string(), fc.uint8Array({ maxLength: 64 }), broken);
  const method = fc.constantFrom('GET', 'POST', 'PUT', 'DELETE', 'PATCH');
  await fc.assert(
    fc.asyncProperty(method, path, fc.webQueryParameters(), body, async (verb, at, query, sent) => {
      const answer = await rest(`${verb} ${at}?${query}`, verb === 'GET' ? undefined : sent);
      assert(answer.status < 500, `${verb} ${at} ${answer.status} ${answer.text}`);
      assert(verb === 'GET' || 'error' in answer.body, `${verb} ${at} ${String(sent)} ${answer.text}`);
      assert.doesNotMatch(answer.text, /node_modules|node:internal|\.ts:\d/);
    }),
    { numRuns: 400 },
  );
  assert.deepEqual(await state(), before);
  for (const { output } of cluster.ingresses) assert.doesNotMatch(output, /request failed/);
});
