import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import fc from 'fast-check';
import { countingTokens, startCountingAgent } from '../support/agents/counting-agent.ts';
import type { RemoteAgent } from '../support/agents/remote-agent.ts';
import { assertGenerations } from '../support/assert-generations.ts';
import { type Frame, foldOf, frames } from '../support/cluster/a2a-stream.ts';
import { Cluster } from '../support/cluster/cluster.ts';

/** About five seconds of text at 50 tokens/s. */
const TOKENS = countingTokens(220);

let remote: RemoteAgent;
let cluster: Cluster;

before(async () => {
  remote = await startCountingAgent(TOKENS, 18);
  cluster = await Cluster.shared({
    replicas: 2,
    agents: [{ name: 'numbers', adapter: 'a2a', url: remote.url }],
    env: { HOPLINE_ACK_WAIT_MS: '1500' },
  });
});

after(async () => {
  await cluster?.[Symbol.asyncDispose]();
  await remote?.close();
});

type Step = { after: number; ingress: number; kill: number | undefined };

const step = fc.record({
  after: fc.integer({ min: 1, max: 25 }),
  ingress: fc.integer({ min: 0, max: 1 }),
  /** Index of the relay to kill after the frames of this step. */
  kill: fc.option(fc.integer({ min: 0, max: 1 }), { nil: undefined }),
});

/** Reads a task to its end through disconnects, on the ingress of each step, while relays are killed and restarted. */
async function readThrough(steps: Step[]): Promise<Frame[]> {
  const list: Frame[] = [];
  let dying = Promise.resolve();
  for (let index = 0; ; index++) {
    const { after: count, ingress, kill } = steps[index] ?? { after: Number.POSITIVE_INFINITY, ingress: 0, kill: undefined };
    const [first, last] = [list[0], list.at(-1)];
    const taskId = (first?.result as { id: string } | undefined)?.id;
    const again = last && { method: 'tasks/resubscribe', params: { id: taskId! }, lastEventId: last.id };
    let got = 0;
    for await (const frame of frames(cluster.ingresses[ingress]!.url, again ?? { text: 'count' })) {
      list.push(frame);
      got += 1;
      if (got === count) break;
    }
    if (got < count) {
      await dying;
      return list;
    }
    const relay = kill === undefined ? undefined : cluster.relays[kill];
    if (relay !== undefined) dying = dying.then(() => relay.kill()).then(() => relay.start());
  }
}

test('random disconnects and kills of relays give the same fold (promise 3) [S3-31]', {
  timeout: 360_000,
}, async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 6 }), async steps => {
      const list = await readThrough(steps);
      const fold = foldOf(list);
      assert.equal(fold.textOf('streaming_result'), TOKENS.join(''));
      assert.equal(fold.textOf('partial_result'), TOKENS.join(''));
      assertGenerations(list);
    }),
    { numRuns: 5, endOnFailure: true },
  );
});
