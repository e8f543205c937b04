import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Fold } from '@hopline/a2a';
import { openJetStreamLog } from '@hopline/log-jetstream';
import { until } from '../kit/until.ts';
import { countingTokens } from '../support/agents/counting-agent.ts';
import { startRemoteAgent } from '../support/agents/remote-agent.ts';
import { frames, rpc } from '../support/cluster/a2a-stream.ts';
import { Cluster } from '../support/cluster/cluster.ts';

const TOKENS = countingTokens(60);
/** Tasks that are open when the layout begins. */
const OPEN = 8;
const NEW = 12;
/** The tests add the layout, so that it begins sooner than one of a relay. */
const TIMES = { pollMs: 50, aheadMs: 5_000 };

test('streams that are open while a layout is added, NATS restarts and the layout begins lose and repeat no text', {
  timeout: 180_000,
}, async t => {
  const layoutBegan = Promise.withResolvers<void>();
  const remote = await startRemoteAgent({
    dialect: '0.3',
    script: async function* () {
      for (const [at, token] of TOKENS.entries()) {
        if (at === TOKENS.length / 2) await layoutBegan.promise;
        yield { token };
        yield { pause: 5 };
      }
      yield { complete: true };
    },
  });
  t.after(() => remote.close());
  await using cluster = await Cluster.start({
    agents: [{ name: 'counter', adapter: 'a2a', url: remote.url }],
    relays: 2,
    ingresses: 2,
    env: { HOPLINE_SHARDS: '4' },
  });
  const half = TOKENS.slice(0, TOKENS.length / 2).join('');
  let halfway = 0;
  const watch = async (index: number): Promise<{ taskId: string; fold: Fold }> => {
    const fold = new Fold();
    let taskId = '';
    let isHalfway = false;
    for await (const { event } of frames(cluster.ingresses[index % 2]!.url, { text: 'count' })) {
      if ('task' in event) taskId = event.task.id;
      fold.add(event);
      if (isHalfway || fold.textOf('streaming_result') !== half) continue;
      isHalfway = true;
      halfway += 1;
    }
    return { taskId, fold };
  };
  const open = Promise.all(Array.from({ length: OPEN }, (_, index) => watch(index)));
  await until(() => halfway === OPEN);
  const log = await openJetStreamLog({
    servers: cluster.nats.url,
    name: 'adder',
    layoutTimes: TIMES,
    addsLayouts: { wanted: [{ shards: 8, groups: 2 }], isAdder: () => true },
  });
  t.after(() => log.close());
  await until(() => log.layouts.list.length === 2);
  // Services read the layouts after a reconnect.
  await cluster.nats.restart();
  await until(() => cluster.services.every(service => service.output.includes('layout_added')));
  await until(() => Date.now() > log.layouts.newest.begins);
  layoutBegan.resolve();
  const added = await Promise.all(Array.from({ length: NEW }, (_, index) => watch(index)));
  const before = await open;
  for (const { fold } of [...before, ...added]) {
    assert.deepEqual(fold.violations, []);
    assert.equal(fold.textOf('streaming_result'), TOKENS.join(''));
  }
  const shardsOf = (tasks: typeof added) => tasks.map(({ taskId }) => log.layouts.shardOf(taskId));
  assert.ok(shardsOf(before).every(shard => shard < 4));
  assert.ok(shardsOf(added).every(shard => shard >= 4));
  const ids = [...before, ...added].map(({ taskId }) => taskId);
  for (const taskId of ids) assert.ok((await log.facts.last(taskId)) !== undefined);
  // Lists show the tasks of both layouts, on each ingress.
  for (const { url } of cluster.ingresses) {
    const { result } = (await (await rpc(url, { dialect: '1.0', method: 'ListTasks', params: {} })).json()) as {
      result: { tasks: { id: string }[] };
    };
    assert.deepEqual(new Set(result.tasks.map(({ id }) => id)), new Set(ids));
  }
});
