import assert from 'node:assert/strict';
import { test } from 'node:test';
import { A2AError, type A2AErrorCode, DIALECTS, rpcFailure, type StreamResponse } from '@hopline/a2a';
import fc from 'fast-check';
import { collect } from '../../../test/kit/collect.ts';
import { until } from '../../../test/kit/until.ts';
import {
  type BadServerOptions,
  type ConnectionFault,
  chunk,
  cursorOf,
  IDS,
  startBadServer,
  status,
  story,
  taskEvent,
} from './bad-server.test-kit.ts';
import { createClient } from './client.ts';
import type { Notice } from './notice.ts';
import { BEGINNING, type StreamItem } from './stream-position.ts';
import type { ClientOptions } from './task-client.ts';

const QUICK = { baseMs: 1, waitMsMax: 2 };
const code = (expected: A2AErrorCode) => (thrown: unknown) => thrown instanceof A2AError && thrown.code === expected;
const refusalOf = (name: A2AErrorCode) => JSON.stringify(rpcFailure(1, new A2AError(name), '1.0'));
const plan =
  (...list: ConnectionFault[]) =>
  (n: number) =>
    list[n];

async function withServer(
  options: BadServerOptions & { client?: Partial<ClientOptions> },
  use: (server: Awaited<ReturnType<typeof startBadServer>>, client: ReturnType<typeof createClient>) => Promise<void>,
): Promise<void> {
  const server = await startBadServer(options);
  try {
    await use(server, createClient({ url: server.url, retry: QUICK, ...options.client }));
  } finally {
    await server.close();
  }
}

const expected = (events: readonly StreamResponse[], from = 0) =>
  events.map((event, index) => ({ cursor: cursorOf(index + 1), event })).slice(from);

test('each event of a task arrives once and in order, whatever happens to connections', async () => {
  const after = fc.integer({ min: 0, max: 6 });
  const fault: fc.Arbitrary<ConnectionFault> = fc.oneof(
    fc.constant<ConnectionFault>({ kind: 'drop' }),
    fc.constant<ConnectionFault>({ kind: 'repeat' }),
    fc.record({ kind: fc.constant('cut' as const), after, halfFrame: fc.boolean() }),
    fc.record({ kind: fc.constant('end' as const), after: fc.integer({ min: 1, max: 6 }) }),
    fc.record({ kind: fc.constant('drain' as const), after }),
    fc.record({ kind: fc.constant('frame' as const), after, data: fc.constantFrom('<html>', '{"jsonrpc":"2.0","id":1,"res') }),
    fc.constantFrom<ConnectionFault>(
      { kind: 'answer', status: 503, headers: { 'retry-after': '0' } },
      { kind: 'answer', status: 502 },
    ),
  );
  await fc.assert(
    fc.asyncProperty(fc.array(fault, { maxLength: 8 }), fc.constantFrom('1.0' as const, '0.3' as const), (list, dialect) => {
      const events = story(10);
      const retry = { ...QUICK, unreachedTriesMax: 20 };
      return withServer({ events, fault: plan(...list), dialect, client: { dialect, retry } }, async (server, client) => {
        assert.deepEqual(await collect(client.stream('count')), expected(events));
        assert.equal(server.started.size, 1);
        const [first] = server.requests;
        for (const { params, headers } of server.requests) {
          // Until an event has arrived, the same message is sent again; afterwards the last position is sent.
          if (params.message !== undefined) assert.deepEqual(params.message, first!.params.message);
          else assert.match(String(headers['last-event-id']), /^\d+\.\d+$/);
          assert.equal(headers['a2a-version'], dialect);
        }
      });
    }),
    { numRuns: 60 },
  );
});

test('a subscription continues after its cursor over any interruptions, and BEGINNING starts at the first event', async () => {
  const events = story(10);
  const cuts = fc.array(fc.integer({ min: 0, max: 4 }), { maxLength: 5 });
  await fc.assert(
    fc.asyncProperty(fc.integer({ min: 0, max: events.length - 1 }), cuts, (from, list) => {
      const fault = plan(...list.map<ConnectionFault>(after => ({ kind: 'cut', after })));
      return withServer({ events, fault }, async (server, client) => {
        const cursor = from === 0 ? BEGINNING : cursorOf(from);
        assert.deepEqual(await collect(client.subscribe(IDS.taskId, { cursor })), expected(events, from));
        assert.equal(server.requests[0]!.headers['last-event-id'], cursor);
      });
    }),
    { numRuns: 20 },
  );
});

test('the delay that a draining server requests is obeyed', async () => {
  const events = story(3);
  const notices: Notice[] = [];
  await withServer({ events, fault: plan({ kind: 'drain', after: 2, retryMs: 60 }) }, async (_server, client) => {
    const begun = performance.now();
    assert.deepEqual(await collect(client.stream('x', { onNotice: notice => notices.push(notice) })), expected(events));
    assert.ok(performance.now() - begun >= 59);
    const [, notice] = notices;
    assert(notice?.kind === 'retry' && notices.length === 3);
    assert.equal(notice.error.code, 'UNAVAILABLE');
    assert.ok(notice.waitMs >= 60 && notice.waitMs < 63);
  });
});

test('Retry-After is obeyed; one beyond the time limit ends the call at once', async () => {
  const events = story(1);
  const busy = (seconds: string): ConnectionFault => ({ kind: 'answer', status: 503, headers: { 'retry-after': seconds } });
  await withServer({ events, fault: plan(busy('1')) }, async (_server, client) => {
    const begun = performance.now();
    assert.deepEqual(await collect(client.stream('x')), expected(events));
    assert.ok(performance.now() - begun >= 999);
  });
  await withServer({ events, fault: plan(busy('3600')) }, async (server, client) => {
    await assert.rejects(collect(client.stream('x')), code('UNAVAILABLE'));
    assert.equal(server.requests.length, 1);
  });
});

test('a gap is a separate item that comes once, directly before the current task', async () => {
  const events = story(5);
  const gap: ConnectionFault = { kind: 'gap', upTo: 4 };
  const fault = plan({ kind: 'cut', after: 2 }, { ...gap, cut: true }, gap);
  await withServer({ events, fault }, async (_server, client) => {
    const snapshot = { cursor: cursorOf(4), event: taskEvent('TASK_STATE_WORKING') };
    assert.deepEqual(await collect(client.stream('x')), [
      ...expected(events).slice(0, 2),
      { gap: { from: 3, to: 4 } },
      snapshot,
      ...expected(events, 4),
    ]);
  });
});

for (const dialect of ['1.0', '0.3'] as const)
  test(`a server that has lost events continues before the cursor: the gap and its task replace what was received (${dialect})`, async () => {
    const lost = 'event: gap\ndata: {"missing":{"from":4,"to":4}}\n\n';
    const frame = (cursor: string, event: StreamResponse) => {
      const result = DIALECTS[dialect].encodeEvent(event);
      return `${cursor}data: ${JSON.stringify({ jsonrpc: '2.0', id: 1, result })}\n\n`;
    };
    // The first frames of a snapshot in dialect 0.3 have no cursor.
    const [task, text] = [taskEvent('TASK_STATE_WORKING'), chunk('0 ')];
    const end = status('TASK_STATE_COMPLETED');
    const snapshot = frame('', task) + frame(`id: ${cursorOf(2)}\n`, text);
    // The next event has a generation above all earlier ones.
    const body = `${lost}${snapshot}${frame('id: 900.103\n', end)}`;
    const moved: ConnectionFault = { kind: 'answer', status: 200, headers: { 'content-type': 'text/event-stream' }, body };
    await withServer(
      { events: story(3), dialect, fault: plan({ kind: 'cut', after: 3 }, moved), client: { dialect } },
      async (server, client) => {
        assert.deepEqual((await collect(client.stream('x'))).slice(3), [
          { gap: { from: 4, to: 4 } },
          { cursor: undefined, event: task },
          { cursor: cursorOf(2), event: text },
          { cursor: '900.103', event: end },
        ]);
        assert.equal(server.requests.length, 2);
      },
    );
  });

test('a cursor that the server has sent and no longer knows is a gap; one of the caller is an error', async () => {
  const events = story(3);
  const body = refusalOf('INVALID_PARAMS');
  const unknown: ConnectionFault = { kind: 'answer', status: 400, body };
  await withServer({ events, fault: plan({ kind: 'cut', after: 4 }, unknown) }, async (server, client) => {
    assert.deepEqual(await collect(client.stream('x')), [
      ...expected(events).slice(0, 4),
      { gap: 'unknown' },
      ...expected(events),
    ]);
    assert.deepEqual(
      server.requests.map(({ headers }) => headers['last-event-id']),
      [undefined, cursorOf(4), undefined],
    );
  });
  // The task has ended in the restored log.
  const ended: ConnectionFault = { kind: 'answer', status: 400, body: refusalOf('UNSUPPORTED_OPERATION') };
  const task = (taskEvent('TASK_STATE_FAILED') as { task: object }).task;
  const current: ConnectionFault = { kind: 'answer', status: 200, body: JSON.stringify({ jsonrpc: '2.0', id: 1, result: task }) };
  await withServer({ events, fault: plan({ kind: 'cut', after: 4 }, unknown, ended, current) }, async (_server, client) => {
    const items = await collect(client.stream('x'));
    assert.deepEqual(items.slice(4), [{ gap: 'unknown' }, { cursor: undefined, event: { task } }]);
  });
  await withServer({ events, fault: () => unknown }, async (server, client) => {
    await assert.rejects(collect(client.subscribe(IDS.taskId, { cursor: '9.9' })), code('INVALID_PARAMS'));
    assert.equal(server.requests.length, 1);
  });
});

test('a page, a redirect or a 404 of a proxy ends a call at its beginning, and is a broken connection in the middle of a stream', async () => {
  const events = story(3);
  const page = { 'content-type': 'text/html; charset=utf-8' };
  const answers: [ConnectionFault, RegExp][] = [
    [
      { kind: 'answer', status: 200, headers: page, body: '<html>Log in' },
      /not an event stream, but text\/html: a proxy, or the login/,
    ],
    [
      { kind: 'answer', status: 302, headers: { location: 'http://login.example/?to=x' } },
      /redirects to http:\/\/login.example\/,/,
    ],
    [{ kind: 'answer', status: 404, headers: page, body: '404 page not found' }, /responded with HTTP 404/],
  ];
  for (const [fault, reason] of answers) {
    await withServer({ events, fault: () => fault }, async (server, client) => {
      await assert.rejects(collect(client.stream('x')), reason);
      assert.equal(server.requests.length, 1);
    });
    await withServer({ events, fault: plan({ kind: 'cut', after: 2 }, fault, fault) }, async (server, client) => {
      assert.deepEqual(await collect(client.stream('x')), expected(events));
      assert.equal(server.requests.length, 4);
    });
  }
  const gone = plan({ kind: 'cut', after: 2 }, ...Array.from({ length: 30 }, () => answers[0]![0]));
  await withServer({ events, fault: gone, client: { retry: { ...QUICK, triesMax: 3 } } }, async (server, client) => {
    // A page goes on to try, because the error is a transient one.
    await assert.rejects(collect(client.stream('x')), ({ retryable }: A2AError) => retryable);
    assert.equal(server.requests.length, 3);
  });
});

test('without cursors a broken stream continues with an unknown gap and the current task, which is not progress', async () => {
  const events = story(3);
  const server = { events, cursors: false };
  await withServer({ ...server, fault: plan({ kind: 'cut', after: 2 }) }, async (_server, client) => {
    const items = await collect(client.stream('x'));
    const again = events.map(event => ({ cursor: undefined, event }));
    assert.deepEqual(items, [...again.slice(0, 2), { gap: 'unknown' }, ...again]);
  });
  const fault = (): ConnectionFault => ({ kind: 'cut', after: 1 });
  await withServer({ ...server, fault, client: { retry: { ...QUICK, triesMax: 4 } } }, async (bad, client) => {
    await assert.rejects(collect(client.stream('x')), code('UNAVAILABLE'));
    // The first connection brought an event, so it does not count.
    assert.equal(bad.requests.length, 4);
  });
});

test('without cursors, a task that ends during an interruption is yielded in its final state', async () => {
  const events = story(3);
  const refusal = { jsonrpc: '2.0', id: 1, error: { code: -32004, message: 'This operation is not supported' } };
  const task = (state: string) => ({ id: IDS.taskId, contextId: IDS.contextId, status: { state } });
  const json = (value: object): ConnectionFault => ({ kind: 'answer', status: 200, body: JSON.stringify(value) });
  const server = (state: string) => ({
    events,
    cursors: false,
    fault: plan({ kind: 'cut', after: 3 }, json(refusal), json({ jsonrpc: '2.0', id: 1, result: task(state) })),
  });
  await withServer(server('TASK_STATE_COMPLETED'), async (_server, client) => {
    const shown = events.slice(0, 3).map(event => ({ cursor: undefined, event }));
    const end = { cursor: undefined, event: { task: task('TASK_STATE_COMPLETED') } };
    assert.deepEqual(await collect(client.stream('x')), [...shown, { gap: 'unknown' }, end]);
  });
  // An error for a task that continues but cannot be followed remains an error.
  await withServer(server('TASK_STATE_WORKING'), async (_server, client) => {
    await assert.rejects(collect(client.stream('x')), code('UNSUPPORTED_OPERATION'));
  });
});

test('a message stream ends when the task waits for input; a subscription continues', async () => {
  const events = [...story(1, 'TASK_STATE_INPUT_REQUIRED'), status('TASK_STATE_WORKING'), status('TASK_STATE_COMPLETED')];
  await withServer({ events, fault: plan({ kind: 'cut', after: 2 }) }, async (server, client) => {
    assert.deepEqual(await collect(client.stream('x')), expected(events).slice(0, 4));
    assert.deepEqual(await collect(client.subscribe(IDS.taskId)), expected(events));
    assert.equal(server.requests.length, 3);
  });
});

test('a direct message ends a stream; auth-required does not', async () => {
  const message: StreamResponse = { message: { messageId: 'm', role: 'ROLE_AGENT', parts: [{ text: 'hi' }] } };
  await withServer({ events: [message] }, async (_server, client) => {
    assert.deepEqual(await collect(client.stream('x')), expected([message]));
  });
  const events = [taskEvent('TASK_STATE_AUTH_REQUIRED'), status('TASK_STATE_WORKING'), status('TASK_STATE_FAILED')];
  await withServer({ events }, async (_server, client) => {
    assert.deepEqual(await collect(client.stream('x')), expected(events));
  });
});

test('a subscription after the last event of an ended task yields nothing and does not fail', async () => {
  const events = story(1);
  const task = { id: IDS.taskId, contextId: IDS.contextId, status: { state: 'TASK_STATE_COMPLETED' } };
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, result: task });
  await withServer({ events, fault: plan({ kind: 'none' }, { kind: 'answer', status: 200, body }) }, async (server, client) => {
    assert.deepEqual(await collect(client.subscribe(IDS.taskId, { cursor: cursorOf(events.length) })), []);
    assert.deepEqual(
      server.requests.map(({ method }) => method),
      ['SubscribeToTask', 'GetTask'],
    );
  });
});

test('an event of an unknown kind is skipped with a notice', async () => {
  const events = story(2);
  const unknown = JSON.stringify({ jsonrpc: '2.0', id: 1, result: { telepathy: {} } });
  const notices: Notice[] = [];
  await withServer({ events, fault: plan({ kind: 'frame', after: 3, data: unknown }) }, async (_server, client) => {
    assert.deepEqual(await collect(client.stream('x', { onNotice: notice => notices.push(notice) })), expected(events));
    assert.deepEqual(
      notices.map(({ kind }) => kind),
      ['opened', 'skipped', 'retry', 'opened'],
    );
  });
});

test('a token that the server refuses in the middle of a stream is renewed once, by the function for the headers', async () => {
  const events = story(3);
  const body = refusalOf('UNAUTHENTICATED');
  const expiring = (n: number, { headers }: { headers: { authorization?: string | undefined } }): ConnectionFault | undefined => {
    if (headers.authorization === 'Bearer new') return undefined;
    return n === 0 ? { kind: 'cut', after: 2 } : { kind: 'answer', status: 401, body };
  };
  const refusals: (string | undefined)[] = [];
  const headers = (token: string) => async (refused?: A2AError) => {
    refusals.push(refused?.code);
    return { authorization: `Bearer ${refused === undefined ? 'old' : token}` };
  };
  await withServer({ events, fault: expiring, client: { headers: headers('new') } }, async (server, client) => {
    assert.deepEqual(await collect(client.stream('x')), expected(events));
    assert.deepEqual(refusals.splice(0), [undefined, undefined, 'UNAUTHENTICATED']);
    assert.equal(server.requests.length, 3);
  });
  for (const [token, requests] of [
    ['old', 2],
    ['older', 3],
  ] as const)
    await withServer({ events, fault: expiring, client: { headers: headers(token) } }, async (server, client) => {
      await assert.rejects(collect(client.stream('x')), code('UNAUTHENTICATED'));
      assert.equal(server.requests.length, requests);
    });
});

test('a silent connection counts as broken', async () => {
  const events = story(2);
  const client = { limits: { silenceMsMax: 200 } };
  await withServer({ events, fault: plan({ kind: 'silence', after: 3 }), client }, async (server, hopline) => {
    assert.deepEqual(await collect(hopline.stream('x')), expected(events));
    // On a busy machine a connection that is only slow also counts as silent.
    assert.ok(server.requests.length >= 2);
  });
});

test('an error that is not retryable is thrown at once, before and within a stream', async () => {
  const events = story(2);
  const error = { code: -32004, message: 'This operation is not supported: the task has ended' };
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, error });
  const places: ConnectionFault[] = [
    { kind: 'answer', status: 200, body },
    { kind: 'frame', after: 1, data: body },
  ];
  for (const place of places) {
    await withServer({ events, fault: plan(place) }, async (server, client) => {
      await assert.rejects(collect(client.stream('x')), code('UNSUPPORTED_OPERATION'));
      assert.equal(server.requests.length, 1);
    });
  }
  const page: ConnectionFault = { kind: 'answer', status: 200, headers: { 'content-type': 'text/html' }, body: '<html>' };
  await withServer({ events, fault: plan(page) }, async (server, client) => {
    await assert.rejects(collect(client.stream('x')), code('INVALID_AGENT_RESPONSE'));
    assert.equal(server.requests.length, 1);
  });
});

test('tries without progress are bounded, more tightly while no server has responded', async () => {
  const events = story(2);
  const busy: ConnectionFault = { kind: 'answer', status: 503 };
  const retry = { ...QUICK, triesMax: 6, unreachedTriesMax: 3 };
  await withServer({ events, fault: () => busy, client: { retry } }, async (server, client) => {
    await assert.rejects(collect(client.stream('x')), code('UNAVAILABLE'));
    assert.equal(server.requests.length, 6);
  });
  await withServer({ events, fault: () => ({ kind: 'drop' }), client: { retry } }, async (server, client) => {
    await assert.rejects(collect(client.stream('x')), code('UNAVAILABLE'));
    assert.equal(server.requests.length, 3);
  });
});

test('a server that restarts on the same port is found again', async () => {
  const events = story(4);
  const first = await startBadServer({ events, fault: plan({ kind: 'cut', after: 3 }) });
  const client = createClient({ url: first.url, retry: { baseMs: 20, waitMsMax: 20 } });
  const items: StreamItem[] = [];
  let second: Awaited<ReturnType<typeof startBadServer>> | undefined;
  let failures = 0;
  const onNotice = async ({ kind }: Notice) => {
    if (kind === 'opened') return;
    failures += 1;
    if (failures === 1) await first.close();
    if (failures === 4) second = await startBadServer({ events, port: Number(new URL(first.url).port) });
  };
  for await (const item of client.stream('x', { onNotice })) items.push(item);
  assert.deepEqual(items, expected(events));
  assert.equal(second?.requests[0]?.headers['last-event-id'], cursorOf(3));
  await second?.close();
});

test('an aborted signal ends a stream at any point with its reason; leaving the loop closes the connection', async () => {
  const events = story(2);
  const reason = new Error('enough');
  const quiet: ConnectionFault = { kind: 'silence', after: 1 };
  for (const fault of [quiet, { kind: 'answer', status: 503, headers: { 'retry-after': '30' } } satisfies ConnectionFault]) {
    await withServer({ events, fault: plan(fault) }, async (_server, client) => {
      const stop = new AbortController();
      setTimeout(() => stop.abort(reason), 30);
      await assert.rejects(collect(client.stream('x', { signal: stop.signal })), thrown => thrown === reason);
      await assert.rejects(collect(client.stream('x', { signal: stop.signal })), thrown => thrown === reason);
    });
  }
  await withServer({ events: story(2), fault: plan(quiet) }, async (server, client) => {
    for await (const _item of client.stream('x')) break;
    await until(() => server.openResponses() === 0);
    assert.equal(server.requests.length, 1);
  });
});

test('a message of an existing task is sent without a generated context', async () => {
  const events = [taskEvent('TASK_STATE_WORKING'), chunk('a', false), status('TASK_STATE_COMPLETED')];
  await withServer({ events }, async (server, client) => {
    await collect(client.stream({ parts: [{ text: 'yes' }], taskId: IDS.taskId }));
    const { message } = server.requests[0]!.params;
    assert.deepEqual(Object.keys(message!).sort(), ['messageId', 'parts', 'role', 'taskId']);
  });
});
