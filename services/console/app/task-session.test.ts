import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { untilTick } from '../../../test/kit/until.ts';
import { type Connection, RequestError } from './connection.ts';
import { HIDDEN_MS_MAX } from './shown-page.ts';
import { TaskSession } from './task-session.ts';

/** The document of a page, which the test hides and shows. */
class FakeDocument extends EventTarget {
  hidden = false;

  show(isShown: boolean): void {
    this.hidden = !isShown;
    this.dispatchEvent(new Event('visibilitychange'));
  }
}

function openPage(t: TestContext, isShown = true): FakeDocument {
  const document = new FakeDocument();
  document.hidden = !isShown;
  Object.assign(globalThis, { document, requestAnimationFrame: queueMicrotask });
  t.after(() => {
    for (const name of ['document', 'requestAnimationFrame']) Reflect.deleteProperty(globalThis, name);
  });
  t.mock.timers.enable({ apis: ['setTimeout'] });
  return document;
}

const frame = (cursor: string, event: object) => `id: ${cursor}\ndata: ${JSON.stringify(event)}\n\n`;
const ids = { taskId: 't', contextId: 'c' };

/** A server of one task. Each stream stays open until its signal aborts. */
class OneTask {
  readonly cursors: string[] = [];
  readonly streams: ReadableStreamDefaultController<Uint8Array<ArrayBuffer>>[] = [];
  readonly reads: PromiseWithResolvers<object>[] = [];
  open = 0;

  get connection(): Connection {
    const open = async (_path: string, { headers, signal }: { headers: Record<string, string>; signal: AbortSignal }) => {
      this.cursors.push(headers['last-event-id']!);
      this.open += 1;
      return new Response(
        new ReadableStream<Uint8Array<ArrayBuffer>>({
          start: controller => {
            this.streams.push(controller);
            signal.addEventListener('abort', () => {
              this.open -= 1;
              controller.error(signal.reason);
            });
          },
        }),
      );
    };
    const json = async (path: string) => {
      if (path.endsWith('/audit')) throw new RequestError(404, 'no audit');
      const read = Promise.withResolvers<object>();
      this.reads.push(read);
      return read.promise;
    };
    return { open, json } as unknown as Connection;
  }

  send(text: string): void {
    this.streams.at(-1)!.enqueue(new TextEncoder().encode(text));
  }
}

test('a page that is hidden for a while closes its stream, and continues after its cursor as soon as it is shown', async t => {
  const page = openPage(t);
  const server = new OneTask();
  const session = new TaskSession('t', server.connection, () => {});
  t.after(() => session.close());
  const text = (n: number) =>
    frame(`${n}.1`, { artifactUpdate: { ...ids, artifact: { artifactId: 'a', parts: [{ text: `${n}` }] } } });
  await untilTick(() => server.open === 1);
  server.send(text(1));
  await untilTick(() => session.recording.length === 1);
  page.show(false);
  t.mock.timers.tick(HIDDEN_MS_MAX - 1);
  page.show(true);
  t.mock.timers.tick(HIDDEN_MS_MAX);
  assert.equal(server.open, 1, 'a short look at another tab');
  page.show(false);
  t.mock.timers.tick(HIDDEN_MS_MAX);
  await untilTick(() => server.open === 0 && !session.isConnected);
  t.mock.timers.tick(60_000);
  await untilTick(() => true);
  assert.deepEqual(server.cursors, ['0.0']);
  page.show(true);
  await untilTick(() => server.open === 1);
  server.send(text(2));
  await untilTick(() => session.recording.length === 2);
  assert.deepEqual(server.cursors, ['0.0', '1.1']);
});

test('a tab that was opened in the background takes no stream before it is shown', async t => {
  const page = openPage(t, false);
  const server = new OneTask();
  const session = new TaskSession('t', server.connection, () => {});
  t.after(() => session.close());
  await untilTick(() => server.reads.length === 1);
  assert.deepEqual(server.cursors, []);
  page.show(true);
  await untilTick(() => server.open === 1);
  session.close();
  await untilTick(() => server.open === 0);
});

test('the stored events of many turns cause one more read of the task, not one for each turn', async t => {
  openPage(t);
  const server = new OneTask();
  const session = new TaskSession('t', server.connection, () => {});
  t.after(() => session.close());
  await untilTick(() => server.open === 1);
  const turns = Array.from({ length: 50 }, (_, n) =>
    frame(`${n + 1}.1`, { statusUpdate: { ...ids, status: { state: 'TASK_STATE_WORKING' } } }),
  );
  server.send(turns.join(''));
  await untilTick(() => session.recording.length === 50);
  assert.equal(server.reads.length, 1);
  const status = { state: 'TASK_STATE_WORKING' };
  server.reads[0]!.resolve({ id: 't', contextId: 'c', status });
  await untilTick(() => server.reads.length === 2);
  const newest = { id: 't', contextId: 'c', status, history: [{ messageId: 'm', role: 'ROLE_USER', parts: [] }] };
  server.reads[1]!.resolve(newest);
  await untilTick(() => session.task?.history !== undefined);
  assert.equal(server.reads.length, 2);
});

test('the interval of audits does not follow a clock that is set back', async t => {
  openPage(t);
  let now = Date.now();
  t.mock.method(Date, 'now', () => now);
  let audits = 0;
  let send: (text: string) => void = () => {};
  const body = new ReadableStream<Uint8Array<ArrayBuffer>>({
    start(controller) {
      send = text => controller.enqueue(new TextEncoder().encode(text));
    },
  });
  const connection = {
    open: async () => new Response(body),
    json: async (path: string) => {
      if (path.endsWith('/audit')) audits += 1;
      throw new RequestError(404, 'no audit');
    },
  };
  const session = new TaskSession('t', connection as unknown as Connection, () => {});
  t.after(() => session.close());
  t.mock.timers.tick(1_001);
  await untilTick(() => session.auditFault !== '');
  assert.equal(audits, 1);
  now -= 3_600_000;
  const artifact = { artifactId: 'a', parts: [{ text: 'one' }] };
  const event = JSON.stringify({ artifactUpdate: { taskId: 't', contextId: 'c', artifact } });
  send(`id: 1.1\ndata: ${event}\n\n`);
  await untilTick(() => session.recording.length === 1);
  t.mock.timers.tick(4_001);
  assert.equal(audits, 2);
});
