import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { type Client, createClient, NoAnswerError } from '@hopline/client';
import { collect } from '../../kit/collect.ts';
import { type RemoteAgent, startRemoteAgent } from '../../support/agents/remote-agent.ts';
import { Cluster } from '../../support/cluster/cluster.ts';

const TOKENS = Array.from({ length: 100 }, (_, index) => `${index} 🎯\n`);
const ANSWER = TOKENS.join('');

let remote: RemoteAgent;
const clusters = new Map<string, Cluster>();

before(async () => {
  remote = await startRemoteAgent({
    dialect: '0.3',
    script: async function* ({ text, turn }) {
      if (text.includes('fail')) return yield { fail: true, text: 'no such city' };
      if (text.includes('ask back') && turn === 1) return yield { inputRequired: 'Which one?' };
      for (const token of TOKENS) {
        yield { token };
        yield { pause: 10 };
      }
      yield { complete: true };
    },
  });
  clusters.set('caipe', await Cluster.shared({ agents: [{ name: 'watched', adapter: 'a2a', url: remote.url }] }));
  // The agent above serves this profile, too.
  clusters.set('transparent', await Cluster.shared({ profile: 'transparent', agents: [] }));
});

after(async () => {
  for (const cluster of clusters.values()) await cluster[Symbol.asyncDispose]();
  await remote?.close();
});

for (const profile of ['caipe', 'transparent']) {
  const clientOf = (): Client => createClient({ url: clusters.get(profile)!.url });

  test(`${profile}: ask gives the answer once, over a killed ingress and a killed relay`, { timeout: 120_000 }, async () => {
    const cluster = clusters.get(profile)!;
    let killed: Promise<unknown> | undefined;
    const kill = async () => {
      const [ingress] = cluster.ingresses;
      await Promise.all([ingress!.kill('SIGKILL'), cluster.killRelays()]);
      await Promise.all([ingress!.start(), cluster.startRelays()]);
    };
    const lengths: number[] = [];
    const answer = await clientOf().ask('count', {
      onView: view => {
        lengths.push(view.answer.length);
        if (view.answer.length > 100) killed ??= kill();
      },
    });
    await killed;
    assert.ok(killed !== undefined);
    assert.equal(answer, ANSWER);
    assert.deepEqual(
      lengths,
      lengths.toSorted((a, b) => a - b),
      'text was taken back',
    );
  });

  test(`${profile}: watch follows a task from its beginning, with its question and its turns`, { timeout: 120_000 }, async () => {
    const client = clientOf();
    const asked = await client.ask('ask back').then(assert.fail, (thrown: unknown) => thrown);
    assert.ok(asked instanceof NoAnswerError, String(asked));
    assert.equal(asked.view.question?.text, 'Which one?');
    const { taskId } = asked.view;
    assert.equal(await client.ask({ taskId: taskId!, parts: [{ text: 'this one' }] }), ANSWER);
    const views = await collect(client.watch(taskId!));
    const last = views.at(-1);
    assert.deepEqual([...new Set(views.map(({ question }) => question?.text))], [undefined, 'Which one?']);
    assert.deepEqual([last?.turn, last?.answer, last?.state, last?.question], [2, ANSWER, 'TASK_STATE_COMPLETED', undefined]);
  });

  test(`${profile}: ask rejects with the reason of a failure`, { timeout: 120_000 }, async () => {
    const thrown = await clientOf()
      .ask('fail')
      .then(assert.fail, (error: unknown) => error);
    assert.ok(thrown instanceof NoAnswerError, String(thrown));
    assert.equal(thrown.view.state, 'TASK_STATE_FAILED');
  });
}
