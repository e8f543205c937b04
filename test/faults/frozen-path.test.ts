import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { Fold } from '@hopline/a2a';
import { until } from '../kit/until.ts';
import { countingTokens, startCountingAgent } from '../support/agents/counting-agent.ts';
import { type RemoteAgent, startRemoteAgent } from '../support/agents/remote-agent.ts';
import { answer } from '../support/agents/remote-task.ts';
import { frames } from '../support/cluster/a2a-stream.ts';
import { Cluster } from '../support/cluster/cluster.ts';

/** Longer than any timeout of a write to the log. */
const FREEZE_MS = 25_000;
const FREEZES = 2;
/** Milliseconds between two freezes. */
const FLOW_MS = 10_000;
/** 80 s of text at 4 tokens a second: both freezes are in the middle of each task. */
const TOKENS = countingTokens(320);
const TOKEN_PAUSE_MS = 250;
const TASKS = 12;
const QUESTIONS = 96;
/** 4 to 5 s measured on an idle machine, 13 s at a load of 14. The test looks for a shard that never answers. */
const ANSWER_MS_MAX = 120_000;

let counter: RemoteAgent;
let quick: RemoteAgent;
let cluster: Cluster;

before(async () => {
  counter = await startCountingAgent(TOKENS, TOKEN_PAUSE_MS);
  quick = await startRemoteAgent({ dialect: '0.3', script: answer(['quick']) });
  cluster = await Cluster.start({
    agents: [
      { name: 'counter', adapter: 'a2a', url: counter.url },
      { name: 'quick', adapter: 'a2a', url: quick.url },
    ],
    relays: 2,
    env: { HOPLINE_SLOTS: '32' },
    proxied: true,
  });
});

after(async () => {
  await cluster?.[Symbol.asyncDispose]();
  await counter?.close();
  await quick?.close();
});

async function ask(agent: string, progress: { events: number } = { events: 0 }): Promise<Fold> {
  const fold = new Fold();
  const message = { kind: 'message', role: 'user', messageId: crypto.randomUUID(), parts: [{ kind: 'text', text: 'go' }] };
  for await (const { event } of frames(cluster.url, { params: { message: { ...message, metadata: { agent } } } })) {
    progress.events += 1;
    fold.add(event);
  }
  return fold;
}

const endOf = ({ task }: Fold) => `${task?.status.state} ${task?.metadata?.reason ?? ''}`;

test('after two freezes of the path to NATS, running tasks end with their whole text and every shard answers', {
  timeout: 480_000,
}, async t => {
  const progress = Array.from({ length: TASKS }, () => ({ events: 0 }));
  const running = Promise.all(progress.map(seen => ask('counter', seen).catch((error: Error) => error)));
  await until(() => progress.every(({ events }) => events >= 8));
  for (let freezes = 0; freezes < FREEZES; freezes += 1) {
    cluster.natsProxy!.freeze();
    await sleep(FREEZE_MS);
    cluster.natsProxy!.thaw();
    if (freezes < FREEZES - 1) await sleep(FLOW_MS);
  }
  const thawedAt = performance.now();
  const answered = await Promise.all(
    Array.from({ length: QUESTIONS }, async () => {
      const late = sleep(ANSWER_MS_MAX, 'no answer', { ref: false });
      const fold = await Promise.race([ask('quick').catch((error: Error) => error), late]);
      return { end: fold instanceof Fold ? endOf(fold) : `${fold}`, ms: Math.round(performance.now() - thawedAt) };
    }),
  );
  t.diagnostic(`slowest answer ${Math.max(...answered.map(({ ms }) => ms))} ms after the thaw`);
  assert.deepEqual(new Set(answered.map(({ end }) => end)), new Set(['TASK_STATE_COMPLETED ']));
  for (const fold of await running) {
    if (!(fold instanceof Fold)) throw fold;
    assert.deepEqual([endOf(fold), fold.violations], ['TASK_STATE_COMPLETED ', []]);
    assert.equal(fold.textOf('streaming_result'), TOKENS.join(''));
    assert.equal(fold.textOf('partial_result'), TOKENS.join(''));
  }
});
