import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { Metadata } from '@hopline/a2a';
import { type RemoteAgent, startRemoteAgent } from '../support/agents/remote-agent.ts';
import { collect, type Frame, foldOf, messageParams, textOf } from '../support/cluster/a2a-stream.ts';
import { Cluster } from '../support/cluster/cluster.ts';

const TOKENS = ['**Argo**', 'CD', ' ', '\n', 'ha', 'ha', ' ✅ done', ' 👩‍👩‍👧'];
const ANSWER = TOKENS.join('');

/** The addresses of one cluster: its ingress of profile caipe, and one of profile transparent. */
type Level = { caipe: string; transparent: string };

let remote: RemoteAgent;
const clusters: Cluster[] = [];
let bottom: Level;
let middle: Level;
let top: Level;

before(async () => {
  remote = await startRemoteAgent({
    dialect: '0.3',
    script: async function* ({ text, turn }) {
      yield { notice: 'start', tool: 'version' };
      if (text.includes('fail')) {
        yield { notice: 'failed', tool: 'version' };
        return yield { fail: true, text: 'out of order' };
      }
      if (text.includes('ask') && turn === 1) return yield { inputRequired: 'Which one?' };
      for (const token of TOKENS) yield { token };
      yield { notice: 'end', tool: 'version' };
      yield { complete: true };
    },
  });
  bottom = await startLevel([{ name: 'argocd', adapter: 'a2a', url: remote.url }]);
  middle = await startLevel([
    { name: 'lower', adapter: 'a2a', url: bottom.caipe, default: true },
    { name: 'lower-plain', adapter: 'a2a', url: bottom.transparent },
  ]);
  top = await startLevel([
    { name: 'middle', adapter: 'a2a', url: middle.caipe },
    { name: 'middle-plain', adapter: 'a2a', url: middle.transparent },
  ]);
});

after(async () => {
  await Promise.all(clusters.map(cluster => cluster[Symbol.asyncDispose]()));
  await remote?.close();
});

async function startLevel(agents: Record<string, unknown>[]): Promise<Level> {
  const cluster = await Cluster.start({ agents });
  clusters.push(cluster);
  const transparent = await cluster.addIngress('ingress-transparent', { HOPLINE_PROFILE: 'transparent' });
  return { caipe: cluster.url, transparent: transparent.url };
}

const ask = (url: string, text: string, agent: unknown) => collect(url, { params: messageParams(text, { metadata: { agent } }) });

function outcomeOf(list: readonly Frame[]) {
  const fold = foldOf(list);
  const { task } = fold;
  assert.ok(task !== undefined);
  return { state: task.status.state, reason: task.metadata?.reason, metadata: task.metadata, message: task.status.message };
}

/** The ends of calls as the client sees them: name of the tool, and what the metadata states about the end. */
function endsOf(list: readonly Frame[]): [unknown, string][] {
  return list.flatMap(({ event }): [unknown, string][] => {
    if (!('artifactUpdate' in event) || event.artifactUpdate.artifact.name !== 'tool_notification_end') return [];
    const { metadata = {}, parts } = event.artifactUpdate.artifact;
    const outcome = metadata.failed === true ? 'failed' : metadata.waiting === true ? 'waiting' : 'completed';
    assert.match(parts.map(part => part.text).join(''), new RegExp(outcome));
    return [[metadata.tool, outcome]];
  });
}

test('a path in metadata.agent names one agent at each cluster, and each consumes its own segment', {
  timeout: 120_000,
}, async () => {
  // "middle" without another name leaves the choice to that cluster, which has a default agent.
  for (const path of ['middle', 'middle/lower', 'middle/lower/argocd', 'middle-plain/lower-plain/argocd']) {
    const list = await ask(top.caipe, 'go', path);
    const { state, reason } = outcomeOf(list);
    assert.equal(state, 'TASK_STATE_COMPLETED', `${path}: ${reason}`);
    assert.equal(textOf(list, 'partial_result'), ANSWER, path);
  }
  for (const { params } of remote.requests) {
    assert.equal((params.message as { metadata?: Metadata }).metadata?.agent, undefined);
    assert.equal((params.metadata as Metadata | undefined)?.agent, undefined);
  }
});

test('a path that names no agent fails where it ends, and names the agents of that cluster', { timeout: 120_000 }, async () => {
  const cases: [unknown, RegExp, string[] | undefined][] = [
    ['none', /^the agent "none" is not available; choose one of: middle, middle-plain$/, ['middle', 'middle-plain']],
    ['middle/none', /^middle: .*/, undefined],
    ['middle//lower', /^an agent must be named by/, undefined],
    [7, /^an agent must be named by/, undefined],
  ];
  for (const url of [top.caipe, top.transparent]) {
    for (const [agent, why, agents] of cases) {
      const { state, reason, metadata } = outcomeOf(await ask(url, 'go', agent));
      assert.equal(state, 'TASK_STATE_FAILED');
      if (url === top.caipe) assert.match(String(reason), why);
      if (agents !== undefined) assert.deepEqual((metadata?.choose as Metadata | undefined)?.agents, agents);
    }
  }
  const { message } = outcomeOf(await ask(top.caipe, 'go', 'middle/none'));
  assert.match(message?.parts[0]?.text ?? '', /^the agent "none" is not available; choose one of: lower, lower-plain$/);
});

test('a call that failed two clusters below is shown as failed at every level above [S2-7]', { timeout: 120_000 }, async () => {
  const failed = ['version', 'argocd', 'lower', 'middle'].map(tool => [tool, 'failed']);
  assert.deepEqual(endsOf(await ask(bottom.caipe, 'fail', 'argocd')), failed.slice(0, 2));
  assert.deepEqual(endsOf(await ask(middle.caipe, 'fail', 'lower/argocd')), failed.slice(0, 3));
  assert.deepEqual(endsOf(await ask(top.caipe, 'fail', 'middle/lower/argocd')), failed);
});

test('a call that waits for input two clusters below is shown as waiting at every level above [S4-26]', {
  timeout: 120_000,
}, async () => {
  const waiting = ['version', 'argocd', 'lower'].map(tool => [tool, 'waiting']);
  for (const [url, path, levels] of [
    [bottom.caipe, 'argocd', 1],
    [middle.caipe, 'lower/argocd', 2],
    [top.caipe, 'middle/lower/argocd', 3],
  ] as const) {
    const list = await ask(url, 'ask', path);
    assert.equal(outcomeOf(list).state, 'TASK_STATE_INPUT_REQUIRED');
    assert.deepEqual(endsOf(list), waiting.slice(0, levels), path);
    const { taskId } = Object.values(list.at(-1)!.event)[0] as { taskId: string };
    const answered = await collect(url, { params: messageParams('this one', { taskId }) });
    assert.equal(outcomeOf(answered).state, 'TASK_STATE_COMPLETED');
    assert.equal(textOf(answered, 'streaming_result'), ANSWER);
    assert.ok(endsOf(answered).every(([, outcome]) => outcome === 'completed'));
  }
});

test('the answer contains neither the plan nor a repeated answer of a cluster below, whatever the profiles [S2-2 C-5]', {
  timeout: 240_000,
}, async () => {
  const paths: [url: Level, path: string][] = [
    [middle, 'lower/argocd'],
    [middle, 'lower-plain/argocd'],
    [top, 'middle/lower/argocd'],
    [top, 'middle/lower-plain/argocd'],
    [top, 'middle-plain/lower/argocd'],
    [top, 'middle-plain/lower-plain/argocd'],
  ];
  for (const [level, path] of paths) {
    for (const profile of ['caipe', 'transparent'] as const) {
      const list = await ask(level[profile], 'go', path);
      const label = `${profile} ${path}`;
      assert.equal(outcomeOf(list).state, 'TASK_STATE_COMPLETED', label);
      const answers = list.flatMap(({ event }) =>
        'artifactUpdate' in event && ['streaming_result', 'response'].includes(event.artifactUpdate.artifact.name ?? '')
          ? [event.artifactUpdate]
          : [],
      );
      const streamed = answers.map(({ artifact }) => artifact.parts.map(part => part.text ?? '').join(''));
      assert.equal(streamed.join(''), ANSWER, `${label}: every character once, on the wire too`);
      assert.deepEqual([...new Set(answers.map(({ artifact }) => artifact.artifactId))].length, 1, label);
      assert.equal(answers.filter(({ append }) => append !== true).length, 1, label);
    }
  }
});
