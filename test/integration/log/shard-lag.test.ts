import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { DEFAULT_SETTINGS } from '@hopline/coalesce';
import { Layouts, rawSubject } from '@hopline/events';
import type { FactLog, Log } from '@hopline/log';
import { openJetStreamLog } from '@hopline/log-jetstream';
import { createLogger, type HopMetrics } from '@hopline/telemetry';
import { jetstream } from '@nats-io/jetstream';
import { connect } from '@nats-io/transport-node';
import { createRelay, type Relay } from '../../../services/relay/src/relay.ts';
import { NO_PARTIES } from '../../kit/no-metrics.ts';
import { until } from '../../kit/until.ts';
import { startNats } from '../../support/nats/nats-server.ts';

const UNREADABLE = 300;

/** A log with one shard on a separate nats-server, and relays on it whose lag can be read. */
async function openLog(t: TestContext) {
  const nats = await startNats();
  const log = await openJetStreamLog({ servers: nats.url, name: 'lag', shards: 1 });
  const nc = await connect({ servers: nats.url });
  const relays: Relay[] = [];
  t.after(async () => {
    for (const relay of relays) await relay.stop();
    await nc.close();
    await log.close();
    await nats.stop();
  });
  const startRelay = async (on: Log = log): Promise<() => number> => {
    let observed: () => [number, object][] = () => [];
    const observe = (name: string) => (callback: typeof observed) => {
      if (name === 'shardLag') observed = callback;
    };
    const instrument = (name: string) => ({ add() {}, recordMs() {}, observe: observe(name), of: () => NO_PARTIES });
    const metrics = new Proxy({}, { get: (_target, name) => instrument(String(name)) }) as HopMetrics;
    const logger = createLogger({ service: 'relay', instance: 'test', level: 'silent' });
    relays.push(await createRelay({ log: on, instance: 'relay', coalesce: DEFAULT_SETTINGS, metrics, logger }));
    return () => observed()[0]?.[0] ?? Number.NaN;
  };
  const publishUnreadable = async (count: number) => {
    const js = jetstream(nc);
    await Promise.all(Array.from({ length: count }, () => js.publish(rawSubject('t', Layouts.one(1), 'client'), 'not JSON')));
  };
  return { log, startRelay, publishUnreadable };
}

async function sendMessage(log: Log, taskId: string): Promise<void> {
  const message = { messageId: 'm', role: 'ROLE_USER' as const, parts: [{ text: 'hello' }] };
  const input = { kind: 'message', message, contextId: 'c', role: 'agent.echo', profile: 'transparent' } as const;
  await log.inputs.append(taskId, { v: 1, at: Date.now(), from: 'client', input }, { id: `${taskId}:msg:m` });
}

test('a shard whose newest inputs are unreadable has no lag once they are read', { timeout: 120_000 }, async t => {
  const { log, startRelay, publishUnreadable } = await openLog(t);
  await sendMessage(log, 'first');
  await publishUnreadable(UNREADABLE);
  const lag = await startRelay();
  await until(async () => (await log.facts.last('first')) !== undefined, lag);
  await until(() => lag() === 0, lag);
});

test('inputs that were read count as lag until their facts are stored', { timeout: 120_000 }, async t => {
  const { log, startRelay } = await openLog(t);
  const gate = Promise.withResolvers<void>();
  const facts: FactLog = Object.create(log.facts, {
    // Called on the log itself, whose private members this object does not have.
    extent: { value: () => log.facts.extent() },
    append: {
      value: async (...args: Parameters<FactLog['append']>) => {
        await gate.promise;
        return log.facts.append(...args);
      },
    },
  });
  const held: Log = Object.create(log, { facts: { value: facts } });
  const lag = await startRelay(held);
  assert.equal(lag(), 0);
  for (const taskId of ['a', 'b', 'c']) await sendMessage(log, taskId);
  await until(() => lag() === 3, lag);
  gate.resolve();
  await until(() => lag() === 0, lag);
});
