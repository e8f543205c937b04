import assert from 'node:assert/strict';
import { test } from 'node:test';
import { A2AError, rpcFailure } from '@hopline/a2a';
import { until, untilTick } from '../../../test/kit/until.ts';
import { type BadServerOptions, cursorOf, IDS, startBadServer, status, story, taskEvent } from './bad-server.test-kit.ts';
import { openPage } from './page.test-kit.ts';
import { BEGINNING } from './stream-position.ts';
import { createTaskClient, type SubscribeOptions, type TaskClient } from './task-client.ts';
import { type TaskStoreValue, taskStore } from './task-store.ts';

const ANSWER = Array.from({ length: 20 }, (_, index) => `${index} `).join('');

async function withClient(
  options: BadServerOptions,
  use: (client: TaskClient, server: Awaited<ReturnType<typeof startBadServer>>) => Promise<void>,
) {
  const server = await startBadServer(options);
  try {
    await use(createTaskClient({ url: server.url, retry: { baseMs: 1, waitMsMax: 2 } }), server);
  } finally {
    await server.close();
  }
}

test('a subscriber has the value at once, each change in order, and the end; a broken connection changes nothing', async () => {
  const fault = (n: number) => (n === 0 ? ({ kind: 'cut', after: 5 } as const) : undefined);
  await withClient({ events: story(20), fault }, async (client, server) => {
    const store = taskStore(client, 'task-1');
    const values: TaskStoreValue[] = [];
    const leave = store.subscribe(value => values.push(value));
    assert.deepEqual([values.length, values[0]?.status, values[0]], [1, 'loading', store.get()]);
    await until(() => store.get().status === 'ended');
    assert.equal(store.get().view.answer, ANSWER);
    for (const [index, { view }] of values.entries())
      if (index > 0) assert.ok(view.answer.startsWith(values[index - 1]!.view.answer));
    assert.equal(server.requests.length, 2);
    leave();
    const late: TaskStoreValue[] = [];
    store.subscribe(value => late.push(value));
    assert.deepEqual(late, [store.get()]);
    assert.equal(server.requests.length, 2, 'an ended task is not requested again');
  });
});

test('the stored events of a long task cause only a few changes', async () => {
  await withClient({ events: story(2_000) }, async client => {
    const store = taskStore(client, 'task-1');
    let changes = 0;
    const startMs = performance.now();
    store.subscribe(() => {
      changes += 1;
    });
    await until(() => store.get().status === 'ended');
    // At most one in 16 ms, and the first, the last and the one at the subscription.
    assert.ok(changes <= (performance.now() - startMs) / 16 + 3, `${changes} changes`);
  });
});

test('stored events that arrive in one turn are one change, even for a page that renders slowly', async () => {
  const tokens = 200;
  async function* subscribe() {
    for (const [index, event] of story(tokens).entries()) yield { cursor: cursorOf(index + 1), event };
  }
  const store = taskStore({ subscribe, get: async () => assert.fail() }, 'task-1');
  let changes = 0;
  store.subscribe(() => {
    changes += 1;
    // Longer than the minimum interval of two changes.
    for (const endMs = performance.now() + 20; performance.now() < endMs; );
  });
  await until(() => store.get().status === 'ended');
  assert.equal(store.get().view.answer, Array.from({ length: tokens }, (_, index) => `${index} `).join(''));
  // The value at the subscription, the first event, and the end.
  assert.equal(changes, 3);
});

test('a change that the last subscriber did not see is kept for the next one', async () => {
  const open = (n: number) => (n === 0 ? ({ kind: 'silence', after: 5 } as const) : undefined);
  await withClient({ events: story(20), fault: open }, async (client, server) => {
    let received = 0;
    async function* subscribe(...call: Parameters<TaskClient['subscribe']>) {
      for await (const item of client.subscribe(...call)) {
        received += 1;
        yield item;
      }
    }
    const store = taskStore({ ...client, subscribe }, 'task-1');
    const leave = store.subscribe(() => {});
    await untilTick(() => received === 5);
    leave();
    await until(() => server.openResponses() === 0);
    assert.equal(store.get().view.answer, '0 1 2 ');
  });
});

test('the last subscriber closes the stream, and a later one continues at the cursor', async () => {
  const open = (n: number) => (n === 0 ? ({ kind: 'silence', after: 5 } as const) : undefined);
  await withClient({ events: story(20), fault: open }, async (client, server) => {
    const store = taskStore(client, 'task-1');
    const leave = store.subscribe(() => {});
    await until(() => store.get().view.answer !== '');
    leave();
    // As in React's strict mode: the stream stays open.
    const leaveAgain = store.subscribe(() => {});
    await until(() => store.get().view.answer === '0 1 2 ');
    assert.equal(server.requests.length, 1);
    leaveAgain();
    await until(() => server.openResponses() === 0);
    const answers: string[] = [];
    store.subscribe(({ view }) => answers.push(view.answer));
    await until(() => store.get().status === 'ended');
    assert.equal(answers[0], '0 1 2 ');
    assert.equal(answers.at(-1), ANSWER);
    assert.deepEqual(
      server.requests.map(({ headers }) => headers['last-event-id']),
      [BEGINNING, cursorOf(5)],
    );
  });
});

test('a store begins with a snapshot, continues after it, and requests nothing for a task that has ended', async () => {
  await withClient({ events: story(20) }, async (client, server) => {
    const event = taskEvent('TASK_STATE_COMPLETED') as { task: never };
    const store = taskStore(client, 'task-1', { initial: { event, cursor: undefined } });
    assert.deepEqual([store.get().status, store.get().view.state], ['ended', 'TASK_STATE_COMPLETED']);
    store.subscribe(() => {});
    assert.equal(server.requests.length, 0);
  });
});

test('a server error becomes the value, and a new subscription tries again', async () => {
  const fault = (n: number) => (n === 0 ? ({ kind: 'answer', status: 403 } as const) : undefined);
  await withClient({ events: story(20), fault }, async client => {
    const store = taskStore(client, 'task-1');
    const leave = store.subscribe(() => {});
    await until(() => store.get().status === 'failed');
    assert.match(String(store.get().error), /A2AError/);
    leave();
    store.subscribe(() => {});
    await until(() => store.get().status === 'ended');
    assert.deepEqual([store.get().error, store.get().view.answer], [undefined, ANSWER]);
  });
});

test('a store waits as long as the server asks, up to five minutes, and neither the network nor the user cuts it short', async t => {
  const page = openPage(t);
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const turn = () => new Promise(resolve => setImmediate(resolve));
  for (const [retryAfterMs, waitMs] of [
    [60_000, 60_000],
    [86_400_000, 300_000],
  ] as const) {
    let opened = 0;
    async function* subscribe(): AsyncGenerator<never> {
      opened += 1;
      yield await Promise.reject(new A2AError('QUOTA_EXCEEDED', { retryAfterMs }));
    }
    const store = taskStore({ subscribe, get: async () => assert.fail() }, 'task-1');
    const leave = store.subscribe(() => {});
    await turn();
    assert.deepEqual([store.get().status, opened], ['reconnecting', 1]);
    page.dispatchEvent(new Event('online'));
    page.dispatchEvent(new Event('focus'));
    t.mock.timers.tick(waitMs - 1);
    await turn();
    assert.equal(opened, 1);
    t.mock.timers.tick(1_001);
    await turn();
    assert.equal(opened, 2);
    store.retry();
    await turn();
    assert.equal(opened, 3, 'the user decides');
    leave();
    t.mock.timers.tick(1);
  }
});

test('a store shows that it reconnects while its client still tries, and that it is connected again', async () => {
  const faults = [{ kind: 'cut', after: 5 }, { kind: 'drop' }, { kind: 'drop' }, { kind: 'cut', after: 1 }] as const;
  await withClient({ events: story(20), fault: n => faults[n] }, async client => {
    const store = taskStore(client, IDS.taskId);
    const values: TaskStoreValue[] = [];
    store.subscribe(value => values.push(value));
    await until(() => store.get().status === 'ended');
    const shown = values.map(({ status }) => status).filter((status, index, all) => status !== all[index - 1]);
    assert.deepEqual(shown, ['loading', 'open', 'reconnecting', 'open', 'ended']);
    assert.match(String(values.find(({ status }) => status === 'reconnecting')?.error), /cannot be reached/);
    assert.deepEqual([store.get().error, store.get().view.answer], [undefined, ANSWER]);
  });
});

test('a store does not wait for the next try of its client when the user returns, unless the server has asked for the delay', async t => {
  const page = openPage(t);
  for (const isAsked of [false, true]) {
    const error = new A2AError('UNAVAILABLE', isAsked ? { retryAfterMs: 9_000 } : {});
    const opened: (string | undefined)[] = [];
    async function* subscribe(_id: string, { cursor, signal, onNotice }: SubscribeOptions = {}) {
      opened.push(cursor);
      onNotice?.({ kind: 'opened' });
      if (opened.length > 1) {
        yield { cursor: cursorOf(2), event: status('TASK_STATE_COMPLETED') };
        return;
      }
      yield { cursor: cursorOf(1), event: taskEvent('TASK_STATE_WORKING') };
      for (let tries = 1; tries <= 3; tries += 1) onNotice?.({ kind: 'retry', error, tries, waitMs: 9_000 });
      await new Promise((_resolve, reject) => signal?.addEventListener('abort', () => reject(signal.reason)));
    }
    const store = taskStore({ subscribe, get: async () => assert.fail() }, IDS.taskId);
    store.subscribe(() => {});
    await until(() => store.get().status === 'reconnecting');
    assert.equal(store.get().error, error);
    page.dispatchEvent(new Event('focus'));
    assert.equal(opened.length, isAsked ? 1 : 2);
    if (isAsked) store.retry();
    await until(() => store.get().status === 'ended');
    assert.deepEqual([opened, store.get().error], [[BEGINNING, cursorOf(1)], undefined]);
  }
});

test('a store whose cursor the server no longer knows shows the current task', async () => {
  const events = story(3);
  const body = JSON.stringify(rpcFailure(1, new A2AError('INVALID_PARAMS'), '1.0'));
  const fault = (n: number) => (n === 0 ? ({ kind: 'answer', status: 400, body } as const) : undefined);
  await withClient({ events, fault }, async (client, server) => {
    const event = { task: { ...IDS, id: IDS.taskId, status: { state: 'TASK_STATE_WORKING' as const } } };
    const store = taskStore(client, IDS.taskId, { initial: { event, cursor: '70.7' } });
    store.subscribe(() => {});
    await until(() => store.get().status === 'ended');
    assert.deepEqual([store.get().view.gaps, store.get().view.answer], [1, '0 1 2 ']);
    assert.deepEqual(
      server.requests.map(({ headers }) => headers['last-event-id']),
      ['70.7', undefined],
    );
  });
});

test('a subscriber that throws does not end the stream of the others, and its error is not lost', async t => {
  const thrown: unknown[] = [];
  const errors = process.listeners('uncaughtException');
  process.removeAllListeners('uncaughtException');
  process.on('uncaughtException', error => thrown.push(error));
  t.after(() => {
    process.removeAllListeners('uncaughtException');
    for (const listener of errors) process.on('uncaughtException', listener);
  });
  await withClient({ events: story(20) }, async client => {
    const store = taskStore(client, 'task-1');
    let calls = 0;
    store.subscribe(() => {
      calls += 1;
      throw new Error(`call ${calls}`);
    });
    let last: TaskStoreValue | undefined;
    store.subscribe(value => {
      last = value;
    });
    await until(() => last?.status === 'ended');
    assert.deepEqual([last?.error, last?.view.answer], [undefined, ANSWER]);
    assert.ok(calls > 1);
    await until(() => thrown.length === calls);
  });
});
