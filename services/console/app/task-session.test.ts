import assert from 'node:assert/strict';
import { test } from 'node:test';
import { untilTick } from '../../../test/kit/until.ts';
import { type Connection, RequestError } from './connection.ts';
import { TaskSession } from './task-session.ts';

test('the interval of audits does not follow a clock that is set back', async t => {
  Object.assign(globalThis, { document: { hidden: true } });
  t.after(() => Reflect.deleteProperty(globalThis, 'document'));
  t.mock.timers.enable({ apis: ['setTimeout'] });
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
