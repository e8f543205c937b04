import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { Fold } from '@hopline/a2a';
import { connect, type NatsConnection } from '@nats-io/transport-node';
import { answer, type ForeignAgent, type Step, startForeignAgent } from '../../support/agents/remote-agent.ts';
import { frames } from '../../support/cluster/a2a-stream.ts';
import { type Balancer, startBalancer } from '../../support/cluster/balancer.ts';
import { Cluster } from '../../support/cluster/cluster.ts';
import { ServiceProcess } from '../../support/cluster/service-process.ts';
import { freePort } from '../../support/nats/nats-server.ts';

/** Far less than the 30 s after which a turn looks by itself, and far more than a call takes. */
const PROMPT_MS_MAX = 15_000;

let foreign: ForeignAgent;
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
  foreign = await startForeignAgent({
    dialect: '1.0',
    script,
    card: { streaming: false, pushNotifications: true },
    pushes: 'last',
  });
  cluster = await Cluster.start({ agents: [] });
  const [onePort, otherPort] = [await freePort(), await freePort()];
  // The public address of both leads to the second one alone: whatever the first one's turns wait for comes to the wrong process.
  balancer = await startBalancer([{ httpPort: otherPort }]);
  const env = {
    NATS_URL: cluster.nats.url,
    HOPLINE_AGENT: JSON.stringify({ name: 'pusher', adapter: 'a2a', url: foreign.url }),
    HOPLINE_PUBLIC_URL: `${balancer.url}/`,
  };
  runsTurn = new ServiceProcess({ service: 'sub-agent', instance: 'pusher-1', env }, onePort);
  getsCalls = new ServiceProcess({ service: 'sub-agent', instance: 'pusher-2', env }, otherPort);
  await runsTurn.start();
  nc = await connect({ servers: cluster.nats.url });
});

after(async () => {
  await nc?.close();
  await runsTurn?.kill();
  await getsCalls?.kill();
  await balancer?.close();
  await cluster?.[Symbol.asyncDispose]();
  await foreign?.close();
});

test('a call that meets another process of the agent wakes up the turn it is for, and its token goes no further', {
  timeout: 60_000,
}, async () => {
  const heard: string[] = [];
  nc.subscribe('a2a.wake.>', { callback: (_error, msg) => void heard.push(`${msg.subject} ${msg.string()}`) });
  const fold = new Fold();
  let calledAt = 0;
  const calling = (async () => {
    while (foreign.requests.length === 0) await new Promise(resolve => setTimeout(resolve, 20));
    await getsCalls.start();
    calledAt = performance.now();
    goOn();
  })();
  for await (const { event } of frames(cluster.url, { text: 'go' })) fold.add(event);
  const tookMs = performance.now() - calledAt;
  await calling;
  assert.equal(fold.task?.status.state, 'TASK_STATE_COMPLETED');
  assert.equal(fold.textOf('partial_result'), 'first second third');
  assert.deepEqual([foreign.pushed, balancer.counts.http], [[204], [1]], 'one call, and it met the process that has no turn');
  assert.ok(tookMs < PROMPT_MS_MAX, `${tookMs} ms`);

  const [, token] = /\/webhooks\/([\w-]{43})/.exec(JSON.stringify(foreign.requests[0]?.params)) ?? [];
  assert.equal(heard.length, 1);
  assert.match(heard[0]!, /^a2a\.wake\.pusher [\w-]{43}$/);
  for (const place of [heard[0]!, runsTurn.output, getsCalls.output]) assert.ok(!place.includes(token!));
});

test('who has no token is answered as if there were a turn of it', { timeout: 60_000 }, async () => {
  const unknown = `${balancer.url}/webhooks/${'A'.repeat(43)}`;
  for (const door of [unknown, unknown.replace(balancer.url, runsTurn.url)]) {
    assert.equal((await fetch(door, { method: 'POST', body: '{}' })).status, 204);
  }
});
