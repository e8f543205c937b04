import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { Fold, isTerminal } from '@hopline/a2a';
import { countingTokens } from '../support/agents/counting-agent.ts';
import { type RemoteAgent, startRemoteAgent } from '../support/agents/remote-agent.ts';
import { assertGenerations } from '../support/assert-generations.ts';
import { type Frame, frames, shapeOf } from '../support/cluster/a2a-stream.ts';
import { Cluster } from '../support/cluster/cluster.ts';

const TOKENS = countingTokens(150);
const ANSWER = TOKENS.join('');

/** Tokens that the remote agent sends before it waits for the death of the test. */
const TOKENS_BEFORE = 20;

let remote: RemoteAgent;
let cluster: Cluster;
let death = Promise.withResolvers<void>();

before(async () => {
  remote = await startRemoteAgent({
    dialect: '0.3',
    script: async function* () {
      for (const [index, token] of TOKENS.entries()) {
        if (index === TOKENS_BEFORE) await death.promise;
        yield { token };
        yield { pause: 15 };
      }
      yield { complete: true };
    },
  });
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

/** Follows a task to its end, and resumes on the next ingress when the connection breaks. `act` runs once, when the first text has arrived. */
async function follow(act: () => Promise<unknown>): Promise<{ list: Frame[]; ingress: number }> {
  const fold = new Fold();
  const list: Frame[] = [];
  death = Promise.withResolvers();
  let acted: Promise<unknown> | undefined;
  let ingress = 0;
  for (let tries = 0; !fold.ended && tries < 50; tries++) {
    if (tries > 0) ingress = (ingress + 1) % cluster.ingresses.length;
    const last = list.at(-1);
    const taskId = (list[0]?.result as { id: string } | undefined)?.id;
    const again = last && { method: 'tasks/resubscribe', params: { id: taskId! }, lastEventId: last.id };
    try {
      for await (const frame of frames(cluster.ingresses[ingress]!.url, again ?? { text: 'count' })) {
        list.push(frame);
        fold.add(frame.event);
        if (fold.textOf('streaming_result') !== '') acted ??= act().finally(death.resolve);
      }
    } catch {
      // After a broken connection, the cursor of the last frame is enough to resume.
      await new Promise(resolve => setTimeout(resolve, 50));
    }
  }
  assert.ok(acted !== undefined, 'the text began');
  await acted;
  assertGenerations(list);
  assert.deepEqual(fold.violations, []);
  assert.deepEqual([fold.task?.status.state, fold.task?.metadata], ['TASK_STATE_COMPLETED', {}]);
  assert.equal(fold.textOf('partial_result'), ANSWER);
  assert.equal(fold.textOf('streaming_result'), ANSWER);
  const ends = list.filter(({ event }) => 'statusUpdate' in event && isTerminal(event.statusUpdate.status.state));
  assert.equal(ends.length, 1);
  return { list, ingress };
}

/** How often the streamed text began: once, plus once for each attempt that replaced it. */
const beginningsOf = (list: readonly Frame[]) => list.filter(frame => shapeOf(frame) === 'artifact:streaming_result').length;

const restart = async (service: { kill(): Promise<void>; start(): Promise<void> }) => {
  await service.kill();
  await service.start();
};

test('the client resumes on another ingress after its ingress is killed in mid-stream [S0-1]', { timeout: 120_000 }, async () => {
  const { ingress } = await follow(() => restart(cluster.ingresses[0]!));
  assert.equal(ingress, 1);
});

test('text continues after a kill and restart of the only supervisor in mid-stream, and the task ends once [S0-1]', {
  timeout: 120_000,
}, async () => {
  const { list } = await follow(() => restart(cluster.supervisors[0]!));
  assert.equal(beginningsOf(list), 1);
});

test('the next attempt replaces the text of a sub-agent killed in mid-stream [S0-1]', {
  timeout: 120_000,
}, async () => {
  const { list } = await follow(() => restart(cluster.agents[0]!));
  assert.ok(beginningsOf(list) >= 2, 'an attempt replaced the text');
});

test('a task completes after a kill and restart of the only relay in mid-stream [S0-1]', { timeout: 120_000 }, async () => {
  await follow(() => restart(cluster.relays[0]!));
});

test('no acknowledged record is lost when nats-server is killed in mid-stream and restarted on its store', {
  timeout: 120_000,
}, async () => {
  await follow(async () => {
    await cluster.nats.kill();
    await cluster.nats.restart();
  });
});
