import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { Fold } from '@hopline/a2a';
import { freePort } from '@hopline/local-cluster';
import { connect, type NatsConnection } from '@nats-io/transport-node';
import { until } from '../../kit/until.ts';
import { answer, type RemoteAgent, type Step, startRemoteAgent } from '../../support/agents/remote-agent.ts';
import { frames } from '../../support/cluster/a2a-stream.ts';
import { type Balancer, startBalancer } from '../../support/cluster/balancer.ts';
import { Cluster } from '../../support/cluster/cluster.ts';
import { ServiceProcess } from '../../support/cluster/service-process.ts';

/** Far less than the 30 s after which a turn polls, and far more than a delivery takes. */
const PROMPT_MS_MAX = 15_000;

let remote: RemoteAgent;
let cluster: Cluster;
let balancer: Balancer;
let nc: NatsConnection;
let runsTurn: ServiceProcess;
let getsCalls: ServiceProcess;
let goOn = () => {};
const mayGoOn = new Promise<void>(resolve => {
  goOn = resolve;
});

async function* script(): AsyncGenerator<Step> {
  yield { token: 'first ' };
  await mayGoOn;
  yield* answer(['second ', 'third']);
}

before(async () => {
  remote = await startRemoteAgent({
    dialect: '1.0',
    script,
    card: { streaming: false, pushNotifications: true },
    pushes: 'last',
  });
  cluster = await Cluster.shared({ agents: [] });
  const [onePort, otherPort] = [await freePort(), await freePort()];
  // The public address of both processes leads only to the second one, so each call for a turn of the first reaches the wrong process.
  balancer = await startBalancer([{ httpPort: otherPort }]);
  const env = {
    NATS_URL: cluster.nats.url,
    HOPLINE_AGENT: JSON.stringify({ name: 'pusher', adapter: 'a2a', url: remote.url }),
    HOPLINE_PUBLIC_URL: `${balancer.url}/`,
  };
  runsTurn = new ServiceProcess({ service: 'sub-agent', instance: 'pusher-1', env }, onePort);
  getsCalls = new ServiceProcess({ service: 'sub-agent', instance: 'pusher-2', env }, otherPort);
  await runsTurn.start();
  nc = await connect({ servers: cluster.nats.url });
});

after(async () => {
  await nc?.close();
  // Lets both leave the registry of the shared cluster.
  await runsTurn?.kill('SIGTERM');
  await getsCalls?.kill('SIGTERM');
  await balancer?.close();
  await cluster?.[Symbol.asyncDispose]();
  await remote?.close();
});

test('a call that reaches another process of the agent wakes its turn, and the token is neither logged nor published', {
  timeout: 120_000,
}, async () => {
  const wakeUps: string[] = [];
  nc.subscribe('a2a.wake.>', { callback: (_error, msg) => void wakeUps.push(`${msg.subject} ${msg.string()}`) });
  const fold = new Fold();
  let calledAt = 0;
  const calling = (async () => {
    await until(() => remote.requests.length > 0);
    await getsCalls.start();
    calledAt = performance.now();
    goOn();
  })();
  for await (const { event } of frames(cluster.url, { text: 'go' })) fold.add(event);
  const tookMs = performance.now() - calledAt;
  await calling;
  assert.equal(fold.task?.status.state, 'TASK_STATE_COMPLETED');
  assert.equal(fold.textOf('partial_result'), 'first second third');
  assert.deepEqual([remote.pushStatuses, balancer.counts.http], [[204], [1]], 'one call, to the process without the turn');
  assert.ok(tookMs < PROMPT_MS_MAX, `${tookMs} ms`);

  const [, token] = /\/webhooks\/([\w-]{43})/.exec(JSON.stringify(remote.requests[0]?.params)) ?? [];
  assert.equal(wakeUps.length, 1);
  assert.match(wakeUps[0]!, /^a2a\.wake\.pusher [\w-]{43}$/);
  for (const place of [wakeUps[0]!, runsTurn.output, getsCalls.output]) assert.ok(!place.includes(token!));
});

test('a call with an unknown token gets the same response as a valid one', { timeout: 120_000 }, async () => {
  const unknown = `${balancer.url}/webhooks/${'A'.repeat(43)}`;
  for (const url of [unknown, unknown.replace(balancer.url, runsTurn.url)]) {
    assert.equal((await fetch(url, { method: 'POST', body: '{}' })).status, 204);
  }
});
