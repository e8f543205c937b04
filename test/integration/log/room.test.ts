import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Work } from '@hopline/events';
import { LogFull, ROOM_READ_MS } from '@hopline/log';
import { factRecord } from '@hopline/log/test-kit';
import { LOG_SETTINGS, type LogEvent, type LogSettings, openFromSettings, openJetStreamLog } from '@hopline/log-jetstream';
import { createLogger } from '@hopline/telemetry';
import { jetstreamManager } from '@nats-io/jetstream';
import { connect } from '@nats-io/transport-node';
import { until } from '../../kit/until.ts';
import { startNats } from '../../support/nats/nats-server.ts';

const WORK_BYTES = 1024 * 1024;
const ITEM_BYTES = 100 * 1024;

function workItem(taskId: string): Work {
  const message = { messageId: taskId, role: 'ROLE_USER' as const, parts: [{ text: 'x'.repeat(ITEM_BYTES) }] };
  return { v: 1, taskId, contextId: 'c', turn: 1, profile: 'caipe', message };
}

test('servers refuse new messages at three quarters of the work stream, and the rest is for calls of running tasks', {
  timeout: 120_000,
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
  // The rest of the stream has room for 10 items.
  await request('task-9');
  await request('task-10');
  const late = request('task-11');
  await until(() => events.includes('full A2A_WORK'));
  const stop = new AbortController();
  let done = 0;
  await log.work.take('supervisor', { slots: 1, signal: stop.signal }, async () => {
    done += 1;
    if (done === 2) stop.abort();
  });
  await late;
});

/** A log with buckets of `bytes`, whose events are collected. */
const openSmall = ({ url }: { url: string }, bytes: number, watchesRetention: boolean, events: LogEvent[]) =>
  openJetStreamLog({
    servers: url,
    name: 'room',
    maxBytes: { keyValue: bytes },
    watchesRetention,
    onEvent: event => void events.push(event),
  });

test('a full bucket refuses a write at once, and an event names it', { timeout: 120_000 }, async t => {
  const nats = await startNats();
  t.after(() => nats.stop());
  const events: LogEvent[] = [];
  const open = (watchesRetention: boolean) => openSmall(nats, 64 * 1024, watchesRetention, events);
  const log = await open(false);
  t.after(() => log.close());
  const put = (id: string) =>
    log.pushConfigs.put(`task.${id}`, { taskId: 'task', id, url: `http://${'x'.repeat(8_000)}/`, dialect: '1.0', after: 0 });
  const fill = async () => {
    for (let entry = 1; ; entry += 1) await put(`${entry}`);
  };
  await assert.rejects(fill(), LogFull);
  assert.deepEqual(events, [{ type: 'full', stream: 'KV_hopline_push_configs' }]);
  const watching = await open(true);
  t.after(() => watching.close());
  await until(() => events.length >= 2);
  assert.deepEqual(events[1], { type: 'nearly-full', stream: 'KV_hopline_push_configs' });
});

for (const bucket of ['messageIds', 'contexts', 'tasks'] as const) {
  test(`a full bucket of ${bucket} removes its oldest entries, and an event names it`, { timeout: 120_000 }, async t => {
    const nats = await startNats();
    t.after(() => nats.stop());
    const events: LogEvent[] = [];
    const open = (watchesRetention: boolean) => openSmall(nats, 16 * 1024, watchesRetention, events);
    const log = await open(false);
    t.after(() => log.close());
    const entry = { taskId: 't', fingerprint: 'f'.repeat(200), tasks: ['t'.repeat(100)] } as never;
    for (let n = 1; n <= 200; n += 1) await log[bucket].put(`key-${n}`, entry);
    assert.equal(events.length, 0);
    assert.equal(await log[bucket].get('key-1'), undefined);
    const { firstSeq, lastSeq, fill } = await log[bucket].extent();
    assert.ok(firstSeq > 1 && lastSeq === 200 && fill > 0.9 && fill <= 1, JSON.stringify({ firstSeq, lastSeq, fill }));
    const watching = await open(true);
    t.after(() => watching.close());
    await until(() => events.length > 0);
    const [{ type, stream }] = [...events] as [LogEvent & { stream: string }];
    assert.equal(type, 'removes-by-bytes');
    assert.match(stream, /^KV_hopline_(message_ids|contexts|tasks)$/);
  });
}

test('the bytes of streams and buckets are settings', { timeout: 120_000 }, async t => {
  const nats = await startNats();
  t.after(() => nats.stop());
  const MIB = 1024 * 1024;
  const bytes = {
    HOPLINE_INPUTS_BYTES_MAX: 17 * MIB,
    HOPLINE_TASKS_BYTES_MAX: 18 * MIB,
    HOPLINE_WORK_BYTES_MAX: 19 * MIB,
    HOPLINE_BUCKET_BYTES_MAX: 20 * MIB,
  };
  const defaults = Object.fromEntries(
    Object.entries(LOG_SETTINGS).map(([name, setting]) => [name, 'default' in setting ? setting.default : undefined]),
  );
  const settings = { ...defaults, NATS_URL: nats.url, ...bytes } as LogSettings;
  const logger = createLogger({ service: 'test', instance: 'test', level: 'silent' });
  await (await openFromSettings(settings, { user: 'relay', name: 'room', logger })).close();
  const nc = await connect({ servers: nats.url });
  t.after(() => nc.close());
  const jsm = await jetstreamManager(nc);
  const bytesOf = async (stream: string) => (await jsm.streams.info(stream)).config.max_bytes / MIB;
  const streams = ['A2A_RAW', 'A2A_LOG', 'A2A_WORK', 'KV_hopline_tasks', 'KV_hopline_leases'];
  assert.deepEqual(await Promise.all(streams.map(bytesOf)), [17, 18, 19, 20, 20]);
});

test('an append resolves with the bytes that the server stores for the record', { timeout: 120_000 }, async t => {
  const nats = await startNats();
  t.after(() => nats.stop());
  const log = await openJetStreamLog({ servers: nats.url, name: 'room' });
  t.after(() => log.close());
  const nc = await connect({ servers: nats.url });
  t.after(() => nc.close());
  const jsm = await jetstreamManager(nc);
  const trace = { traceparent: `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01` };
  for (const [generation, options] of [{}, { trace: {} }, { trace }].entries()) {
    const before = (await jsm.streams.info('A2A_LOG')).state.bytes;
    const taskId = `task-${generation}`;
    const { bytes } = await log.facts.append(factRecord(taskId, 1), { expected: 0, id: `${taskId}:relay:1`, ...options });
    const stored = (await jsm.streams.info('A2A_LOG')).state.bytes - before;
    assert.ok(Math.abs(stored - bytes) <= 8, `${bytes} of ${stored}, ${JSON.stringify(options)}`);
  }
  assert.equal((await log.facts.extent()).bytesMax, (await jsm.streams.info('A2A_LOG')).config.max_bytes);
});
