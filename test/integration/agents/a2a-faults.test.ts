import assert from 'node:assert/strict';
import { createServer, request as httpRequest } from 'node:http';
import { type TestContext, test } from 'node:test';
import { type Agent, type AgentEvent, TASK_ENDED } from '@hopline/agent';
import { type A2AOptions, createA2AAgent } from '@hopline/agent-a2a';
import { listen } from '../../kit/listen.ts';
import { until, untilTick } from '../../kit/until.ts';
import {
  answer,
  type RemoteAgent,
  type RemoteAgentOptions,
  type Step,
  startRemoteAgent,
} from '../../support/agents/remote-agent.ts';
import { eventsOf, lastOf, textOf, turnOf } from '../../support/agents/turn.ts';

async function pair(t: TestContext, remoteOptions: Partial<RemoteAgentOptions>, options: Partial<A2AOptions> = {}) {
  const remote: RemoteAgent = await startRemoteAgent({ dialect: '0.3', script: [], ...remoteOptions });
  const agent: Agent = createA2AAgent({ url: remote.url, ...options });
  t.after(async () => {
    await agent.close();
    await remote.close();
  });
  return { remote, agent };
}

const failure = async (agent: Agent) => lastOf(await eventsOf(agent, 'x'), 'failed');
const sse = (value: unknown) => `data: ${JSON.stringify(value)}\n\n`;

test('an unreachable agent is a retryable failure', async t => {
  const { remote, agent } = await pair(t, {});
  await remote.close();
  assert.deepEqual(await eventsOf(agent, 'x'), [{ type: 'failed', reason: 'the agent cannot be reached', retryable: true }]);
  await assert.rejects(agent.skills(), /cannot be reached/);
});

test('an agent that is reachable again is called again', async t => {
  const first = await startRemoteAgent({ dialect: '0.3', script: answer(['one']) });
  const agent = createA2AAgent({ url: first.url });
  t.after(() => agent.close());
  assert.equal(textOf(await eventsOf(agent, 'x')), 'one');
  await first.close();
  assert.equal((await failure(agent)).retryable, true);
  const second = await startRemoteAgent({ dialect: '0.3', script: answer(['two']), port: Number(new URL(first.url).port) });
  t.after(() => second.close());
  assert.equal(textOf(await eventsOf(agent, 'x')), 'two');
});

for (const [before, after] of [
  ['0.3', '1.0'],
  ['1.0', '0.3'],
] as const) {
  test(`an agent that changes from ${before} to ${after} is called with its current dialect in the next turn`, async t => {
    const first = await startRemoteAgent({ dialect: before, script: answer(['one']) });
    const agent = createA2AAgent({ url: first.url });
    t.after(() => agent.close());
    assert.equal(textOf(await eventsOf(agent, 'x')), 'one');
    await first.close();
    const port = Number(new URL(first.url).port);
    const second = await startRemoteAgent({ dialect: after, script: answer(['two']), port });
    t.after(() => second.close());
    const events = await eventsOf(agent, 'y');
    assert.equal(textOf(events), 'two');
    lastOf(events, 'done');
    assert.deepEqual(
      second.requests.map(({ text }) => text),
      ['y'],
    );
  });
}

test('the message is sent once to an agent that has changed its dialect and breaks its stream', async t => {
  const first = await startRemoteAgent({ dialect: '0.3', script: answer(['one']) });
  const agent = createA2AAgent({ url: first.url });
  t.after(() => agent.close());
  await eventsOf(agent, 'x');
  await first.close();
  const port = Number(new URL(first.url).port);
  const script: Step[] = [{ token: 'tw' }, { cut: true }, { token: 'o' }, { complete: true }];
  const second = await startRemoteAgent({ dialect: '1.0', script, port });
  t.after(() => second.close());
  await eventsOf(agent, 'y');
  assert.equal(second.requests.filter(({ method }) => method === 'send' || method === 'stream').length, 1);
});

test('text that arrives in one packet with an error comes before the failure', async t => {
  const frame = (body: object) => `data: ${JSON.stringify({ jsonrpc: '2.0', id: 1, ...body })}\n\n`;
  const message = { kind: 'message', messageId: 'm1', role: 'agent', parts: [{ kind: 'text', text: 'before' }] };
  const working = { kind: 'status-update', taskId: 't', contextId: 'c', status: { state: 'working', message } };
  const error = { code: -32603, message: 'broken' };
  const { agent } = await pair(t, { script: [{ raw: frame({ result: working }) + frame({ error }) }, { hang: true }] });
  const events = await eventsOf(agent, 'x');
  assert.equal(textOf(events), 'before');
  lastOf(events, 'failed');
});

test('events that arrive in one packet after the end are ignored', async t => {
  const frame = (result: object) => `data: ${JSON.stringify({ jsonrpc: '2.0', id: 1, result })}\n\n`;
  const update = (state: string, text: string) => ({
    kind: 'status-update',
    taskId: 't',
    contextId: 'c',
    status: { state, message: { kind: 'message', messageId: text, role: 'agent', parts: [{ kind: 'text', text }] } },
  });
  const raw = frame(update('working', 'a')) + frame(update('completed', 'end')) + frame(update('working', 'late'));
  const { agent } = await pair(t, { script: [{ raw }, { hang: true }] });
  const events = await eventsOf(agent, 'x');
  assert.equal(textOf(events), 'a');
  lastOf(events, 'done');
});

test('an agent that closes a kept connection while it is used again receives each turn exactly once', async t => {
  const remote = await startRemoteAgent({ dialect: '0.3', script: answer(['there']), card: false });
  // A proxy that serves one request per connection and closes it when the next request is sent.
  const used = new WeakSet<object>();
  const server = createServer((request, response) => {
    if (used.has(request.socket)) return void request.socket.destroy();
    used.add(request.socket);
    if (request.method === 'GET') return void response.writeHead(404).end();
    const { port } = new URL(remote.url);
    request.pipe(
      httpRequest({ port, path: '/', method: 'POST' }, answered => {
        response.writeHead(answered.statusCode ?? 500, answered.headers);
        answered.pipe(response);
      }),
    );
  });
  const origin = await listen(server);
  const agent = createA2AAgent({ url: `${origin}/` });
  t.after(async () => {
    await agent.close();
    server.close();
    await remote.close();
  });
  for (const turn of ['a', 'b', 'c']) {
    const events = await eventsOf(agent, turn);
    assert.equal(textOf(events), 'there');
    lastOf(events, 'done');
  }
  assert.deepEqual(
    remote.requests.map(({ text }) => text),
    ['a', 'b', 'c'],
  );
});

test("HTTP and JSON-RPC errors: the reason has the code, never the agent's text", async t => {
  const unavailable = await pair(t, { httpStatus: 503 });
  assert.deepEqual(await failure(unavailable.agent), {
    type: 'failed',
    reason: 'the agent answered with HTTP 503',
    retryable: true,
  });
  const forbidden = await pair(t, { httpStatus: 403 });
  assert.equal((await failure(forbidden.agent)).retryable, false);
  for (const streaming of [true, false]) {
    const refused = await pair(t, { script: [{ error: -32602 }], card: { streaming } });
    assert.deepEqual(await failure(refused.agent), {
      type: 'failed',
      reason: 'the agent answered with error -32602',
      retryable: false,
    });
  }
  const internal = await pair(t, { script: [{ token: 'a' }, { error: -32603 }] });
  assert.equal((await failure(internal.agent)).retryable, true);
});

test('unknown kinds and frames that are not JSON are skipped and counted [S0-42]', async t => {
  const skipped: string[] = [];
  const script: Step[] = [
    { token: 'a' },
    { result: { kind: 'hologram', taskId: 'x' } },
    { result: null },
    { result: { kind: 'status-update', status: { state: 'dreaming' } } },
    { raw: 'data: {not json\n\n: a comment\n\nevent: x\n\n' },
    { token: 'b' },
    { complete: true },
  ];
  const { agent } = await pair(t, { script }, { onSkipped: what => skipped.push(what) });
  assert.equal(textOf(await eventsOf(agent, 'x')), 'ab');
  assert.deepEqual(skipped.toSorted(), ['malformed frame', 'unknown event', 'unknown event', 'unknown event']);
});

test('an agent that sends only garbage fails the turn', async t => {
  const { agent } = await pair(t, { script: [{ raw: 'data: garbage\n\n'.repeat(100) }, { hang: true }] });
  assert.deepEqual(await failure(agent), {
    type: 'failed',
    reason: 'the agent sent something other than JSON',
    retryable: false,
  });
});

test('an event of 10 MB is refused; one at the limit is not', async t => {
  const huge = await pair(t, { script: answer(['x'.repeat(10 * 1024 * 1024)]) });
  assert.deepEqual(await failure(huge.agent), { type: 'failed', reason: 'an event of the agent is too large', retryable: false });
  const unended = await pair(t, { script: [{ raw: `data: ${'x'.repeat(10 * 1024 * 1024)}` }, { hang: true }] });
  assert.equal((await failure(unended.agent)).reason, 'an event of the agent is too large');
  const large = await pair(t, { script: answer(['y'.repeat(1_000_000)]) });
  assert.equal(textOf(await eventsOf(large.agent, 'x')).length, 1_000_000);
  const whole = await pair(t, { script: answer(['z'.repeat(5 * 1024 * 1024)]), card: { streaming: false } });
  assert.equal((await failure(whole.agent)).reason, 'an event of the agent is too large');
});

test('limits: silence before the first event, silence after it, total time', async t => {
  const script: Step[] = [{ token: 'a' }, { hang: true }];
  const mute = await pair(t, { script: [{ hang: true }] }, { firstEventMsMax: 80 });
  assert.deepEqual(await failure(mute.agent), { type: 'failed', reason: 'the agent sent nothing for 0.08 s', retryable: true });
  const stuck = await pair(t, { script }, { silenceMsMax: 500 });
  const events = await eventsOf(stuck.agent, 'x');
  assert.equal(textOf(events), 'a');
  assert.equal(lastOf(events, 'failed').reason, 'the agent sent nothing for 0.5 s');
  assert.equal(stuck.remote.requests.at(-1)?.method, 'cancel', 'the abandoned task is canceled');
  async function* forever(): AsyncGenerator<Step> {
    for (;;) yield* [{ token: 'a' }, { pause: 5 }];
  }
  const endless = await pair(t, { script: () => forever() }, { totalMsMax: 150 });
  assert.deepEqual(await failure(endless.agent), { type: 'failed', reason: 'the turn took too long', retryable: false });
  const waiting = await pair(t, { script: [{ hang: true }], card: { streaming: false } }, { totalMsMax: 150 });
  assert.equal((await failure(waiting.agent)).reason, 'the turn took too long');
});

for (const dialect of ['0.3', '1.0'] as const) {
  test(`comments and frames of unknown kinds do not count as signs of life of a ${dialect} agent`, {
    timeout: 120_000,
  }, async t => {
    const pinging = { dialect, pingMs: 20 };
    const mute = await pair(t, { ...pinging, script: [{ hang: true }] }, { firstEventMsMax: 200 });
    assert.deepEqual(await failure(mute.agent), { type: 'failed', reason: 'the agent sent nothing for 0.2 s', retryable: true });
    const five: Step[] = ['a', 'b', 'c', 'd', 'e'].map(token => ({ token }));
    const stuck = await pair(t, { ...pinging, script: [...five, { hang: true }] }, { silenceMsMax: 500 });
    const events = await eventsOf(stuck.agent, 'x');
    assert.equal(textOf(events), 'abcde');
    assert.equal(lastOf(events, 'failed').reason, 'the agent sent nothing for 0.5 s');
    async function* keepAlives(): AsyncGenerator<Step> {
      yield { token: 'a' };
      for (;;) yield* [{ result: { kind: 'heartbeat' } }, { pause: 20 }];
    }
    const beating = await pair(t, { dialect, script: () => keepAlives() }, { silenceMsMax: 200 });
    assert.equal((await failure(beating.agent)).reason, 'the agent sent nothing for 0.2 s');
  });

  test(`a subscription to a ${dialect} task that stays submitted fails within the silence limit despite pings`, {
    timeout: 120_000,
  }, async t => {
    const script: Step[] = [{ status: 'submitted' }, { cut: true }, { hang: true }];
    const limits = { firstEventMsMax: 1_000, silenceMsMax: 1_000, totalMsMax: 20_000 };
    const { remote, agent } = await pair(t, { dialect, script, pingMs: 20 }, limits);
    assert.deepEqual(await failure(agent), { type: 'failed', reason: 'the agent sent nothing for 1 s', retryable: true });
    assert.ok(remote.requests.some(({ method }) => method === 'subscribe'));
  });

  test(`the end of a ${dialect} task is found by a poll while its subscription brings no event`, {
    timeout: 120_000,
  }, async t => {
    const isSubscribed = () => remote.requests.some(({ method }) => method === 'subscribe');
    const script = async function* (): AsyncGenerator<Step> {
      yield* [{ token: 'one' }, { cut: true }] as Step[];
      while (!isSubscribed()) yield { pause: 10 };
      yield* [{ token: ' two' }, { fail: true }] as Step[];
    };
    const unseen = { dialect, script, pingMs: 20, muteSubscriptions: true };
    const { remote, agent } = await pair(t, unseen, { lostEndMsMax: 50, totalMsMax: 60_000 });
    const events = await eventsOf(agent, 'x');
    assert.equal(textOf(events), 'one two');
    assert.equal(lastOf(events, 'failed').reason, 'the agent failed');
  });
}

test('a slow reader does not trigger the silence limit', async t => {
  const silenceMsMax = 1_000;
  const { agent } = await pair(t, { script: answer(['a', 'b', 'c']) }, { silenceMsMax });
  let text = '';
  for await (const event of agent.run(turnOf('x'))) {
    assert.notEqual(event.type, 'failed');
    if (event.type !== 'text') continue;
    if (text === '') await new Promise(resolve => setTimeout(resolve, 2 * silenceMsMax));
    text += event.text;
  }
  assert.equal(text, 'abc');
});

test('ids that an agent changes in mid-stream are ignored [S1-14]', async t => {
  const update = (text: string, id: string) => ({
    kind: 'status-update',
    taskId: id,
    contextId: id,
    final: false,
    status: { state: 'working', message: { kind: 'message', role: 'agent', messageId: id, parts: [{ kind: 'text', text }] } },
  });
  const script: Step[] = [
    { token: 'a' },
    { result: update('b', 'other-1') },
    { result: update('c', 'other-2') },
    { inputRequired: '?' },
  ];
  const { remote, agent } = await pair(t, { script });
  const events = await eventsOf(agent, 'x');
  assert.equal(textOf(events), 'abc');
  assert.equal((lastOf(events, 'interrupted').resume as { taskId: string }).taskId, remote.requests[0]?.taskId);
});

for (const dialect of ['0.3', '1.0'] as const) {
  test(`an interrupted ${dialect} stream is continued from the agent's task`, { timeout: 120_000 }, async t => {
    const isSubscribed = () => remote.requests.some(({ method }) => method === 'subscribe');
    const script = async function* (): AsyncGenerator<Step> {
      yield* [{ token: 'one' }, { cut: true }, { token: ' two' }] as Step[];
      while (!isSubscribed()) yield { pause: 10 };
      yield* answer([' three']);
    };
    const { remote, agent } = await pair(t, { dialect, script });
    const events = await eventsOf(agent, 'x');
    assert.equal(textOf(events), 'one two three');
    assert.deepEqual(lastOf(events, 'done'), { type: 'done' });
  });

  test(`a ${dialect} stream interrupted after the end of the task is completed from tasks/get`, async t => {
    const script: Step[] = [
      { token: 'one' },
      { notice: 'start', tool: 'x' },
      { notice: 'end', tool: 'x' },
      { cut: true },
      { token: ' two' },
      { complete: true },
    ];
    const { agent } = await pair(t, { dialect, script });
    const events = await eventsOf(agent, 'x');
    assert.equal(textOf(events), 'one two');
    lastOf(events, 'done');
  });
}

test('a task that does not change after its stream ended fails within the silence limit even if polls are answered', async t => {
  const script: Step[] = [{ status: 'submitted' }, { cut: true }, { hang: true }];
  const { remote, agent } = await pair(t, { script }, { firstEventMsMax: 1_000, silenceMsMax: 1_000, totalMsMax: 20_000 });
  assert.deepEqual(await failure(agent), { type: 'failed', reason: 'the agent sent nothing for 1 s', retryable: true });
  assert.ok(remote.requests.some(({ method }) => method === 'get'));
});

test('even without streaming, a submitted task fails after the silence limit, and a working task may be silent for longer', async t => {
  const limits = { firstEventMsMax: 1_000, silenceMsMax: 1_000, totalMsMax: 20_000 };
  const options = { card: { streaming: false }, neverWaits: true };
  const idle = await pair(t, { ...options, script: [{ status: 'submitted' }, { hang: true }] }, limits);
  assert.deepEqual(await failure(idle.agent), { type: 'failed', reason: 'the agent sent nothing for 1 s', retryable: true });
  assert.ok(idle.remote.requests.filter(({ method }) => method === 'get').length > 1);
  const quiet = [{ status: 'working' as const }, { pause: 3_000 }, { complete: true as const, text: 'late' }];
  const busy = await pair(t, { ...options, script: quiet }, limits);
  assert.equal(lastOf(await eventsOf(busy.agent, 'x'), 'done').message?.parts[0]?.text, 'late');
});

test('artifacts are complete after an interrupted stream', async t => {
  const artifact = { artifactId: 'a', name: 'r' };
  const script: Step[] = [
    { artifact: { ...artifact, text: 'one' } },
    { cut: true },
    { artifact: { ...artifact, text: ' two' }, append: true, lastChunk: true },
    { complete: true },
  ];
  const events = await eventsOf((await pair(t, { script })).agent, 'x');
  const last = events.findLast(event => event.type === 'artifact');
  assert.deepEqual(last?.artifact.parts.map(part => part.text).join(''), 'one two');
  assert.equal(last?.append, false);
  lastOf(events, 'done');
});

test('a stream without a terminal state, from an agent without tasks/get, is a retryable failure, never complete', async t => {
  const reason = 'the stream ended without a terminal state';
  const cut = await pair(t, {
    script: [{ token: 'one' }, { cut: true }, { token: ' two' }, { complete: true }],
    recoverable: false,
  });
  assert.deepEqual(await failure(cut.agent), { type: 'failed', reason, retryable: true });
  const stateless = await pair(t, {
    script: [{ result: { kind: 'artifact-update', artifact: { artifactId: 'a', parts: [] } } }],
  });
  assert.equal((await failure(stateless.agent)).reason, reason);
  const gone = await pair(t, { script: [{ token: 'one' }, { cut: true }, { hang: true }] });
  const events = eventsOf(gone.agent, 'x');
  await until(() => gone.remote.requests.some(({ method }) => method === 'get'));
  await gone.remote.close();
  assert.deepEqual(lastOf(await events, 'failed'), { type: 'failed', reason, retryable: true });
});

test('a task whose history does not reach back to the first text is a failure', async t => {
  const status = { state: 'completed' };
  const server = createServer((request, response) => {
    if (request.method === 'GET') return void response.writeHead(404).end();
    let body = '';
    request.on('data', chunk => {
      body += chunk;
    });
    request.on('end', () => {
      const { method } = JSON.parse(body) as { method: string };
      if (method === 'tasks/get') {
        const history = [{ kind: 'message', role: 'agent', messageId: 'm9', parts: [{ kind: 'text', text: 'tail' }] }];
        return void response
          .writeHead(200, { 'content-type': 'application/json' })
          .end(JSON.stringify({ result: { kind: 'task', id: 't', contextId: 'c', status, history } }));
      }
      const message = { kind: 'message', role: 'agent', messageId: 'm1', parts: [{ kind: 'text', text: 'head' }] };
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.write(sse({ result: { kind: 'status-update', taskId: 't', status: { state: 'working', message } } }), () =>
        response.destroy(),
      );
    });
  });
  const origin = await listen(server);
  const agent = createA2AAgent({ url: `${origin}/` });
  t.after(async () => {
    await agent.close();
    server.close();
  });
  assert.deepEqual(await failure(agent), {
    type: 'failed',
    reason: 'the stream ended without a terminal state',
    retryable: true,
  });
});

test('a non-blocking send is polled until the task ends', async t => {
  // 0.2 servers that ignore `blocking` respond with the current task.
  let polls = 0;
  const server = createServer((request, response) => {
    const json = (value: unknown) => response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(value));
    if (request.method === 'GET') {
      const there = request.url === '/.well-known/agent.json';
      return void (there
        ? json({ name: 'n', url: '/', capabilities: { streaming: false }, skills: [] })
        : response.writeHead(404).end());
    }
    request.resume().on('end', () => {
      polls += 1;
      const state = polls < 3 ? 'working' : 'completed';
      const artifacts = polls < 3 ? [] : [{ artifactId: 'a', parts: [{ kind: 'text', text: 'done at last' }] }];
      json({ jsonrpc: '2.0', id: 1, result: { kind: 'task', id: 't', contextId: 'c', status: { state }, artifacts } });
    });
  });
  const origin = await listen(server);
  const agent = createA2AAgent({ url: `${origin}/` });
  t.after(async () => {
    await agent.close();
    server.close();
  });
  const events = await eventsOf(agent, 'x');
  assert.deepEqual(
    events.map(event => event.type),
    ['working', 'artifact', 'done'],
  );
  assert.equal(polls, 3);
});

/** An agent without streaming. Its task has ended when it is read. It refuses the first requests of each method. */
async function busyAgent(t: TestContext, refused: { status: number; retryAfter: string; times: number; body?: unknown }) {
  const times = new Map<string, number[]>();
  const server = createServer((request, response) => {
    const json = (value: unknown) => response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(value));
    if (request.method === 'GET') return void json({ name: 'n', url: '/', capabilities: { streaming: false }, skills: [] });
    let body = '';
    request
      .on('data', chunk => {
        body += chunk;
      })
      .on('end', () => {
        const { method } = JSON.parse(body) as { method: string };
        const received = times.get(method) ?? [];
        times.set(method, [...received, performance.now()]);
        if (received.length < refused.times) {
          const headers = { 'retry-after': refused.retryAfter, 'content-type': 'application/json' };
          return void response.writeHead(refused.status, headers).end(JSON.stringify(refused.body ?? {}));
        }
        const state = method === 'tasks/get' ? 'completed' : 'working';
        const artifacts = method === 'tasks/get' ? [{ artifactId: 'a', parts: [{ kind: 'text', text: 'done at last' }] }] : [];
        json({ jsonrpc: '2.0', id: 1, result: { kind: 'task', id: 't', contextId: 'c', status: { state }, artifacts } });
      });
  });
  const origin = await listen(server);
  const agent = createA2AAgent({ url: `${origin}/` });
  t.after(async () => {
    await agent.close();
    server.close();
  });
  return { agent, times };
}

for (const [name, refused] of [
  ['HTTP 429', { status: 429, body: {} }],
  [
    'a retryable error of JSON-RPC',
    { status: 200, body: { error: { code: -32000, message: 'busy', data: { retryable: true } } } },
  ],
] as const) {
  test(`a message and a poll that a busy agent refuses with ${name} are sent again after its Retry-After`, async t => {
    const { agent, times } = await busyAgent(t, { ...refused, retryAfter: '0.3', times: 2 });
    lastOf(await eventsOf(agent, 'x'), 'done');
    for (const method of ['message/send', 'tasks/get']) {
      const [first = 0, second = 0, third = 0, ...more] = times.get(method) ?? [];
      assert.ok(second - first >= 300 && third - second >= 300, `${method}: ${second - first}, ${third - second} ms`);
      assert.equal(more.length, 0);
    }
  });
}

test('an agent that stays busy, or asks for a long wait, fails the turn as retryable', async t => {
  const stays = await busyAgent(t, { status: 503, retryAfter: '0', times: 99 });
  const { reason, retryable } = await failure(stays.agent);
  assert.deepEqual([reason, retryable], ['the agent answered with HTTP 503', true]);
  assert.equal(stays.times.get('message/send')?.length, 3);
  const long = await busyAgent(t, { status: 429, retryAfter: '31', times: 99 });
  assert.equal((await failure(long.agent)).reason, 'the agent answered with HTTP 429');
  assert.equal(long.times.get('message/send')?.length, 1);
});

test('frames in each form that SSE allows are read [S2-26]', async t => {
  const task = { kind: 'task', id: 't', contextId: 'c', status: { state: 'submitted' } };
  const status = (text: string) => ({
    kind: 'status-update',
    taskId: 't',
    status: { state: 'working', message: { role: 'agent', parts: [{ kind: 'text', text }] } },
  });
  const lines = JSON.stringify({ jsonrpc: '2.0', id: 1, result: status('b') }, null, 1)
    .split('\n')
    .map(line => `data: ${line}\n`)
    .join('');
  const script: Step[] = [
    { raw: ': hello\r\n\r\n' },
    { raw: `data:${JSON.stringify({ result: task })}\r\n\r\n` },
    { raw: `event: message\nid: 7\ndata: ${JSON.stringify({ result: status('a') })}\n\n` },
    { raw: `${lines}\n` },
    // The bare result, without the JSON-RPC envelope (S4-15).
    { raw: sse(status('c')) },
    { raw: sse({ result: { kind: 'status-update', taskId: 't', final: true, status: { state: 'completed' } } }) },
  ];
  const events = await eventsOf((await pair(t, { script })).agent, 'x');
  assert.equal(textOf(events), 'abc');
  lastOf(events, 'done');
});

test('a card and a response that begin with a byte order mark are read', async t => {
  const json = (value: unknown) => `\ufeff${JSON.stringify(value)}`;
  const skill = { id: 's', name: 'Skill', description: '', tags: [] };
  const result = { kind: 'message', messageId: 'm', role: 'agent', parts: [{ kind: 'text', text: 'there' }] };
  const server = createServer((request, response) => {
    const card = { name: 'agent', url: '/', protocolVersion: '0.3.0', capabilities: { streaming: false }, skills: [skill] };
    const body = json(request.method === 'GET' ? card : { jsonrpc: '2.0', id: 1, result });
    request.resume().on('end', () => response.writeHead(200, { 'content-type': 'application/json' }).end(body));
  });
  const origin = await listen(server);
  const agent = createA2AAgent({ url: `${origin}/` });
  t.after(async () => {
    await agent.close();
    server.close();
  });
  assert.deepEqual(
    (await agent.skills()).map(({ id }) => id),
    ['s'],
  );
  assert.equal(lastOf(await eventsOf(agent, 'x'), 'done').message?.parts[0]?.text, 'there');
});

test('an HTML page and an unrequested content encoding are named in the reason', async t => {
  const head: Record<string, string>[] = [
    { 'content-type': 'text/html; charset=utf-8' },
    { 'content-type': 'text/event-stream', 'content-encoding': 'gzip' },
  ];
  for (const headers of head) {
    const encodings: unknown[] = [];
    const server = createServer((request, response) => {
      encodings.push(request.headers['accept-encoding']);
      if (request.method === 'GET') return void response.writeHead(404).end();
      request.resume().on('end', () => response.writeHead(200, headers).end('<html>data: secret</html>'));
    });
    const origin = await listen(server);
    const agent = createA2AAgent({ url: `${origin}/` });
    t.after(async () => {
      await agent.close();
      server.close();
    });
    const reason = 'the agent answered with neither an event stream nor JSON';
    assert.deepEqual(await eventsOf(agent, 'x'), [{ type: 'failed', reason, retryable: false }]);
    assert.deepEqual(new Set(encodings), new Set(['identity']));
  }
});

test('redirects are followed only within the origin', async t => {
  const remote = await startRemoteAgent({ dialect: '0.3', script: answer(['there']), path: '/a2a/', card: false });
  const elsewhere = await startRemoteAgent({ dialect: '0.3', script: answer(['stolen']), card: false });
  const { port } = new URL(remote.url);
  const server = createServer((request, response) => {
    const location = request.url === '/in' ? '/on' : request.url === '/on' ? '/on/' : elsewhere.url;
    if (request.method === 'GET') response.writeHead(404).end();
    else if (request.url !== '/on/') response.writeHead(307, { location }).end();
    else request.pipe(httpRequest({ port, path: '/a2a/', method: 'POST' }, answered => answered.pipe(response)));
  });
  const url = await listen(server);
  const within = createA2AAgent({ url: `${url}/in` });
  const away = createA2AAgent({ url: `${url}/out`, headers: { 'x-api-key': 'k' } });
  t.after(async () => {
    await Promise.all([within.close(), away.close(), remote.close(), elsewhere.close()]);
    server.close();
  });
  assert.deepEqual(await failure(away), { type: 'failed', reason: 'the agent answered with HTTP 307', retryable: false });
  assert.equal(elsewhere.requests.length, 0);
  assert.equal(textOf(await eventsOf(within, 'x')), 'there');
});

for (const dialect of ['0.3', '1.0'] as const) {
  for (const [when, script] of [
    ['while it works', [...answer(['a', 'b', 'c']).flatMap(step => [{ pause: 60 }, step])]],
    ['after it has ended', answer(['a', 'b', 'c'])],
  ] as const) {
    test(`another run of a turn does not send the answer to a question again: ${dialect}, ${when}`, async t => {
      const { remote, agent } = await pair(t, {
        dialect,
        script: ({ turn }) => (turn === 1 ? [{ inputRequired: 'where?' }] : script),
      });
      const { resume } = lastOf(await eventsOf(agent, 'deploy'), 'interrupted');
      const message = { messageId: 'answer', role: 'ROLE_USER' as const, parts: [{ text: 'prod' }] };
      const running = agent.run(turnOf('prod', { message, resume }))[Symbol.asyncIterator]();
      await running.next();
      // The process of the first attempt is gone, but the remote agent continues to work.
      if (when === 'after it has ended') while ((await running.next()).done !== true);
      // A killed nats-server may deliver the item again as attempt 1.
      const events = await eventsOf(agent, 'prod', { message, resume });
      assert.equal(textOf(events), 'abc');
      lastOf(events, 'done');
      await running.return?.();
      const sent = remote.requests.filter(({ method, text }) => (method === 'send' || method === 'stream') && text === 'prod');
      assert.equal(sent.length, 1);
    });
  }
}

test('stopping an attempt does not cancel the remote task whose question it answered; ending our task does', async t => {
  const working = answer(['a', 'b', 'c']).flatMap(step => [{ pause: 60 }, step]);
  const { remote, agent } = await pair(t, { script: ({ turn }) => (turn === 1 ? [{ inputRequired: 'where?' }] : working) });
  const { resume } = lastOf(await eventsOf(agent, 'deploy'), 'interrupted');
  const answerOf = (messageId: string) => ({ message: { messageId, role: 'ROLE_USER' as const, parts: [{ text: 'prod' }] } });
  const stopped = new AbortController();
  const running = agent.run(turnOf('prod', { ...answerOf('answer-1'), resume, signal: stopped.signal }))[Symbol.asyncIterator]();
  await running.next();
  stopped.abort();
  while ((await running.next()).done !== true);
  assert.equal(textOf(await eventsOf(agent, 'prod', { ...answerOf('answer-1'), resume, attempt: 2 })), 'abc');
  assert.ok(!remote.requests.some(({ method }) => method === 'cancel'));
  const again = lastOf(await eventsOf(agent, 'deploy'), 'interrupted');
  const ended = new AbortController();
  const last = agent
    .run(turnOf('prod', { ...answerOf('answer-2'), resume: again.resume, signal: ended.signal }))
    [Symbol.asyncIterator]();
  await last.next();
  ended.abort(TASK_ENDED);
  while ((await last.next()).done !== true);
  assert.equal(remote.requests.at(-1)?.method, 'cancel');
});

/** Where agents keep the text "0 1 2 " in their task: in all statuses, in only the newest status, in an artifact, or in both. */
const TEXTS = ['0 ', '1 ', '2 '];
const chunks = TEXTS.map((text, index): Step => ({ artifact: { artifactId: 'answer', text }, append: index > 0 }));
const KINDS = {
  'keeps its statuses': { keeps: 'all', steps: TEXTS.map((token): Step => ({ token })), end: [{ complete: true }] },
  'keeps no text': { keeps: 'newest', steps: TEXTS.map((token): Step => ({ token })), end: [{ complete: true }] },
  'keeps an artifact': { keeps: 'newest', steps: chunks, end: [{ complete: true }] },
  'repeats itself as an artifact': {
    keeps: 'newest',
    steps: TEXTS.map((token): Step => ({ token })),
    end: [{ artifact: { artifactId: 'answer', text: TEXTS.join('') }, lastChunk: true }, { complete: true }],
  },
  'repeats itself in every status': {
    keeps: 'all',
    steps: TEXTS.map((_text, index): Step => ({ token: TEXTS.slice(0, index + 1).join('') })),
    end: [{ complete: true }],
  },
} as const;

for (const [kind, { keeps, steps, end }] of Object.entries(KINDS)) {
  for (const dialect of ['0.3', '1.0'] as const) {
    test(`an attempt that follows another attempt’s run shows its whole text or none: ${dialect}, an agent that ${kind}`, async t => {
      const isFollowed = () => remote.requests.filter(({ method }) => method === 'subscribe').length > 0;
      const { remote, agent } = await pair(
        t,
        {
          dialect,
          keeps: () => keeps,
          script: async function* ({ turn }): AsyncGenerator<Step> {
            if (turn === 1) return yield { inputRequired: 'which?' };
            yield* steps.slice(0, 2);
            while (!isFollowed()) yield { pause: 5 };
            yield* [...steps.slice(2), ...end] as Step[];
          },
        },
        kind.endsWith('every status') ? { deltas: 'cumulative' } : {},
      );
      const { resume } = lastOf(await eventsOf(agent, 'count'), 'interrupted');
      const message = { messageId: 'answer', role: 'ROLE_USER' as const, parts: [{ text: 'up' }] };
      const first = agent.run(turnOf('up', { message, resume }))[Symbol.asyncIterator]();
      const shown = (await first.next()).value as AgentEvent;
      // The process of the first attempt is gone; the next attempt knows the text that it has shown.
      const shownText = shown.type === 'artifact' ? '0 ' : textOf([shown]);
      const events = await eventsOf(agent, 'up', { message, resume, attempt: 2, shownText, remoteRuns: [resume] });
      const artifact = events.findLast(event => event.type === 'artifact');
      const text = textOf(events) || (artifact?.artifact.parts ?? []).map(part => part.text).join('');
      if (kind === 'keeps no text') {
        assert.equal(text, '', 'a tail is not shown');
        assert.equal(lastOf(events, 'failed').reason, 'the stream ended without a terminal state');
      } else {
        assert.equal(text, TEXTS.join(''));
        lastOf(events, 'done');
      }
      assert.ok(!remote.requests.some(({ method }) => method === 'cancel'));
      await first.return?.();
    });
  }
}

test('if a remote agent fails another attempt’s run, the turn fails with its reason, and no tail is shown', async t => {
  const isFollowed = () => remote.requests.some(({ method }) => method === 'subscribe');
  const { remote, agent } = await pair(t, {
    keeps: () => 'newest',
    script: async function* ({ turn }): AsyncGenerator<Step> {
      if (turn === 1) return yield { inputRequired: 'which?' };
      while (!isFollowed()) yield { pause: 5 };
      yield* [{ token: 'tail' }, { fail: true, text: 'no' }] as Step[];
    },
  });
  const { resume } = lastOf(await eventsOf(agent, 'count'), 'interrupted');
  const message = { messageId: 'answer', role: 'ROLE_USER' as const, parts: [{ text: 'up' }] };
  const first = agent.run(turnOf('up', { message, resume }))[Symbol.asyncIterator]();
  void first.next().catch(() => {});
  await until(() => remote.requests.some(({ text }) => text === 'up'));
  const events = await eventsOf(agent, 'up', { message, resume, attempt: 2, shownText: 'begin' });
  assert.equal(textOf(events), '');
  assert.equal(lastOf(events, 'failed').reason, 'the agent failed');
  await first.return?.();
});

test('text that is read after a broken stream is never shown with a hole', async t => {
  const isFollowed = () => remote.requests.some(({ method }) => method === 'subscribe');
  const { remote, agent } = await pair(t, {
    keeps: () => 'newest',
    script: async function* (): AsyncGenerator<Step> {
      yield* [{ token: '0 ' }, { cut: true }, { token: '1 ' }] as Step[];
      while (!isFollowed()) yield { pause: 5 };
      yield* answer(['2 ']);
    },
  });
  const events = await eventsOf(agent, 'x');
  assert.equal(textOf(events), '0 ');
  lastOf(events, 'failed');
});

test('a run is reported once, before its first event, so that another process can cancel it', async t => {
  const { remote, agent } = await pair(t, { script: [{ token: 'a' }, { hang: true }] });
  const runs: unknown[] = [];
  const running = agent.run(turnOf('x', { remoteRunBegan: run => runs.push(run) }))[Symbol.asyncIterator]();
  await running.next();
  assert.deepEqual(runs, [{ taskId: remote.requests[0]?.taskId }]);
  const other = createA2AAgent({ url: remote.url });
  t.after(() => other.close());
  await other.cancelRemoteRun?.(runs[0], {});
  assert.equal(remote.requests.at(-1)?.method, 'cancel');
  await running.return?.();
});

for (const how of ['streams', 'pushes'] as const) {
  test(`a turn that is stopped before the first event of its agent cancels the run that it has begun: the agent ${how}`, async t => {
    const named = Promise.withResolvers<void>();
    const isSent = Promise.withResolvers<void>();
    const script = async function* (): AsyncGenerator<Step> {
      isSent.resolve();
      await named.promise;
      yield { token: 'a' };
      yield { hang: true };
    };
    const { remote, agent } =
      how === 'streams'
        ? await pair(t, { script })
        : await pair(
            t,
            { script, card: { streaming: false, pushNotifications: true }, pushes: 'never', answersAfter: named.promise },
            { webhooks: { open: () => ({ url: 'http://127.0.0.1:9/', close: () => {} }) } },
          );
    const stop = new AbortController();
    const running = agent.run(turnOf('x', { signal: stop.signal }))[Symbol.asyncIterator]();
    const over = running.next();
    await isSent.promise;
    stop.abort(TASK_ENDED);
    const returned = running.return?.();
    named.resolve();
    await over;
    await returned;
    assert.deepEqual(
      remote.requests.map(({ method }) => method),
      [how === 'streams' ? 'stream' : 'send', 'cancel'],
    );
    assert.equal(remote.requests[1]!.taskId, remote.requests[0]!.taskId);
  });
}

for (const streaming of [true, false]) {
  test(`a caller that leaves while events wait for it ends the turn, and the run is canceled: streaming ${streaming}`, async t => {
    const script: Step[] = [{ status: 'working' }, { token: 'a' }, { pause: 20 }, { token: 'b' }, { hang: true }];
    const { remote, agent } = await pair(t, { script, card: { streaming }, neverWaits: !streaming });
    const stop = new AbortController();
    const running = agent.run(turnOf('x', { signal: stop.signal }))[Symbol.asyncIterator]();
    await running.next();
    await untilTick(() => streaming || remote.requests.some(({ method }) => method === 'get'));
    // Time in which the next events arrive, or are polled, while nothing takes them.
    await new Promise(resolve => setTimeout(resolve, 300));
    stop.abort(TASK_ENDED);
    await running.return?.();
    assert.equal(remote.requests.at(-1)?.method, 'cancel');
  });
}

test('the answer to a question is canceled with our task before its first event, although an earlier turn has ended', async t => {
  const isAnswered = Promise.withResolvers<void>();
  const script = async function* ({ turn }: { turn: number }): AsyncGenerator<Step> {
    if (turn === 1) return yield { inputRequired: 'where?' };
    isAnswered.resolve();
    yield { pause: 60_000 };
    yield { complete: true };
  };
  const { remote, agent } = await pair(t, { script });
  const { resume } = lastOf(await eventsOf(agent, 'deploy'), 'interrupted');
  const stop = new AbortController();
  const running = agent.run(turnOf('prod', { resume, signal: stop.signal }))[Symbol.asyncIterator]();
  const over = running.next();
  await isAnswered.promise;
  stop.abort(TASK_ENDED);
  assert.equal((await over).done, true);
  assert.deepEqual(
    remote.requests.map(({ method }) => method),
    ['stream', 'get', 'stream', 'cancel'],
  );
  assert.equal(remote.requests.at(-1)!.taskId, remote.requests[0]!.taskId);
});

test('an attempt cancels the task of an earlier one before it sends the message again', async t => {
  const { remote, agent } = await pair(t, { script: ({ turn }) => (turn === 1 ? answer(['a']) : []) });
  const earlier = createA2AAgent({ url: remote.url });
  t.after(() => earlier.close());
  const runs: unknown[] = [];
  const first = earlier.run(turnOf('x', { remoteRunBegan: run => runs.push(run) }))[Symbol.asyncIterator]();
  await first.next();
  const events = await eventsOf(agent, 'x', { attempt: 2, remoteRuns: [...runs, { other: 'adapter' }, { taskId: 'forgotten' }] });
  assert.equal(textOf(events), 'a');
  assert.deepEqual(
    remote.requests.map(({ method }) => method),
    ['stream', 'cancel', 'stream'],
  );
  await first.return?.();
});

test('a cancel is repeated while the agent restarts, and ends with its refusal', async t => {
  const first = await startRemoteAgent({ dialect: '0.3', script: [] });
  const agent = createA2AAgent({ url: first.url });
  t.after(() => agent.close());
  await agent.skills();
  await first.close();
  const canceled = agent.cancelRemoteRun?.({ taskId: 'gone' }, {});
  let refusals = 0;
  const again = await startRemoteAgent({
    dialect: '0.3',
    script: [],
    port: Number(new URL(first.url).port),
    httpStatus: () => (++refusals < 3 ? 503 : undefined),
  });
  t.after(() => again.close());
  await canceled;
  assert.equal(refusals, 3, 'after two answers of a proxy the agent answered that it has no such task');
});
