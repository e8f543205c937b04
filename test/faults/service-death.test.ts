import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { Fold } from '@hopline/a2a';
import { countingTokens, startCountingAgent } from '../support/agents/counting-agent.ts';
import type { RemoteAgent } from '../support/agents/remote-agent.ts';
import { assertGenerations } from '../support/assert-generations.ts';
import { type Frame, frames } from '../support/cluster/a2a-stream.ts';
import { Cluster } from '../support/cluster/cluster.ts';

const TOKENS = countingTokens(150);
const ANSWER = TOKENS.join('');

let remote: RemoteAgent;
let cluster: Cluster;

before(async () => {
  remote = await startCountingAgent(TOKENS, 15);
  cluster = await Cluster.start({
    agents: [{ name: 'counter', adapter: 'a2a', url: remote.url }],
    ingresses: 2,
    env: { HOPLINE_ACK_WAIT_MS: '1500' },
  });
});

after(async () => {
  await cluster?.[Symbol.asyncDispose]();
  await remote?.close();
});

/** Follows a task to its end, and resumes on the next ingress when the connection breaks. */
async function follow(at: number, act: () => Promise<unknown>): Promise<void> {
  const fold = new Fold();
  const list: Frame[] = [];
  let acted: Promise<unknown> = Promise.resolve();
  let ingress = 0;
  for (let tries = 0; !fold.ended && tries < 50; tries++) {
    const last = list.at(-1);
    const taskId = (list[0]?.result as { id: string } | undefined)?.id;
    const again = last && { method: 'tasks/resubscribe', params: { id: taskId! }, lastEventId: last.id };
    try {
      for await (const frame of frames(cluster.ingresses[ingress]!.url, again ?? { text: 'count' })) {
        list.push(frame);
        fold.add(frame.event);
        if (list.length === at) acted = act();
      }
    } catch {
      // After a broken connection, the cursor of the last frame is enough to resume.
      await new Promise(resolve => setTimeout(resolve, 50));
    }
    ingress = (ingress + 1) % cluster.ingresses.length;
  }
  await acted;
  assertGenerations(list);
  assert.deepEqual(fold.violations, []);
  assert.deepEqual([fold.task?.status.state, fold.task?.metadata], ['TASK_STATE_COMPLETED', {}]);
  assert.equal(fold.textOf('partial_result'), ANSWER);
  assert.equal(fold.textOf('streaming_result'), ANSWER);
}

const restart = async (service: { kill(): Promise<void>; start(): Promise<void> }) => {
  await service.kill();
  await service.start();
};

test('the client resumes on another ingress after its ingress is killed in mid-stream [S0-1]', { timeout: 60_000 }, async () => {
  await follow(12, () => restart(cluster.ingresses[0]!));
});

test('text continues after a kill of the supervisor in mid-stream, and another one ends the task once [S0-1]', {
  timeout: 60_000,
}, async () => {
  await follow(12, () => restart(cluster.supervisors[0]!));
});

test('the next attempt replaces the text of a sub-agent killed in mid-stream [S0-1]', {
  timeout: 60_000,
}, async () => {
  await follow(12, () => restart(cluster.agents[0]!));
});

test('a task completes after a kill and restart of the only relay in mid-stream [S0-1]', { timeout: 60_000 }, async () => {
  await follow(12, () => restart(cluster.relays[0]!));
});

test('no acknowledged record is lost when nats-server is killed in mid-stream and restarted on its store', {
  timeout: 60_000,
}, async () => {
  await follow(12, async () => {
    await cluster.nats.kill();
    await cluster.nats.restart();
  });
});
