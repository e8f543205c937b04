import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import type { InputRecord } from '@hopline/events';
import { freePort } from '@hopline/local-cluster';
import { type LogEvent, openJetStreamLog } from '@hopline/log-jetstream';
import { createLogger } from '@hopline/telemetry';
import { createRelay } from '../../../services/relay/src/relay.ts';
import { countingMetrics } from '../../kit/counting-metrics.ts';
import { until } from '../../kit/until.ts';
import { startNatsProxy } from '../../support/nats/nats-proxy.ts';
import { startNats } from '../../support/nats/nats-server.ts';

const TASKS = 300;
/** A PING is answered after 12 s: nats.js sends one every 5 s, and replaces a connection at the second one without an answer. */
const DELAY_MS = 6_000;
const LATE_MS = 45_000;
/** Longer than a request is retried, and than a connection lives whose path is frozen. */
const FROZEN_MS = 25_000;

function clientMessage(messageId: string): InputRecord {
  const message = { messageId, role: 'ROLE_USER' as const, parts: [{ text: 'hello' }] };
  const input = { kind: 'message', message, contextId: 'c', role: 'agent.silent', profile: 'transparent' } as const;
  return { v: 1, at: Date.now(), from: 'client', input };
}

/** A relay with open tasks whose agent writes nothing. */
async function relayBehindProxy(t: TestContext) {
  const monitor = await freePort();
  const nats = await startNats({ config: `http: "127.0.0.1:${monitor}"` });
  t.after(() => nats.stop());
  const proxy = await startNatsProxy(nats.port);
  t.after(() => proxy.close());
  const counts = { restarts: 0, disconnects: 0 };
  const onEvent = ({ type }: LogEvent) => {
    if (type === 'disconnected') counts.disconnects += 1;
  };
  const log = await openJetStreamLog({ servers: proxy.url, name: 'relay', onEvent });
  t.after(() => log.close());
  const metrics = countingMetrics((name, added) => {
    if (name === 'shardRestarts') counts.restarts += added;
  });
  const logger = createLogger({ service: 'relay', instance: 'test', level: 'fatal' });
  const relay = await createRelay({
    log,
    instance: 'relay',
    coalesce: { eventCostMs: 0, holdMsMax: 100, chunkBytesMax: 32_768 },
    metrics,
    logger,
  });
  const tasks = Array.from({ length: TASKS }, (_, index) => `task-${index}`);
  for (const task of tasks) await log.inputs.append(task, clientMessage(task), { id: `${task}:1` });
  const isQueued = async (task: string) =>
    (await log.tasks.get(task)) !== undefined && (await log.work.hasItem('agent.silent', task));
  await until(async () => !(await Promise.all(tasks.map(isQueued))).includes(false), 'all tasks are stored, listed and queued');
  const messages = async () => {
    const varz = (await (await fetch(`http://127.0.0.1:${monitor}/varz`)).json()) as { in_msgs: number };
    return varz.in_msgs;
  };
  return { nats, proxy, log, relay, tasks, counts, messages };
}

test('a server that needs twelve seconds for each answer keeps the connection and the shards of a relay', {
  timeout: 240_000,
}, async t => {
  const { proxy, log, relay, counts, messages } = await relayBehindProxy(t);
  const before = await messages();
  proxy.delay(DELAY_MS);
  await sleep(LATE_MS);
  const sent = (await messages()) - before;
  t.diagnostic(`${JSON.stringify(counts)}, ${sent} messages in ${LATE_MS / 1_000} s`);
  proxy.delay(0);
  await log.inputs.append('later', clientMessage('later'), { id: 'later:1' });
  await until(() => log.facts.last('later'), 'a later task is stored');
  await relay.stop();
  assert.deepEqual(counts, { restarts: 0, disconnects: 0 });
  assert.ok(sent < 20 * TASKS, `${sent} messages`);
});

test('no shard restarts after a server stood still for longer than requests and connections last', {
  timeout: 240_000,
}, async t => {
  const { nats, log, relay, tasks, counts, messages } = await relayBehindProxy(t);
  const before = await messages();
  nats.pause();
  const reading = Promise.allSettled(tasks.map(task => log.facts.last(task)));
  await sleep(FROZEN_MS);
  nats.resume();
  await reading;
  await log.inputs.append('later', clientMessage('later'), { id: 'later:1' });
  await until(() => log.facts.last('later'), 'a later task is stored');
  const sent = (await messages()) - before;
  t.diagnostic(`${JSON.stringify(counts)}, ${sent} messages`);
  await relay.stop();
  assert.ok(counts.disconnects <= 2 && counts.restarts <= 8, JSON.stringify(counts));
});
