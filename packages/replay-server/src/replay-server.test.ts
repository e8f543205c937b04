import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { DIALECTS, decodeSse, foldEvents, legacyOrigin, type StreamResponse, stateWord, textOf } from '@hopline/a2a';
import { type CallFailed, GrpcClient } from '@hopline/a2a-grpc/test-client';
import { BEGINNING, createClient, type StreamItem } from '@hopline/client';
import type { Producer } from '@hopline/events';
import { type StoredScenario, supervisor } from '@hopline/task/test-kit';
import { createLogger } from '@hopline/telemetry';
import { collect } from '../../../test/kit/collect.ts';
import { type Faults, parseFaults } from './faults.ts';
import { GAP_MS, record } from './recording.test-kit.ts';
import type { MatchRule, Recording } from './recording.ts';
import { createReplayServer } from './replay-server.ts';

const QUESTION = 'explain hopline';
const ANSWER = ['How', ' it', ' works', ': facts', ' in', ' a', ' log'];
const allHosts = { refusal: '', allows: () => true, allowsRequest: () => true };

async function answer(task: StoredScenario, from: Producer = supervisor(), lane = 'a'): Promise<void> {
  await task.input(from, { kind: 'status', state: 'TASK_STATE_WORKING' }).store();
  await task.open(from, lane, { name: 'streaming_result' }).store();
  for (const [index, text] of ANSWER.entries()) await task.text(from, lane, text, index === ANSWER.length - 1).store();
}

const recorded = (question = QUESTION, taskId = 'task-1', metadata = {}) =>
  record(taskId, async task => {
    await task.message(question, 'm-recorded', 'supervisor', 'caipe', { metadata }).store();
    await answer(task);
    await task.input(supervisor(), { kind: 'status', state: 'TASK_STATE_COMPLETED' }).store();
  });

type Options = { recordings?: Recording[]; match?: MatchRule; pace?: number; faults?: Faults };

async function serve(t: TestContext, options: Options = {}) {
  const { recordings = await recorded(), match = 'text', pace = Number.POSITIVE_INFINITY, faults = {} } = options;
  const logger = createLogger({ service: 'test', instance: 'serve', level: 'silent' });
  const server = await createReplayServer({ recordings, match, pace, faults, version: '0', logger, hosts: allHosts });
  t.after(() => server.close());
  const { url, grpcPort } = await server.listen('127.0.0.1', 0, 0);
  const client = (more: Partial<Parameters<typeof createClient>[0]> = {}) =>
    createClient({ url, retry: { baseMs: 1, waitMsMax: 5 }, ...more });
  return { url, grpcPort, client };
}

const message = (text: string, more: object = {}) => ({ parts: [{ text }], ...more });
const eventsOf = (items: StreamItem[]) => items.map(item => ('event' in item ? item.event : assert.fail('a gap')));
const generations = (items: StreamItem[]) => items.map(item => ('cursor' in item ? Number(item.cursor?.split('.')[0]) : -1));

/** One word per event: a state, or the text of a chunk. */
function shape(events: StreamResponse[]): string[] {
  return events.map(event => {
    if ('task' in event) return `task ${stateWord(event.task.status.state)}`;
    if ('statusUpdate' in event) return stateWord(event.statusUpdate.status.state);
    return 'artifactUpdate' in event ? textOf(event.artifactUpdate.artifact.parts) : 'message';
  });
}

for (const dialect of ['1.0', '0.3'] as const) {
  test(`a question gets the recorded answer under a new id in dialect ${dialect}`, async t => {
    const { client } = await serve(t);
    const items = await collect(client({ dialect }).stream(message(QUESTION)));
    assert.deepEqual(shape(eventsOf(items)), ['task submitted', 'working', ...ANSWER, 'completed']);
    assert.deepEqual(
      generations(items),
      items.map((_, index) => index + 1),
    );
    const [first] = eventsOf(items);
    assert.ok(first !== undefined && 'task' in first);
    assert.notEqual(first.task.id, 'task-1');
    assert.equal(textOf(first.task.history?.[0]?.parts ?? []), QUESTION);
    assert.ok(Math.abs(Date.parse(first.task.status.timestamp!) - Date.now()) < 60_000, 'the times are those of now');
    const task = await client({ dialect }).get(first.task.id);
    assert.equal(textOf(task.artifacts?.[0]?.parts ?? []), ANSWER.join(''));
    assert.equal(task.status.state, 'TASK_STATE_COMPLETED');
  });
}

test('records as large as a cluster may store are served, and the largest messages are answered', {
  timeout: 120_000,
}, async t => {
  // The record of an image, from a NATS server that accepts 8 MB.
  const raw = Buffer.alloc(2 * 1024 * 1024).toString('base64');
  const recordings = await record('task-large', async task => {
    await task.message(QUESTION, 'm-recorded', 'supervisor', 'caipe').store();
    const artifact = { artifactId: 'image', name: 'image' };
    const parts = [{ raw, mediaType: 'image/png' }];
    await task.input(supervisor(), { kind: 'artifact', lane: 'i', artifact, parts, append: false, last: true }).store();
    await task.input(supervisor(), { kind: 'status', state: 'TASK_STATE_COMPLETED' }).store();
  });
  const { client } = await serve(t, { recordings });
  const largest = await client().send(message('x'.repeat(1_000_000)));
  assert.ok('task' in largest && largest.task.status.state === 'TASK_STATE_REJECTED');
  const answered = await client().send(message(QUESTION));
  assert.ok('task' in answered);
  assert.equal(answered.task.artifacts?.[0]?.parts[0]?.raw?.length, raw.length);
});

test('a client of the legacy dialect gets the recorded answer', async t => {
  const { url } = await serve(t);
  const params = { id: 'own-task', message: { role: 'user', parts: [{ type: 'text', text: QUESTION }] } };
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tasks/sendSubscribe', params });
  const response = await fetch(url, { method: 'POST', headers: { 'content-type': 'application/json' }, body });
  const texts: string[] = [];
  for await (const { data } of decodeSse(response.body as unknown as AsyncIterable<Uint8Array>)) {
    const decoded = DIALECTS.legacy.decodeEvent(JSON.parse(data).result);
    if ('event' in decoded) texts.push(...shape([decoded.event]));
  }
  assert.deepEqual(
    texts.filter(text => ANSWER.includes(text)),
    ANSWER,
  );
  const get = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tasks/get', params: { id: 'own-task' } });
  const got = await fetch(url, { method: 'POST', headers: { 'content-type': 'application/json' }, body: get });
  assert.equal(JSON.parse(await got.text()).result.status.state, 'completed');
});

test('the legacy form finds a recorded task under the id that its client chose, and other dialects under its own id', async t => {
  const own = `own-${'h'.repeat(22)}-mine`;
  const twice = [`own-${'i'.repeat(22)}-both`, `own-${'j'.repeat(22)}-both`];
  const recordings = [own, ...twice, 'plain'].map(taskId => recorded(`question of ${taskId}`, taskId, legacyOrigin(1)));
  const { url, client } = await serve(t, { recordings: (await Promise.all(recordings)).flat() });
  const get = async (id: string) => {
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tasks/get', params: { id } });
    const response = await fetch(url, { method: 'POST', headers: { 'content-type': 'application/json' }, body });
    const { result, error } = JSON.parse(await response.text());
    return result === undefined ? error.code : [result.id, result.status.state];
  };
  assert.deepEqual(await get('mine'), ['mine', 'completed']);
  assert.deepEqual(await get('plain'), ['plain', 'completed']);
  assert.deepEqual(await get(twice[1]!), ['both', 'completed']);
  assert.deepEqual(await get('both'), ['both', 'completed']);
  assert.equal(await get('another'), -32001);
  assert.equal((await client().get(own)).id, own);
});

test('recorded tasks are listed, read and subscribed to under their own ids', async t => {
  const { client } = await serve(t, { recordings: [...(await recorded()), ...(await recorded('another', 'task-2'))] });
  const { tasks } = await client().list();
  assert.deepEqual(tasks.map(({ id }) => id).sort(), ['task-1', 'task-2']);
  const items = await collect(client().subscribe('task-1', { cursor: BEGINNING }));
  assert.deepEqual(shape(eventsOf(items)), ['task submitted', 'working', ...ANSWER, 'completed']);
  const rest = await collect(client().subscribe('task-1', { cursor: '4.1' }));
  assert.deepEqual(eventsOf(rest), eventsOf(items).slice(4));
});

test('a stream that is cut after each third frame resumes without loss or repetition', async t => {
  const { client } = await serve(t, { faults: { cut: 3 } });
  const items = await collect(client().stream(message(QUESTION)));
  assert.deepEqual(
    generations(items),
    items.map((_, index) => index + 1),
  );
  assert.equal(foldEvents(eventsOf(items)).violations.length, 0);
  assert.deepEqual(shape(eventsOf(items)), ['task submitted', 'working', ...ANSWER, 'completed']);
});

test('a request can ask for a fault by header or metadata', async t => {
  const { url, client } = await serve(t);
  const headers = { 'content-type': 'application/json', 'a2a-version': '1.0' };
  const params = DIALECTS['1.0'].encodeSend({
    message: { messageId: 'm', role: 'ROLE_USER', ...message(QUESTION) },
    blocking: true,
  });
  const body = JSON.stringify(params);
  const refused = await fetch(`${url}message:send`, { method: 'POST', headers: { ...headers, 'hopline-fault': 'refuse' }, body });
  assert.deepEqual([refused.status, refused.headers.get('retry-after')], [503, '1']);
  const invalid = await fetch(`${url}message:send`, { method: 'POST', headers: { ...headers, 'hopline-fault': 'cut' }, body });
  assert.equal(invalid.status, 400);
  const startMs = performance.now();
  const slow = JSON.stringify({ ...params, metadata: { 'hopline-fault': 'delay=200' } });
  assert.equal((await fetch(`${url}message:send`, { method: 'POST', headers, body: slow })).status, 200);
  assert.ok(performance.now() - startMs >= 199);
  const items = await collect(client({ headers: { 'hopline-fault': 'cut=1' } }).stream(message(QUESTION)));
  assert.equal(shape(eventsOf(items)).at(-1), 'completed');
});

test('a gRPC call can ask for a fault by metadata', async t => {
  const { grpcPort } = await serve(t);
  const grpc = new GrpcClient(`127.0.0.1:${grpcPort}`);
  t.after(() => grpc.close());
  const request = { message: { messageId: 'm', role: 'ROLE_USER', ...message(QUESTION) } };
  const refused = grpc.call('SendMessage', request, { metadata: { 'hopline-fault': 'refuse' } });
  await assert.rejects(refused, (error: CallFailed) => error.code === 14);
  const { call } = grpc.stream('SendStreamingMessage', request, { metadata: { 'hopline-fault': 'cut=2' } });
  let frames = 0;
  await assert.rejects(
    async () => {
      for await (const _frame of call) frames += 1;
    },
    { code: 1 },
  );
  assert.equal(frames, 2);
});

test('the first requests are refused, and a client that retries gets its answer', async t => {
  const { client } = await serve(t, { faults: { refuse: 2 } });
  const notices: string[] = [];
  const items = await collect(client().stream(message(QUESTION), { onNotice: ({ kind }) => notices.push(kind) }));
  assert.deepEqual([notices, shape(eventsOf(items)).at(-1)], [['retry', 'retry', 'opened'], 'completed']);
});

test('a question that is not recorded is rejected, and the error lists the recorded ones', async t => {
  const { client } = await serve(t);
  const items = await collect(client().stream(message('what is the weather')));
  const last = eventsOf(items).at(-1)!;
  assert.ok('statusUpdate' in last);
  assert.equal(last.statusUpdate.status.state, 'TASK_STATE_REJECTED');
  assert.match(
    textOf(last.statusUpdate.status.message!.parts),
    /^No recorded task begins with "what is the weather"\. Recorded: "explain hopline"\./,
  );
});

test('white space is ignored, the agent must match if the client names one, and with `any` every message matches', async t => {
  const recordings = [...(await recorded(QUESTION, 'task-1', { agent: 'guide' }))];
  const strict = await serve(t, { recordings });
  const stateOf = async (client: ReturnType<typeof createClient>, text: string, metadata?: object) => {
    const items = await collect(client.stream(message(text), { ...(metadata && { metadata: { ...metadata } }) }));
    return shape(eventsOf(items)).at(-1);
  };
  assert.equal(await stateOf(strict.client(), '  explain\n hopline '), 'completed');
  assert.equal(await stateOf(strict.client(), QUESTION, { agent: 'guide' }), 'completed');
  assert.equal(await stateOf(strict.client(), QUESTION, { agent: 'other' }), 'rejected');
  const lax = await serve(t, { recordings, match: 'any' });
  assert.equal(await stateOf(lax.client(), 'what is the weather', { agent: 'other' }), 'completed');
});

test('equal questions get their recordings in turn', async t => {
  const other = await record('task-2', async task => {
    await task.message(QUESTION).store();
    await task.input(supervisor(), { kind: 'status', state: 'TASK_STATE_FAILED' }).store();
  });
  const { client } = await serve(t, { recordings: [...(await recorded()), ...other] });
  const ends: (string | undefined)[] = [];
  for (let n = 0; n < 4; n += 1) ends.push(shape(eventsOf(await collect(client().stream(message(QUESTION))))).at(-1));
  assert.deepEqual(ends, ['completed', 'failed', 'completed', 'failed']);
});

/** `isTogether`: all facts are in one record, as after a copy of them. */
const conversation = (isTogether: boolean) =>
  record('task-1', async task => {
    const stored = async () => isTogether || (await task.store());
    task.message('delete it', 'm1');
    await stored();
    const question = { messageId: 'q', role: 'ROLE_AGENT' as const, parts: [{ text: 'Which one?' }] };
    task.input(supervisor(), { kind: 'status', state: 'TASK_STATE_INPUT_REQUIRED', message: question });
    await stored();
    task.message('the second', 'm2');
    await stored();
    const from = supervisor(1, 2);
    task.input(from, { kind: 'status', state: 'TASK_STATE_WORKING' }).open(from, 'b', { name: 'streaming_result' });
    for (const [index, text] of ANSWER.entries()) {
      await stored();
      task.text(from, 'b', text, index === ANSWER.length - 1);
    }
    await task.input(from, { kind: 'status', state: 'TASK_STATE_COMPLETED' }).store();
  });

for (const isTogether of [false, true])
  test(`a recorded conversation waits for the answer of the client${isTogether ? ', even if its facts are in one record' : ''}`, async t => {
    const recordings = await conversation(isTogether);
    const { client } = await serve(t, { recordings });
    const asked = eventsOf(await collect(client().stream(message('delete it'))));
    assert.equal(shape(asked).at(-1), 'input-required');
    const [first] = asked;
    assert.ok(first !== undefined && 'task' in first);
    const taskId = first.task.id;
    const answered = eventsOf(await collect(client().stream(message('the second', { taskId }))));
    assert.deepEqual(shape(answered).slice(-3), [...ANSWER.slice(-2), 'completed']);
    const { history = [] } = await client().get(taskId);
    assert.deepEqual(
      history.map(({ parts }) => textOf(parts)),
      ['delete it', 'Which one?', 'the second'],
    );
    const again = eventsOf(await collect(client().stream(message('delete it'))));
    const [second] = again;
    assert.ok(second !== undefined && 'task' in second);
    const refused = eventsOf(await collect(client().stream(message('the third', { taskId: second.task.id }))));
    assert.equal(shape(refused).at(-1), 'rejected');
  });

test('a client may answer while the recording still stores what clients do not see', async t => {
  const recordings = await record('task-1', async (task, clock) => {
    await task.message('delete it', 'm1').store();
    const question = { messageId: 'q', role: 'ROLE_AGENT' as const, parts: [{ text: 'Which one?' }] };
    await task.input(supervisor(), { kind: 'status', state: 'TASK_STATE_INPUT_REQUIRED', message: question }).store();
    clock.at += 3_600_000;
    await task.input(supervisor(), { kind: 'step', step: '1', payload: 1 }).store();
    await task.message('the second', 'm2').store();
    await task.input(supervisor(1, 2), { kind: 'status', state: 'TASK_STATE_COMPLETED' }).store();
  });
  const { client } = await serve(t, { recordings, pace: 1 });
  const [first] = eventsOf(await collect(client().stream(message('delete it'))));
  assert.ok(first !== undefined && 'task' in first);
  const answered = eventsOf(await collect(client().stream(message('the second', { taskId: first.task.id }))));
  assert.equal(shape(answered).at(-1), 'completed');
});

test('a task that was open when it was exported fails at the end of its recording', async t => {
  const recordings = await record('task-1', async task => {
    await task.message(QUESTION).store();
    await answer(task);
  });
  const { client } = await serve(t, { recordings });
  const last = eventsOf(await collect(client().stream(message(QUESTION)))).at(-1)!;
  assert.ok('statusUpdate' in last);
  assert.equal(last.statusUpdate.status.state, 'TASK_STATE_FAILED');
  assert.match(textOf(last.statusUpdate.status.message!.parts), /^The recording ends here/);
});

test('a recording in progress is canceled', async t => {
  const { client } = await serve(t, { pace: 0.01 });
  const stream = client().stream(message(QUESTION));
  const { value } = await stream.next();
  assert.ok(value && 'event' in value && 'task' in value.event);
  const canceled = await client().cancel(value.event.task.id);
  assert.equal(canceled.status.state, 'TASK_STATE_CANCELED');
  assert.equal(shape(eventsOf(await collect(stream))).at(-1), 'canceled');
});

for (const isCanceled of [false, true])
  test(`an artifact that is open when the answer ${isCanceled ? 'is canceled' : 'ends early'} is closed under its own id`, async t => {
    const recordings = await record('task-1', async (task, clock) => {
      await task.message(QUESTION).store();
      await task.input(supervisor(), { kind: 'status', state: 'TASK_STATE_WORKING' }).store();
      await task.open(supervisor(), 'a', { name: 'streaming_result' }).text(supervisor(), 'a', 'How').store();
      if (isCanceled) clock.at += 3_600_000;
      await task.text(supervisor(), 'a', ' it').store();
    });
    const { client } = await serve(t, { recordings, pace: isCanceled ? 1 : Number.POSITIVE_INFINITY });
    const items: StreamItem[] = [];
    for await (const item of client().stream(message(QUESTION))) {
      items.push(item);
      const [first] = eventsOf(items);
      const hasText = items.some(one => 'event' in one && 'artifactUpdate' in one.event);
      if (isCanceled && hasText && first !== undefined && 'task' in first)
        await client()
          .cancel(first.task.id)
          .catch(() => {});
    }
    const updates = eventsOf(items).flatMap(event => ('artifactUpdate' in event ? [event.artifactUpdate] : []));
    assert.equal(new Set(updates.map(({ artifact }) => artifact.artifactId)).size, 1);
    assert.equal(updates.at(-1)?.lastChunk, true);
  });

test('the answers to two equal questions have different artifact ids', async t => {
  const { client } = await serve(t);
  const idOf = async () => {
    const events = eventsOf(await collect(client().stream(message(QUESTION))));
    return events.flatMap(event => ('artifactUpdate' in event ? [event.artifactUpdate.artifact.artifactId] : []))[0];
  };
  assert.notEqual(await idOf(), await idOf());
});

test('the recorded pace is kept even if the facts are in one record', async t => {
  const together = await record('task-2', async task => {
    task.message('at once', 'm-recorded').input(supervisor(), { kind: 'status', state: 'TASK_STATE_WORKING' });
    task.open(supervisor(), 'a', { name: 'streaming_result' });
    for (const [index, text] of ANSWER.entries()) task.text(supervisor(), 'a', text, index === ANSWER.length - 1);
    await task.input(supervisor(), { kind: 'status', state: 'TASK_STATE_COMPLETED' }).store();
  });
  const { client } = await serve(t, { recordings: [...(await recorded()), ...together], pace: 0.5 });
  for (const question of [QUESTION, 'at once']) {
    const startMs = performance.now();
    await collect(client().stream(message(question)));
    // Nine events follow the first, GAP_MS apart, at half the speed.
    assert.ok(performance.now() - startMs >= 9 * GAP_MS * 2 - 5, question);
  }
});

test('the card names every interface, and the questions', async t => {
  const { url } = await serve(t);
  const response = await fetch(`${url}.well-known/agent-card.json`);
  const card = (await response.json()) as {
    supportedInterfaces: { protocolBinding: string }[];
    skills: { examples: string[] }[];
  };
  const bindings = new Set(card.supportedInterfaces.map(({ protocolBinding }) => protocolBinding));
  assert.deepEqual([...bindings].sort(), ['GRPC', 'HTTP+JSON', 'JSONRPC']);
  assert.deepEqual(card.skills[0]?.examples, [QUESTION]);
});

test('faults are parsed, and any other text is refused', () => {
  assert.deepEqual(parseFaults('cut=3, delay=200,refuse'), { cut: 3, delay: 200, refuse: 1 });
  for (const text of ['', 'cut', 'cut=0', 'cut=-1', 'delay=60001', 'drop=1', 'cut=3;delay=1'])
    assert.throws(() => parseFaults(text), /^TypeError: a fault must be/, text);
});
