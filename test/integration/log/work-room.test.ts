import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Work } from '@hopline/events';
import { LogFull, ROOM_READ_MS } from '@hopline/log';
import { openJetStreamLog } from '@hopline/log-jetstream';
import { startNats } from '../../support/nats/nats-server.ts';

const WORK_BYTES = 1024 * 1024;
const ITEM_BYTES = 100 * 1024;

function workItem(taskId: string): Work {
  const message = { messageId: taskId, role: 'ROLE_USER' as const, parts: [{ text: 'x'.repeat(ITEM_BYTES) }] };
  return { v: 1, taskId, contextId: 'c', turn: 1, profile: 'caipe', message };
}

test('servers refuse new messages at three quarters of the work stream, and the rest takes calls of running tasks', {
  timeout: 60_000,
}, async t => {
  const nats = await startNats();
  t.after(() => nats.stop());
  const events: string[] = [];
  const log = await openJetStreamLog({
    servers: nats.url,
    name: 'room',
    maxBytes: { work: WORK_BYTES },
    onEvent: event => void events.push(event.type === 'full' ? `full ${event.stream}` : event.type),
  });
  t.after(() => log.close());
  const request = (taskId: string) => log.work.request('supervisor', workItem(taskId), { id: taskId });
  const hasRoom = async () => {
    await new Promise(resolve => setTimeout(resolve, ROOM_READ_MS));
    return log.work.requireRoom('agent.other').then(
      () => true,
      error => assert.ok(error instanceof LogFull, String(error)),
    );
  };
  for (let items = 1; items <= 7; items += 1) await request(`task-${items}`);
  assert.equal(await hasRoom(), true);
  await request('task-8');
  assert.equal(await hasRoom(), undefined);
  // The rest: 10 items fit.
  await request('task-9');
  await request('task-10');
  const late = request('task-11');
  while (!events.includes('full A2A_WORK')) await new Promise(resolve => setTimeout(resolve, 5));
  const stop = new AbortController();
  let done = 0;
  await log.work.take('supervisor', { slots: 1, signal: stop.signal }, async () => {
    done += 1;
    if (done === 2) stop.abort();
  });
  await late;
});
