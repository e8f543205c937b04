import assert from 'node:assert/strict';
import { test } from 'node:test';
import { serveAgent } from '@hopline/agent';
import { openJetStreamLog, WORK_STREAM } from '@hopline/log-jetstream';
import { createHopMetrics, createLogger } from '@hopline/telemetry';
import { jetstreamManager } from '@nats-io/jetstream';
import { connect } from '@nats-io/transport-node';
import { until } from '../../kit/until.ts';
import { startNats } from '../../support/nats/nats-server.ts';

const AGENTS = ['one', 'two', 'three'];
const HEARTBEAT_MS = 200;
const HEARTBEATS = 15;
/** An idle worker looks for work at most this often. */
const LOOK_MS = 5_000;

test('an agent that has had no work sends heartbeats, looks for work, and nothing else; it has no consumer', {
  timeout: 120_000,
}, async t => {
  const nats = await startNats();
  t.after(() => nats.stop());
  await (await openJetStreamLog({ servers: nats.url, name: 'streams' })).close();
  const nc = await connect({ servers: nats.url });
  t.after(() => nc.close());
  const subjects: string[] = [];
  nc.subscribe('>', { callback: (_error, { subject }) => void (subject.startsWith('_INBOX.') || subjects.push(subject)) });
  await nc.flush();
  const logger = createLogger({ service: 'test', instance: 'test', level: 'silent' });
  const metrics = createHopMetrics('sub-agent');
  const stop = new AbortController();
  const serving: Promise<void>[] = [];
  const heartbeats = new Map(AGENTS.map(name => [name, 0]));
  for (const name of AGENTS) {
    const log = await openJetStreamLog({ servers: nats.url, name });
    t.after(() => log.close());
    const agent = { name, description: name, skills: async () => [], async *run() {}, async close() {} };
    const onRegistered = () => void heartbeats.set(name, heartbeats.get(name)! + 1);
    const options = {
      url: 'http://a/',
      slots: 64,
      heartbeatMs: HEARTBEAT_MS,
      onRegistered,
      logger,
      metrics,
      signal: stop.signal,
    };
    serving.push(serveAgent({ log, name, agent, ...options }));
  }
  t.after(async () => {
    stop.abort();
    await Promise.all(serving);
  });
  const all = (count: number) => () => [...heartbeats.values()].every(one => one >= count);
  // The entry of the worker and its first questions to itself are over by then.
  await until(all(10));
  const before = new Map(heartbeats);
  const fromMs = performance.now();
  subjects.length = 0;
  await until(all(10 + HEARTBEATS));
  await nc.flush();
  const seconds = (performance.now() - fromMs) / 1000;
  const times = (everyMs: number) => AGENTS.length * (1 + Math.ceil((1000 * seconds) / everyMs));
  const sent = [...heartbeats].reduce((sum, [name, count]) => sum + count - before.get(name)!, 0);
  const counted = (pattern: RegExp) => subjects.filter(subject => pattern.test(subject)).length;
  const kinds = {
    heartbeat: /^\$KV\.hopline_agents\./,
    look: /^\$JS\.API\.STREAM\.INFO\.A2A_WORK$/,
  };
  // The server reports each API request.
  const requests = subjects.filter(subject => !subject.startsWith('$JS.EVENT.ADVISORY.API'));
  const others = requests.filter(subject => !Object.values(kinds).some(kind => kind.test(subject)));
  assert.deepEqual(others, []);
  assert.ok(Math.abs(counted(kinds.heartbeat) - sent) <= AGENTS.length, `${counted(kinds.heartbeat)} of ${sent}`);
  assert.ok(counted(kinds.look) <= times(LOOK_MS), `${counted(kinds.look)} looks in ${seconds} s`);
  const jsm = await jetstreamManager(nc);
  for await (const { name } of jsm.consumers.list(WORK_STREAM)) assert.fail(name);
});
