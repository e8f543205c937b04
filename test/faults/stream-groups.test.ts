import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Fold } from '@hopline/a2a';
import { Layouts } from '@hopline/events';
import { LogNames } from '@hopline/log-jetstream';
import { jetstreamManager } from '@nats-io/jetstream';
import { connect } from '@nats-io/transport-node';
import { countingTokens, startCountingAgent } from '../support/agents/counting-agent.ts';
import { frames } from '../support/cluster/a2a-stream.ts';
import { Cluster } from '../support/cluster/cluster.ts';

const TOKENS = countingTokens(200);
const GROUPS = 4;
const LAYOUTS = Layouts.one(16, GROUPS);
/** Enough that each group has streams when the relay dies. */
const STREAMS = 24;
/** Frames of the first stream before the relay is killed. */
const KILLED_AFTER = 20;

test('with four stream groups, four relays and three ingresses, the kill of a relay loses and repeats no text', {
  timeout: 120_000,
}, async t => {
  const remote = await startCountingAgent(TOKENS, 18);
  t.after(() => remote.close());
  await using cluster = await Cluster.start({
    agents: [{ name: 'counter', adapter: 'a2a', url: remote.url }],
    relays: 4,
    ingresses: 3,
    users: true,
    env: { HOPLINE_STREAM_GROUPS: `${GROUPS}` },
  });
  let killed: Promise<void> | undefined;
  const watch = async (index: number): Promise<{ taskId: string; fold: Fold }> => {
    const fold = new Fold();
    let taskId = '';
    let count = 0;
    for await (const { event } of frames(cluster.ingresses[index % 3]!.url, { text: 'count' })) {
      if ('task' in event) taskId = event.task.id;
      fold.add(event);
      count += 1;
      if (index === 0 && count === KILLED_AFTER) killed = cluster.relays[0]!.kill();
    }
    return { taskId, fold };
  };
  const watched = await Promise.all(Array.from({ length: STREAMS }, (_, index) => watch(index)));
  await killed;
  for (const { fold } of watched) {
    assert.deepEqual(fold.violations, []);
    assert.equal(fold.textOf('streaming_result'), TOKENS.join(''));
  }
  const groups = new Set(watched.map(({ taskId }) => LAYOUTS.groupOf(LAYOUTS.shardOf(taskId))));
  const nc = await connect({ servers: cluster.nats.url, user: 'admin', pass: 'admin' });
  t.after(() => nc.close());
  const jsm = await jetstreamManager(nc);
  for (const [group, stream] of new LogNames('', GROUPS).factsStreams.entries()) {
    const { messages } = (await jsm.streams.info(stream)).state;
    assert.equal(messages > 0, groups.has(group), `${stream} has ${messages} records`);
  }
});
