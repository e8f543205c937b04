import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { Fold } from '@hopline/a2a';
import { defineAgent, serveAgent } from '@hopline/agent';
import type { Log } from '@hopline/log';
import { openJetStreamLog } from '@hopline/log-jetstream';
import { createLogger } from '@hopline/telemetry';
import { NO_METRICS } from '../kit/no-metrics.ts';
import { until } from '../kit/until.ts';
import { frames, messageParams } from '../support/cluster/a2a-stream.ts';
import { Cluster } from '../support/cluster/cluster.ts';
import { type NatsProxy, startNatsProxy } from '../support/nats/nats-proxy.ts';

/** The item of a silent worker goes to another one after this. */
const ACK_WAIT_MS = 1_500;
const logger = createLogger({ service: 'test', instance: 'test', level: 'fatal' });

let cluster: Cluster;
let proxy: NatsProxy;
const logs: Log[] = [];
const stop = new AbortController();

before(async () => {
  cluster = await Cluster.start({ agents: [], env: { HOPLINE_ACK_WAIT_MS: String(ACK_WAIT_MS) } });
  proxy = await startNatsProxy(cluster.nats.port);
});

after(async () => {
  stop.abort();
  proxy?.thaw();
  await Promise.all(logs.map(log => log.close()));
  await proxy?.close();
  await cluster?.[Symbol.asyncDispose]();
});

/** A worker of the agent with its own connection. Closing its log acts like its death: nothing is acknowledged or returned. */
async function worker(servers: string, run: (attempt: number) => AsyncGenerator<string>): Promise<Log> {
  const log = await openJetStreamLog({ servers, name: 'worker', ackWaitMs: ACK_WAIT_MS });
  logs.push(log);
  const agent = defineAgent({
    name: 'writer',
    description: 'Writes',
    skills: [{ name: 'writer', tags: ['writer'] }],
    run: ({ attempt }) => run(attempt),
  });
  const options = { log, name: 'writer', agent, url: 'http://writer/', skills: await agent.skills(), slots: 1, drainMs: 0 };
  serveAgent({ ...options, signal: stop.signal, logger, metrics: NO_METRICS }).catch(() => {});
  return log;
}

test('a task ends even if the last inputs of a frozen worker are stored after the inputs of a newer, dead attempt', {
  timeout: 120_000,
}, async () => {
  const [frozen, written] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  await worker(proxy.url, async function* (attempt) {
    yield `attempt ${attempt}`;
    if (attempt > 1) return;
    written.resolve();
    await frozen.promise;
    yield ', whose end is late';
  });
  const fold = new Fold();
  const answered = (async () => {
    for await (const { event } of frames(cluster.url, { params: messageParams('write', { metadata: { agent: 'writer' } }) }))
      fold.add(event);
  })();
  await written.promise;
  await until(() => fold.textOf('streaming_result') === 'attempt 1');
  proxy.freeze();
  frozen.resolve();
  const second = await worker(cluster.nats.url, async function* () {
    yield 'attempt 2, which dies';
    await new Promise(() => {});
  });
  await until(() => fold.textOf('streaming_result') === 'attempt 2, which dies');
  await second.close();
  proxy.thaw();
  await answered;
  assert.deepEqual(fold.violations, []);
  assert.equal(fold.task?.status.state, 'TASK_STATE_COMPLETED');
  assert.match(fold.textOf('partial_result'), /^attempt [3-9]$/);
});
