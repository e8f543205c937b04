import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { Fold } from '@hopline/a2a';
import type { Role } from '@hopline/events';
import { ATTEMPTS_MAX_DEFAULT } from '@hopline/log';
import { WORK_STREAM } from '@hopline/log-jetstream';
import { type JetStreamManager, jetstreamManager } from '@nats-io/jetstream';
import { connect, type NatsConnection } from '@nats-io/transport-node';
import { until } from '../kit/until.ts';
import { countingTokens } from '../support/agents/counting-agent.ts';
import { type RemoteAgent, startRemoteAgent } from '../support/agents/remote-agent.ts';
import { answer } from '../support/agents/remote-task.ts';
import { type Frame, frames } from '../support/cluster/a2a-stream.ts';
import { Cluster } from '../support/cluster/cluster.ts';
import type { ServiceProcess } from '../support/cluster/service-process.ts';

const TOKENS = countingTokens(200);
/** Number of tokens before the agent waits for `mayEnd`, so that each stop is in mid-stream however fast the machine is. */
const TOKENS_BEFORE = 100;
const PAUSE_MS = 10;
const RESTARTS = ATTEMPTS_MAX_DEFAULT + 1;

/** Tasks that run at the same time while replicas restart. */
const CALLERS = 2;

let remote: RemoteAgent;
let quick: RemoteAgent;
let mayEnd = Promise.withResolvers<void>();
/** Holds the answers of `quick` until both of its replicas have been stopped. */
const mayAnswer = Promise.withResolvers<void>();
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
  quick = await startRemoteAgent({
    dialect: '0.3',
    script: async function* () {
      await mayAnswer.promise;
      yield* answer(['quick']);
    },
  });
  const replica = { name: 'quick', adapter: 'a2a', url: quick.url };
  cluster = await Cluster.start({
    agents: [
      { name: 'counter', adapter: 'a2a', url: remote.url },
      { name: 'deadly', adapter: 'module', path: fileURLToPath(import.meta.resolve('../support/agents/crashing-agent.ts')) },
      replica,
      replica,
    ],
    // With a shorter wait, a process that a loaded machine does not run would count as dead.
    env: { HOPLINE_ACK_WAIT_MS: '5000', HOPLINE_DRAIN_TURNS_MS: '0', HOPLINE_CODE_USER: 'same' },
  });
  nc = await connect({ servers: cluster.nats.url });
  jsm = await jetstreamManager(nc);
});

after(async () => {
  await nc?.close();
  await cluster?.[Symbol.asyncDispose]();
  await remote?.close();
  await quick?.close();
});

/** Number of all deliveries of a role's items. */
async function deliveriesOf(role: Role): Promise<number> {
  return (await jsm.consumers.info(WORK_STREAM, role.replace('.', '-'))).delivered.consumer_seq;
}

function messageTo(agent: string) {
  const message = { kind: 'message', role: 'user', messageId: crypto.randomUUID(), parts: [{ kind: 'text', text: 'go' }] };
  return { message: { ...message, metadata: { agent } } };
}

/** Streams a task to its end; `act` starts at its first text. Returns the fold and all frames. */
async function stream(agent: string, act: (list: readonly Frame[]) => Promise<void>): Promise<{ fold: Fold; list: Frame[] }> {
  mayEnd = Promise.withResolvers();
  const fold = new Fold();
  const list: Frame[] = [];
  let acting: Promise<void> | undefined;
  for await (const frame of frames(cluster.url, { params: messageTo(agent) })) {
    list.push(frame);
    fold.add(frame.event);
    if (acting === undefined && textsOf(list).length > 0) {
      acting = act(list);
      // The error is rethrown below; the agent must not wait for it.
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
/** Counts attempts by the first text of each, which replaces the text of the previous one. */
const attemptsSeen = (list: readonly Frame[]) => textsOf(list).filter(({ append }) => append !== true).length;

async function restartInOrder(service: ServiceProcess, role: Role): Promise<void> {
  const before = await deliveriesOf(role);
  await service.kill('SIGTERM');
  await service.start();
  await until(async () => (await deliveriesOf(role)) > before, `redelivery to ${role}`);
}

test('a task completes with its text once, even if its agent restarts gracefully more often than it has attempts [C-5]', {
  timeout: 180_000,
}, async () => {
  const { fold, list } = await stream('counter', async seen => {
    for (let restarts = 1; restarts <= RESTARTS; restarts += 1) {
      await restartInOrder(cluster.agents[0]!, 'agent.counter');
      await until(() => attemptsSeen(seen) > restarts, `text of attempt ${restarts + 1}`);
    }
  });
  assert.equal(await deliveriesOf('agent.counter'), RESTARTS + 1, 'each restart caused a delivery');
  assert.equal(attemptsSeen(list), RESTARTS + 1, 'each delivery replaced the text');
  assert.deepEqual([fold.task?.status.state, fold.task?.metadata], ['TASK_STATE_COMPLETED', {}]);
  assert.equal(fold.textOf('streaming_result'), TOKENS.join(''));
  assert.equal(fold.textOf('partial_result'), TOKENS.join(''));
});

test('a task completes once, with continuous text, even if the supervisor restarts gracefully more often than it has attempts', {
  timeout: 180_000,
}, async () => {
  const before = await deliveriesOf('supervisor');
  const { fold, list } = await stream('counter', async () => {
    for (let restarts = 1; restarts <= RESTARTS; restarts += 1) await restartInOrder(cluster.supervisors[0]!, 'supervisor');
  });
  assert.equal((await deliveriesOf('supervisor')) - before, RESTARTS + 1, 'each restart caused a delivery');
  assert.equal(attemptsSeen(list), 1, 'the agent was not restarted');
  assert.deepEqual([fold.task?.status.state, fold.task?.metadata], ['TASK_STATE_COMPLETED', {}]);
  assert.equal(fold.textOf('partial_result'), TOKENS.join(''));
});

test('work that kills its process in each attempt fails its task after three attempts [C-5]', {
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
  const texts = textsOf(list).map(({ artifact }) => artifact.parts.map(part => ('text' in part ? part.text : '')).join(''));
  assert.deepEqual(
    texts.filter(text => text.startsWith('attempt')),
    ['attempt 1 ', 'attempt 2 ', 'attempt 3 '],
  );
  // Three attempts, and one delivery that fails the task. NATS also counts a delivery that reaches a dying process.
  const deliveries = await deliveriesOf('agent.deadly');
  assert.ok(deliveries > ATTEMPTS_MAX_DEFAULT, `${deliveries} deliveries`);
});

test('tasks complete while the replicas of their agent restart one after the other', { timeout: 180_000 }, async t => {
  const replicas = cluster.agents.slice(2);
  let restarting = true;
  const ends: string[] = [];
  const callers = Array.from({ length: CALLERS }, async () => {
    while (restarting) {
      const fold = new Fold();
      for await (const { event } of frames(cluster.url, { params: messageTo('quick') })) fold.add(event);
      ends.push(`${fold.task?.status.state} ${fold.task?.metadata?.reason ?? ''}`);
    }
  });
  await until(() => quick.requests.length > 0, 'a turn is in progress');
  for (const replica of replicas) {
    await replica.kill('SIGTERM');
    await replica.start();
  }
  mayAnswer.resolve();
  restarting = false;
  await Promise.all(callers);
  assert.ok((await deliveriesOf('agent.quick')) > ends.length, 'a turn was in progress at a restart');
  t.diagnostic(`${ends.length} tasks`);
  assert.deepEqual([...new Set(ends)], ['TASK_STATE_COMPLETED ']);
});
