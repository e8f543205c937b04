import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { type RemoteAgent, startRemoteAgent } from '../support/agents/remote-agent.ts';
import { collect, type Frame, foldOf, frames, textOf } from '../support/cluster/a2a-stream.ts';
import { Cluster } from '../support/cluster/cluster.ts';

/** A custom profile from one file outside the packages, in a cluster of real processes. Relay and sub-agent need no setting for it. */

const TOKENS = Array.from({ length: 60 }, (_, index) => `${index} `);
const ANSWER = TOKENS.join('');

let remote: RemoteAgent;
let cluster: Cluster;

before(async () => {
  remote = await startRemoteAgent({
    dialect: '0.3',
    script: async function* ({ text }) {
      yield { notice: 'start', tool: 'lookup' };
      yield { notice: 'end', tool: 'lookup' };
      for (const token of TOKENS) {
        yield { token };
        yield { pause: text === 'slow' ? 20 : 1 };
      }
      yield { complete: true };
    },
  });
  const module = fileURLToPath(new URL('../support/profiles/acme.ts', import.meta.url));
  cluster = await Cluster.start({
    profile: 'acme',
    agents: [{ name: 'counter', adapter: 'a2a', url: remote.url }],
    env: { HOPLINE_PROFILE_MODULE: module, HOPLINE_ACK_WAIT_MS: '5000' },
  });
});

after(async () => {
  await cluster?.[Symbol.asyncDispose]();
  await remote?.close();
});

/** The name of each artifact, in the order of their first events. */
function artifactNames(list: readonly Frame[]): string[] {
  const names = new Map<string, string>();
  for (const { event } of list) {
    if (!('artifactUpdate' in event)) continue;
    const { artifactId, name = '' } = event.artifactUpdate.artifact;
    if (!names.has(artifactId)) names.set(artifactId, name);
  }
  return [...names.values()];
}

test('a profile of one file names every artifact of the stream', { timeout: 120_000 }, async () => {
  const list = await collect(cluster.url, { text: 'go' });
  const fold = foldOf(list);
  assert.equal(fold.task?.status.state, 'TASK_STATE_COMPLETED');
  assert.deepEqual(artifactNames(list), [
    'acme_plan',
    'acme_call',
    'acme_tool',
    'acme_tool_end',
    'acme_answer',
    'acme_call_end',
    'acme_result',
  ]);
  assert.equal(textOf(list, 'acme_answer'), ANSWER);
  assert.equal(textOf(list, 'acme_result'), ANSWER);
  const kinds = [...fold.artifacts.values()].map(({ metadata }) => metadata?.artifactKind);
  assert.deepEqual(kinds, ['plan', 'call-start', 'call-start', 'call-end', 'answer', 'call-end', 'result']);
  const described = [...fold.artifacts.values()].map(({ description }) => description);
  assert.deepEqual(described.slice(0, 3), ['Plan of Platform Engineer', 'counter begins', 'lookup begins']);
  assert.equal(described[4], 'Answer of Platform Engineer');
});

test('a supervisor that takes over ends the task in the same profile, once', { timeout: 120_000 }, async () => {
  const list: Frame[] = [];
  let restarted: Promise<unknown> | undefined;
  for await (const frame of frames(cluster.url, { text: 'slow' })) {
    list.push(frame);
    if (textOf(list, 'acme_answer') === '') continue;
    const [supervisor] = cluster.supervisors;
    restarted ??= supervisor!.kill().then(() => supervisor!.start());
  }
  await restarted;
  const fold = foldOf(list);
  assert.equal(fold.task?.status.state, 'TASK_STATE_COMPLETED');
  assert.equal(textOf(list, 'acme_result'), ANSWER);
  const names = artifactNames(list);
  for (const name of ['acme_plan', 'acme_call', 'acme_answer', 'acme_call_end', 'acme_result'])
    assert.equal(names.filter(shown => shown === name).length, 1, name);
});
