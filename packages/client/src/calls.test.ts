import assert from 'node:assert/strict';
import { generateKeyPairSync } from 'node:crypto';
import { test } from 'node:test';
import { A2AError, type A2AErrorCode, rpcFailure } from '@hopline/a2a';
import { agentCard } from '@hopline/agent-card';
import { CardSigner } from '@hopline/agent-card/signing';
import { REFUSED_ORIGIN } from '../../../test/kit/refused.ts';
import { type BadServerOptions, type ConnectionFault, IDS, startBadServer } from './bad-server.test-kit.ts';
import { createClient } from './client.ts';
import { RESPONSE_BYTES_MAX } from './read-body.ts';
import type { ClientOptions } from './task-client.ts';
import { RETRY_LIMITS } from './tries.ts';

const code = (expected: A2AErrorCode) => (thrown: unknown) => thrown instanceof A2AError && thrown.code === expected;
const plan =
  (...list: ConnectionFault[]) =>
  (n: number) =>
    list[n];
const task = (state: string, more = {}) => ({ id: IDS.taskId, contextId: IDS.contextId, status: { state }, ...more });
const result = (value: unknown): ConnectionFault => ({
  kind: 'answer',
  status: 200,
  body: JSON.stringify({ jsonrpc: '2.0', id: 1, result: value }),
});
const refusedBody = (name: A2AErrorCode) => JSON.stringify(rpcFailure(1, new A2AError(name), '1.0'));
const refused = (name: A2AErrorCode, status = 200): ConnectionFault => ({ kind: 'answer', status, body: refusedBody(name) });

async function withServer(
  options: Partial<BadServerOptions> & { client?: Partial<ClientOptions> },
  use: (server: Awaited<ReturnType<typeof startBadServer>>, client: ReturnType<typeof createClient>) => Promise<void>,
): Promise<void> {
  const server = await startBadServer({ events: [], ...options });
  try {
    await use(server, createClient({ url: server.url, retry: { baseMs: 1, waitMsMax: 2 }, ...options.client }));
  } finally {
    await server.close();
  }
}

test('an undefined member of an option or a message counts as absent', async () => {
  const none = { contextId: undefined, taskId: undefined, metadata: undefined };
  const client = { headers: undefined, fetch: undefined, dialect: undefined, retry: undefined, limits: undefined };
  await withServer({ fault: () => result({ task: task('TASK_STATE_COMPLETED') }), client }, async (server, own) => {
    await own.send(
      { parts: [{ text: 'hi' }], messageId: 'm', ...none },
      { metadata: undefined, signal: undefined, push: undefined },
    );
    const { message, ...others } = server.requests[0]!.params as { message: { contextId?: string } };
    const { contextId, ...content } = message;
    assert.equal(typeof contextId, 'string');
    assert.deepEqual(content, { messageId: 'm', role: 'ROLE_USER', parts: [{ text: 'hi' }] });
    assert.equal('metadata' in others, false);
  });
});

test('a message is for the agent that an option names, whatever other metadata the request has', async () => {
  await withServer({ fault: () => result({ task: task('TASK_STATE_COMPLETED') }) }, async (server, client) => {
    await client.send('hi', { agent: 'argocd' });
    await client.send('hi', { agent: 'argocd', metadata: { agent: 'other', page: 3 } });
    assert.deepEqual(
      server.requests.map(({ params }) => (params as { metadata?: object }).metadata),
      [{ agent: 'argocd' }, { agent: 'argocd', page: 3 }],
    );
  });
});

test('a message is sent again with the same ids, in both dialects', async () => {
  const file = { raw: 'aGk=', mediaType: 'text/plain', filename: 'a.txt' };
  const done = task('TASK_STATE_COMPLETED', { artifacts: [{ artifactId: 'a', parts: [file] }] });
  const fault = plan({ kind: 'drop' }, { kind: 'answer', status: 503 }, refused('UNAVAILABLE', 503), result({ task: done }));
  await withServer({ fault }, async (server, client) => {
    const metadata = { agent: 'argocd' };
    assert.deepEqual(await client.send({ parts: [{ text: 'hi' }], messageId: 'm-1', metadata }), { task: done });
    assert.equal(server.requests.length, 4);
    for (const { params } of server.requests) assert.deepEqual(params, server.requests[0]!.params);
    const { messageId, role, contextId } = server.requests[0]!.params.message!;
    assert.deepEqual([messageId, role, contextId!.length], ['m-1', 'ROLE_USER', 36]);
  });
  const answer = { kind: 'message', messageId: 'm', role: 'agent', parts: [{ kind: 'text', text: 'hi' }] };
  await withServer({ fault: plan(result(answer)), client: { dialect: '0.3' } }, async (server, client) => {
    const result = await client.send('hi', { blocking: false });
    assert.deepEqual(result, { message: { messageId: 'm', role: 'ROLE_AGENT', parts: [{ text: 'hi' }] } });
    const [{ method, params }] = server.requests as unknown as [{ method: string; params: { configuration: object } }];
    assert.deepEqual([method, params.configuration], ['message/send', { blocking: false }]);
  });
  const push = { url: 'https://hooks.example/a2a', token: 't', authentication: { scheme: 'Bearer', credentials: 'c' } };
  const in03 = { url: push.url, token: 't', authentication: { schemes: ['Bearer'], credentials: 'c' } };
  for (const [dialect, configuration] of [
    ['1.0', { taskPushNotificationConfig: push }],
    ['0.3', { blocking: true, pushNotificationConfig: in03 }],
  ] as const) {
    const message = dialect === '1.0' ? { message: { messageId: 'm', role: 'ROLE_AGENT', parts: [{ text: 'hi' }] } } : answer;
    await withServer({ fault: plan(result(message)), client: { dialect } }, async (server, client) => {
      await client.send('hi', { push });
      assert.deepEqual((server.requests[0]!.params as { configuration?: object }).configuration, configuration);
    });
  }
});

test('a task is decoded completely in both dialects, including files and media types', async () => {
  const artifacts = [
    {
      artifactId: 'a',
      parts: [
        { raw: 'aGk=', mediaType: 'text/plain' },
        { text: 'x', mediaType: 'text/css' },
      ],
    },
  ];
  const whole = task('TASK_STATE_WORKING', { artifacts });
  await withServer({ fault: plan(result(whole)) }, async (server, client) => {
    assert.deepEqual(await client.get(IDS.taskId, { historyLength: 2 }), whole);
    assert.deepEqual(server.requests[0]!.params, { id: IDS.taskId, historyLength: 2 });
  });
  const old = { kind: 'task', ...task('working') };
  await withServer({ fault: plan(result(old)), client: { dialect: '0.3' } }, async (_server, client) => {
    assert.deepEqual(await client.get(IDS.taskId), task('TASK_STATE_WORKING'));
  });
});

test('a repeated cancel succeeds if the lost response had canceled the task; otherwise an ended task is an error', async () => {
  const lost: ConnectionFault[] = [{ kind: 'drop' }, refused('TASK_NOT_CANCELABLE')];
  await withServer({ fault: plan(...lost, result(task('TASK_STATE_CANCELED'))) }, async (_server, client) => {
    assert.equal((await client.cancel(IDS.taskId)).status.state, 'TASK_STATE_CANCELED');
  });
  for (const list of [[refused('TASK_NOT_CANCELABLE')], [...lost, result(task('TASK_STATE_COMPLETED'))]]) {
    await withServer({ fault: plan(...list) }, async (_server, client) => {
      await assert.rejects(client.cancel(IDS.taskId), code('TASK_NOT_CANCELABLE'));
    });
  }
});

test('the card is found at either path; a server without a card fails at once', async () => {
  const skills = [{ id: 's', name: 'S', description: 'd', tags: [] }];
  const card = agentCard({ name: 'Hop', description: 'd', version: '1', url: 'http://hop/', skills, capabilities: {} });
  for (const path of ['/.well-known/agent-card.json', '/.well-known/agent.json']) {
    await withServer({ documents: { [path]: JSON.stringify(card) } }, async (_server, client) => {
      const { json, agent, findings } = await client.card();
      assert.deepEqual(
        [json, agent.name, agent.dialect, agent.skills, findings],
        [card, 'Hop', '1.0', skills, ['skills[0].tags is empty.']],
      );
    });
  }
  await withServer({}, async (_server, client) => {
    await assert.rejects(client.card(), code('INVALID_AGENT_RESPONSE'));
  });
});

test('an invalid response is an error; only transient ones are retried', async () => {
  const cases: [ConnectionFault, A2AErrorCode, number][] = [
    [{ kind: 'answer', status: 200, body: '<html>' }, 'INVALID_AGENT_RESPONSE', 1],
    [result({ id: 'x' }), 'INVALID_AGENT_RESPONSE', 1],
    [{ kind: 'answer', status: 400, body: 'no' }, 'INVALID_AGENT_RESPONSE', 1],
    [{ kind: 'answer', status: 401, body: 'no' }, 'UNAUTHENTICATED', 1],
    [{ kind: 'answer', status: 403, body: 'no' }, 'PERMISSION_DENIED', 1],
    [refused('UNAUTHENTICATED', 401), 'UNAUTHENTICATED', 1],
    [refused('PERMISSION_DENIED', 403), 'PERMISSION_DENIED', 1],
    [{ kind: 'answer', status: 413 }, 'REQUEST_TOO_LARGE', 1],
    [refused('TASK_NOT_FOUND', 404), 'TASK_NOT_FOUND', 1],
    [{ kind: 'answer', status: 302, headers: { location: '/elsewhere' } }, 'INVALID_AGENT_RESPONSE', 1],
    [{ kind: 'answer', status: 429 }, 'UNAVAILABLE', 3],
    [{ kind: 'answer', status: 500, body: '{"error":{"code":-32603,"message":"oops"}}' }, 'INTERNAL_ERROR', 3],
  ];
  for (const [fault, expected, tries] of cases) {
    const client = { retry: { baseMs: 1, triesMax: 3, unreachedTriesMax: 2 } };
    await withServer({ fault: () => fault, client }, async (server, hopline) => {
      await assert.rejects(hopline.get(IDS.taskId), code(expected));
      assert.equal(server.requests.length, tries, `${expected} of ${JSON.stringify(fault)}`);
    });
  }
});

test('a page of tasks with an invalid one is an error of the catalogue', async () => {
  await withServer({ fault: () => result({ tasks: [{}] }) }, async (server, client) => {
    await assert.rejects(client.list(), code('INVALID_AGENT_RESPONSE'));
    assert.equal(server.requests.length, 1);
  });
});

test('a redirect is an error with its address, without credentials or query', async () => {
  const to = 'https://user:pass@other.example/a2a?key=SECRET';
  for (const [location, shown] of [
    [to, 'https://other.example/a2a'],
    ['/login?next=x', '/login'],
    ['http://[', 'another address'],
  ] as const)
    await withServer({ fault: () => ({ kind: 'answer', status: 308, headers: { location } }) }, async (server, client) => {
      const address = shown.startsWith('/') ? `${new URL(server.url).origin}${shown}` : shown;
      await assert.rejects(client.ask('x'), (error: A2AError) => {
        assert.equal(
          error.message,
          `Invalid agent response: ${server.url} redirects to ${address}, and redirects are not followed`,
        );
        return !error.retryable;
      });
      assert.equal(server.requests.length, 1);
    });
  // A page sees neither status nor address of a redirect.
  const opaque = Object.defineProperty(Response.error(), 'type', { value: 'opaqueredirect' });
  const page = createClient({ url: 'http://127.0.0.1:9/', fetch: async () => opaque });
  await assert.rejects(page.get('t'), /http:\/\/127.0.0.1:9\/ redirects to another address, and redirects are not followed$/);
});

test('an error has the delay and the challenge of the response', async () => {
  const busy = { kind: 'answer', status: 429, headers: { 'retry-after': '300' } } as const;
  for (const fault of [busy, { ...busy, body: refusedBody('QUOTA_EXCEEDED') }])
    await withServer({ fault: () => fault }, async (server, client) => {
      await assert.rejects(client.get('t'), ({ retryAfterMs, retryable }: A2AError) => retryable && retryAfterMs === 300_000);
      assert.equal(server.requests.length, 1, 'the delay is longer than all tries may take');
    });
  const locked = { kind: 'answer', status: 401, headers: { 'www-authenticate': 'Bearer realm="a"' } } as const;
  for (const fault of [locked, { ...locked, body: refusedBody('UNAUTHENTICATED') }])
    await withServer({ fault: () => fault }, async (_server, client) => {
      await assert.rejects(client.get('t'), ({ challenge }: A2AError) => challenge === 'Bearer realm="a"');
    });
});

test('a date in Retry-After is read by the server’s clock', async () => {
  const utc = (ms: number) => new Date(ms).toUTCString();
  for (const skewMs of [-3_600_000, 0, 3_600_000]) {
    const date = 1_800_000_000_000 + skewMs;
    const headers = { date: utc(date), 'retry-after': utc(date + 240_000) };
    await withServer({ fault: () => ({ kind: 'answer', status: 503, headers }) }, async (_server, client) => {
      await assert.rejects(client.get('t'), ({ retryAfterMs }: A2AError) => retryAfterMs === 240_000);
    });
  }
  const before = { date: 'no date', 'retry-after': utc(0) };
  const fault = plan({ kind: 'answer', status: 503, headers: before }, result(task('TASK_STATE_WORKING')));
  await withServer({ fault }, async (_server, client) => assert.equal((await client.get('t')).id, IDS.taskId));
});

test('Infinity sets no limit, and an undefined limit is the default', async () => {
  const done = task('TASK_STATE_COMPLETED');
  const none = Number.POSITIVE_INFINITY;
  for (const limits of [
    { callMsMax: none, silenceMsMax: none, sendMsMax: none },
    { callMsMax: undefined, silenceMsMax: undefined, sendMsMax: undefined },
  ]) {
    const retry = { baseMs: 1, triesMax: 1, unreachedTriesMax: 1 };
    await withServer(
      { fault: plan(result(done), result({ task: done })), client: { limits, retry } },
      async (_server, client) => {
        assert.deepEqual(await client.get(IDS.taskId), done);
        assert.deepEqual(await client.send('x'), { task: done });
      },
    );
  }
  const retry = { baseMs: 1, waitMsMax: 1, triesMax: undefined };
  await withServer({ fault: () => ({ kind: 'answer', status: 503 }), client: { retry } }, async (server, client) => {
    await assert.rejects(client.get('t'), code('UNAVAILABLE'));
    assert.equal(server.requests.length, RETRY_LIMITS.triesMax);
  });
});

test('a response at the size limit is read, a larger one is an error', async () => {
  const around = JSON.stringify({ jsonrpc: '2.0', id: 1, result: task('TASK_STATE_WORKING', { metadata: { x: '' } }) });
  for (const [bytes, accepted] of [
    [RESPONSE_BYTES_MAX, true],
    [RESPONSE_BYTES_MAX + 1, false],
  ] as const) {
    const body = around.replace('"x":""', `"x":"${'x'.repeat(bytes - around.length)}"`);
    await withServer({ fault: () => ({ kind: 'answer', status: 200, body }) }, async (_server, client) => {
      const requests = client.get(IDS.taskId);
      if (accepted) assert.equal((await requests).id, IDS.taskId);
      else await assert.rejects(requests, code('INVALID_AGENT_RESPONSE'));
    });
  }
});

test('a server that accepts a request without responding fails in time', async () => {
  const limits = { callMsMax: 40 };
  const fetch = (_input: unknown, init?: RequestInit) =>
    new Promise<Response>((_resolve, reject) => {
      init?.signal?.addEventListener('abort', () => reject(init.signal?.reason));
    });
  const client = createClient({ url: 'http://127.0.0.1:1/', fetch, limits, retry: { baseMs: 1, unreachedTriesMax: 2 } });
  const begun = performance.now();
  await assert.rejects(client.get('x'), /did not respond within 40 ms/);
  // There are two tries, and each timer may fire a fraction of a millisecond early.
  assert.ok(performance.now() - begun >= 78);
});

test('a send that waits for its answer outlives the time limit of a proxy, and ends at its own', async t => {
  let nowMs = 0;
  t.mock.method(performance, 'now', () => nowMs);
  // A proxy whose limit is a minute, and an agent that takes the time.
  const late = (minutes: number) => (n: number) => {
    nowMs += 60_000;
    return n < minutes
      ? ({ kind: 'answer', status: 504, body: '<html>' } as const)
      : result({ task: task('TASK_STATE_COMPLETED') });
  };
  await withServer({ fault: late(8) }, async (server, client) => {
    assert.deepEqual(await client.send('x'), { task: task('TASK_STATE_COMPLETED') });
    assert.equal(new Set(server.requests.map(({ params }) => params.message?.messageId)).size, 1);
  });
  await withServer({ fault: late(99) }, async (server, client) => {
    await assert.rejects(client.send('x'), code('UNAVAILABLE'));
    assert.equal(server.requests.length, 11);
  });
  await withServer({ fault: late(99) }, async (server, client) => {
    await assert.rejects(client.send('x', { blocking: false }), code('UNAVAILABLE'));
    assert.equal(server.requests.length, 3);
  });
});

test('a fetch without streams, as in React Native, is enough for calls, and a stream names what it needs', async () => {
  const answers = [
    { type: 'application/json', text: JSON.stringify({ jsonrpc: '2.0', id: 1, result: task('TASK_STATE_WORKING') }) },
    { type: 'text/event-stream', text: '' },
  ];
  const fetch = async () => {
    const { type, text } = answers.shift()!;
    return { ok: true, status: 200, headers: new Headers({ 'content-type': type }), text: async () => text } as Response;
  };
  const client = createClient({ url: 'http://127.0.0.1:9/', fetch });
  assert.equal((await client.get(IDS.taskId)).id, IDS.taskId);
  await assert.rejects(client.subscribe(IDS.taskId).next(), /this `fetch` does not stream: pass one that does/);
  assert.equal(answers.length, 0);
});

test('headers are sent with every request; createClient rejects invalid headers', async () => {
  const headers = { Authorization: 'Bearer t' };
  await withServer({ fault: plan(result(task('TASK_STATE_WORKING'))), client: { headers } }, async (server, client) => {
    await client.get('x');
    assert.equal(server.requests[0]!.headers.authorization, 'Bearer t');
  });
  assert.throws(() => createClient({ url: 'nowhere' }), TypeError);
  assert.throws(() => createClient({ url: 'ftp://x/' }), TypeError);
  assert.throws(() => createClient({ url: 'http://x/', headers: { 'a\nb': 'c' } }), TypeError);
});

test('a function for the headers is called for each try, and one that fails or waits is an error in time', async () => {
  const tokens = ['old', 'new'];
  const fault = plan(refused('UNAVAILABLE', 503), result(task('TASK_STATE_WORKING')));
  const headers = async () => ({ authorization: `Bearer ${tokens.shift()}` });
  await withServer({ fault, client: { headers } }, async (server, client) => {
    await client.get(IDS.taskId);
    assert.deepEqual(
      server.requests.map(request => request.headers.authorization),
      ['Bearer old', 'Bearer new'],
    );
  });
  const failing = () => {
    throw new A2AError('UNAUTHENTICATED');
  };
  const limits = { callMsMax: 20 };
  const url = 'http://127.0.0.1:9/';
  await assert.rejects(createClient({ url, headers: failing }).get('x'), code('UNAUTHENTICATED'));
  const waiting = createClient({
    url,
    headers: () => new Promise(() => {}),
    limits,
    retry: { triesMax: 1, unreachedTriesMax: 1 },
  });
  await assert.rejects(waiting.get('x'), /did not respond within 20 ms/);
});

test('in a browser whose connections are all streams, a call fails in time with the reason', async t => {
  Object.assign(globalThis, { document: {} });
  t.after(() => Reflect.deleteProperty(globalThis, 'document'));
  const silent: typeof fetch = (_input, init) =>
    new Promise((_resolve, reject) => init!.signal!.addEventListener('abort', () => reject(init!.signal!.reason)));
  const client = createClient({ url: 'http://127.0.0.1:9/', fetch: silent, limits: { callMsMax: 20 } });
  const page = new AbortController();
  const streams = Array.from({ length: 6 }, () => client.subscribe(IDS.taskId, { signal: page.signal }).next());
  const crowded = /did not respond within 20 ms: 6 streams of this client are open/;
  await assert.rejects(client.cancel(IDS.taskId), crowded);
  await assert.rejects(client.send('x', { blocking: false }), crowded);
  page.abort();
  await Promise.allSettled(streams);
});

test('a card is accepted only from a signer with a known key [S4-5]', async () => {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const signer = await CardSigner.open({ key: privateKey.export({ type: 'pkcs8', format: 'pem' }) as string, keyId: 'k1' });
  const card = agentCard({ name: 'Hop', description: 'd', version: '1', url: 'http://hop/', skills: [], capabilities: {} });
  const signed = JSON.stringify({ ...card, signatures: await signer.sign(card) });
  const key = publicKey.export({ format: 'jwk' });
  const keyOf = async (kid: string) => (kid === 'k1' ? key : undefined);
  const path = '/.well-known/agent-card.json';
  await withServer({ documents: { [path]: signed } }, async (_server, client) => {
    const found = await client.card({ keyOf });
    assert.deepEqual([found.json, found.agent.url, found.signature], [card, 'http://hop/', { kid: 'k1', whole: true }]);
    assert.equal((await client.card()).signature, undefined);
    await assert.rejects(client.card({ keyOf: async () => undefined }), code('INVALID_AGENT_RESPONSE'));
  });
  for (const other of [JSON.stringify(card), signed.replace('"Hop"', '"Hip"')]) {
    await withServer({ documents: { [path]: other } }, async (_server, client) => {
      await assert.rejects(client.card({ keyOf }), code('INVALID_AGENT_RESPONSE'));
    });
  }
});

test('the agents of a Hopline server are listed; a server without a list is not supported', async () => {
  const guide = {
    name: 'guide',
    description: 'Explains',
    skills: [{ id: 'explain', name: 'Explain' }],
    state: 'silent',
    default: true,
  };
  const agents = [
    { ...guide, lastSeenAt: '2026-11-22T08:00:00.000Z', url: 'x' },
    { name: 'bare', skills: [{ id: 's' }, 7], fault: 'ECONNREFUSED' },
    'odd',
    {},
  ];
  await withServer({ documents: { '/agents': JSON.stringify({ agents }) } }, async (_server, client) => {
    assert.deepEqual(await client.agents(), [
      { ...guide, lastSeenAt: '2026-11-22T08:00:00.000Z' },
      {
        name: 'bare',
        description: '',
        skills: [{ id: 's', name: 's' }],
        state: 'live',
        fault: 'ECONNREFUSED',
        default: false,
      },
    ]);
  });
  for (const document of ['[]', '{"agents":{}}', 'no json'])
    await withServer({ documents: { '/agents': document } }, async (_server, client) => {
      await assert.rejects(client.agents(), code('INVALID_AGENT_RESPONSE'));
    });
  await withServer({}, async (_server, client) => assert.rejects(client.agents(), code('UNSUPPORTED_OPERATION')));
});

test('the explanation of an event is read by task and cursor', async () => {
  await withServer({ documents: { '/tasks/a%2Fb/audit/3.14': '{"cursor":"3.14"}' } }, async (_server, client) => {
    assert.deepEqual(await client.explain('a/b', '3.14'), { cursor: '3.14' });
    await assert.rejects(client.explain('a/b', '4.15'), code('UNSUPPORTED_OPERATION'));
  });
});

test('the audit of a task is read by its id', async () => {
  await withServer({ documents: { '/tasks/a%2Fb/audit': '{"taskId":"a/b"}' } }, async (_server, client) => {
    assert.deepEqual(await client.audit('a/b'), { taskId: 'a/b' });
    await assert.rejects(client.audit('c'), code('UNSUPPORTED_OPERATION'));
  });
});

test('an error of a server that cannot be reached names its URL, without credentials or query', async () => {
  const client = createClient({ url: `${REFUSED_ORIGIN}/a2a?key=SECRET`, retry: { baseMs: 1, waitMsMax: 2 } });
  await assert.rejects(client.get('t'), (error: A2AError) => {
    assert.equal(error.message, `Temporarily unavailable: ${REFUSED_ORIGIN}/a2a cannot be reached (ECONNREFUSED)`);
    return error.code === 'UNAVAILABLE';
  });
});

test('a proxy that refuses to connect is named with its status', async () => {
  // The errors of Node 26 with NODE_USE_ENV_PROXY=1 and a proxy that asks for credentials.
  const aborted = Object.assign(new Error('Proxy response (407) !== 200 when HTTP Tunneling'), { code: 'UND_ERR_ABORTED' });
  const canceled = Object.assign(new Error('Request was cancelled.', { cause: aborted }), { code: 0 });
  const fetch = async () => {
    throw new TypeError('fetch failed', { cause: canceled });
  };
  const client = createClient({ url: 'https://agents.example/', fetch, retry: { baseMs: 1, waitMsMax: 2 } });
  await assert.rejects(client.get('t'), /agents.example\/ cannot be reached \(the proxy responded with HTTP 407\)/);
});

test('a long poll and a condition have the names of the draft 1.1, and its members are read', async () => {
  const timeline = [
    { status: { state: 'TASK_STATE_WORKING' }, generation: '2' },
    { later: {}, generation: '3' },
  ];
  const working = task('TASK_STATE_WORKING', { generation: '4', timeline });
  await withServer({ fault: plan(result(working), refused('TASK_GENERATION_MISMATCH')) }, async (server, client) => {
    const got = await client.get(IDS.taskId, { currentGeneration: 3 });
    assert.deepEqual(got, { ...working, timeline: timeline.slice(0, 1) }, 'an entry of an unknown kind is skipped');
    const sent = client.send({ taskId: IDS.taskId, parts: [{ text: 'x' }] }, { ifGenerationMatch: 3 });
    await assert.rejects(sent, code('TASK_GENERATION_MISMATCH'));
    const requests = server.requests as unknown as { params: { configuration?: object } }[];
    assert.deepEqual(requests[0]!.params, { id: IDS.taskId, currentGeneration: 3 });
    assert.deepEqual(requests[1]!.params.configuration, { ifGenerationMatch: 3 });
  });
});
