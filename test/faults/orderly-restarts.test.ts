import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { Fold } from '@hopline/a2a';
import type { Role } from '@hopline/events';
import { ATTEMPTS_MAX_DEFAULT } from '@hopline/log';
import { WORK_STREAM } from '@hopline/log-jetstream';
import { type JetStreamManager, jetstreamManager } from '@nats-io/jetstream';
import { connect, type NatsConnection } from '@nats-io/transport-node';
import { countingTokens } from '../support/agents/counting-agent.ts';
import { type RemoteAgent, startRemoteAgent } from '../support/agents/remote-agent.ts';
import { type Frame, frames } from '../support/cluster/a2a-stream.ts';
import { Cluster } from '../support/cluster/cluster.ts';
import type { ServiceProcess } from '../support/cluster/service-process.ts';

const TOKENS = countingTokens(200);
/** Said before the agent waits for `mayEnd`: however slow the machine is, whoever is stopped is stopped in mid-stream. */
const TOKENS_BEFORE = 100;
const PAUSE_MS = 10;
const RESTARTS = ATTEMPTS_MAX_DEFAULT + 2;
const PATIENCE_MS = 60_000;

let remote: RemoteAgent;
let mayEnd = Promise.withResolvers<void>();
let cluster: Cluster;
let nc: NatsConnection;
let jsm: JetStreamManager;

before(async () => {
  remote = await startRemoteAgent({
    dialect: '0.3',
    script: async function* () {
      for (const [index, token] of TOKENS.entries()) {
        if (index === TOKENS_BEFORE) await mayEnd.promise;
        yield { token };
        yield { pause: PAUSE_MS };
      }
      yield { complete: true };
    },
  });
  cluster = await Cluster.start({
    agents: [
      { name: 'counter', adapter: 'a2a', url: remote.url },
      { name: 'deadly', adapter: 'module', path: fileURLToPath(import.meta.resolve('../support/agents/crashing-agent.ts')) },
    ],
    env: { HOPLINE_ACK_WAIT_MS: '1500', HOPLINE_DRAIN_TURNS_MS: '0' },
  });
  nc = await connect({ servers: cluster.nats.url });
  jsm = await jetstreamManager(nc);
});

after(async () => {
  await nc?.close();
  await cluster?.[Symbol.asyncDispose]();
  await remote?.close();
});

/** Deliveries of a role's items until now, all of them. */
async function deliveriesOf(role: Role): Promise<number> {
  return (await jsm.consumers.info(WORK_STREAM, role.replace('.', '-'))).delivered.consumer_seq;
}

async function until(condition: () => Promise<boolean> | boolean, what: string): Promise<void> {
  const deadline = performance.now() + PATIENCE_MS;
  while (!(await condition())) {
    if (performance.now() > deadline) assert.fail(`${what}: not within ${PATIENCE_MS} ms`);
    await new Promise(resolve => setTimeout(resolve, 20));
  }
}

/** Streams a task to its end; `act` begins with its first text. Returns what the client has folded, and every frame. */
async function stream(agent: string, act: (list: readonly Frame[]) => Promise<void>): Promise<{ fold: Fold; list: Frame[] }> {
  mayEnd = Promise.withResolvers();
  const fold = new Fold();
  const list: Frame[] = [];
  let acting: Promise<void> | undefined;
  const message = { kind: 'message', role: 'user', messageId: crypto.randomUUID(), parts: [{ kind: 'text', text: 'go' }] };
  for await (const frame of frames(cluster.url, { params: { message: { ...message, metadata: { agent } } } })) {
    list.push(frame);
    fold.add(frame.event);
    if (acting === undefined && textsOf(list).length > 0) {
      acting = act(list);
      // What went wrong there is told below; the agent must not wait for it.
      acting.catch(() => {}).finally(mayEnd.resolve);
    }
  }
  await acting;
  assert.deepEqual(fold.violations, []);
  return { fold, list };
}

const textsOf = (list: readonly Frame[]) =>
  list
    .flatMap(({ event }) => ('artifactUpdate' in event ? [event.artifactUpdate] : []))
    .filter(({ artifact }) => artifact.name === 'streaming_result');
/** Each attempt's first text replaces that of the one before. */
const attemptsSeen = (list: readonly Frame[]) => textsOf(list).filter(({ append }) => append !== true).length;

async function restartInOrder(service: ServiceProcess, role: Role): Promise<void> {
  const before = await deliveriesOf(role);
  await service.kill('SIGTERM');
  await service.start();
  await until(async () => (await deliveriesOf(role)) > before, `${role} takes the task up again`);
}

test('more orderly restarts of an agent in mid-stream than there are attempts: the task completes, and its text is there once [C-5]', {
  timeout: 180_000,
}, async () => {
  const { fold, list } = await stream('counter', async seen => {
    for (let restarts = 1; restarts <= RESTARTS; restarts += 1) {
      await restartInOrder(cluster.agents[0]!, 'agent.counter');
      await until(() => attemptsSeen(seen) > restarts, `text of attempt ${restarts + 1}`);
    }
  });
  assert.equal(await deliveriesOf('agent.counter'), RESTARTS + 1, 'every restart was a delivery');
  assert.equal(attemptsSeen(list), RESTARTS + 1, 'and every delivery replaced the text');
  assert.deepEqual([fold.task?.status.state, fold.task?.metadata], ['TASK_STATE_COMPLETED', {}]);
  assert.equal(fold.textOf('streaming_result'), TOKENS.join(''));
  assert.equal(fold.textOf('partial_result'), TOKENS.join(''));
});

test('more orderly restarts of the supervisor in mid-stream than there are attempts: the text goes on, and the task completes once', {
  timeout: 180_000,
}, async () => {
  const before = await deliveriesOf('supervisor');
  const { fold, list } = await stream('counter', async () => {
    for (let restarts = 1; restarts <= RESTARTS; restarts += 1) await restartInOrder(cluster.supervisors[0]!, 'supervisor');
  });
  assert.equal((await deliveriesOf('supervisor')) - before, RESTARTS + 1, 'every restart was a delivery');
  assert.equal(attemptsSeen(list), 1, 'the agent knew nothing of it');
  assert.deepEqual([fold.task?.status.state, fold.task?.metadata], ['TASK_STATE_COMPLETED', {}]);
  assert.equal(fold.textOf('partial_result'), TOKENS.join(''));
});

test('work that kills its process at every attempt still ends its task as failed, after three [C-5]', {
  timeout: 180_000,
}, async () => {
  const deadly = cluster.agents[1]!;
  const { fold, list } = await stream('deadly', async seen => {
    for (let deaths = 1; deaths <= ATTEMPTS_MAX_DEFAULT; deaths += 1) {
      await until(() => deadly.hasEnded, `death ${deaths}`);
      await deadly.start();
      if (deaths < ATTEMPTS_MAX_DEFAULT) await until(() => attemptsSeen(seen) > deaths, `text of attempt ${deaths + 1}`);
    }
  });
  assert.equal(fold.task?.status.state, 'TASK_STATE_FAILED');
  assert.equal(fold.task?.metadata?.reason, 'deadly: attempts exhausted');
  const said = textsOf(list).map(({ artifact }) => artifact.parts.map(part => ('text' in part ? part.text : '')).join(''));
  assert.deepEqual(
    said.filter(text => text.startsWith('attempt')),
    ['attempt 1 ', 'attempt 2 ', 'attempt 3 '],
  );
  assert.equal(await deliveriesOf('agent.deadly'), ATTEMPTS_MAX_DEFAULT + 1, 'three attempts, and one delivery that says so');
});
