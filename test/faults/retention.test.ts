import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { decodeSse, Fold } from '@hopline/a2a';
import { isVisible } from '@hopline/events';
import type { Log } from '@hopline/log';
import { openJetStreamLog } from '@hopline/log-jetstream';
import { until } from '../kit/until.ts';
import { countingTokens, startCountingAgent } from '../support/agents/counting-agent.ts';
import type { RemoteAgent } from '../support/agents/remote-agent.ts';
import { frames, rpc } from '../support/cluster/a2a-stream.ts';
import { Cluster } from '../support/cluster/cluster.ts';
import { keepFactsFor } from '../support/cluster/short-retention.ts';

/** About ten seconds of text, of which the log keeps two. */
const TOKENS = countingTokens(500);
const MAX_AGE_MS = 2_000;

let remote: RemoteAgent;
let cluster: Cluster;
let log: Log;

before(async () => {
  remote = await startCountingAgent(TOKENS, 20);
  cluster = await Cluster.start({ agents: [{ name: 'counter', adapter: 'a2a', url: remote.url }], ingresses: 2 });
  log = await openJetStreamLog({ servers: cluster.nats.url, name: 'test' });
});

after(async () => {
  await log?.close();
  await cluster?.[Symbol.asyncDispose]();
  await remote?.close();
});

/** Generation of a task's oldest event in the log. */
async function oldestOf(taskId: string): Promise<number> {
  for await (const { record } of log.facts.read(taskId, 1)) {
    const event = record.facts.find(isVisible);
    if (event !== undefined) return event.generation;
  }
  return 0;
}

test('a task outlives its retention: a live stream misses nothing, and a resumed one gets a gap frame [S4-44]', {
  timeout: 90_000,
}, async () => {
  const [here, there] = cluster.ingresses;
  const whole = new Fold();
  let taskId = '';
  let cursor = '';
  const begun = Promise.withResolvers<void>();
  const staying = (async () => {
    for await (const frame of frames(here!.url, { text: 'count' })) {
      whole.add(frame.event);
      taskId ||= (frame.result as { id: string }).id;
      if (cursor === '' && whole.textOf('streaming_result') !== '') {
        cursor = frame.id;
        begun.resolve();
      }
    }
  })();
  await begun.promise;
  // The retention is not shortened earlier, because the agent may begin late on a loaded machine.
  await keepFactsFor(cluster.nats.url, MAX_AGE_MS);
  const seen = Number(cursor.split('.')[0]);
  await until(async () => (await oldestOf(taskId)) > seen + 1);

  const request = { method: 'tasks/resubscribe', params: { id: taskId }, lastEventId: cursor };
  const events: { id: string | undefined; event: string | undefined; data: string }[] = [];
  for await (const { id, event, data } of decodeSse((await rpc(there!.url, request)).body!)) events.push({ id, event, data });
  const [gap, snapshot, ...rest] = events;
  assert.equal(gap?.event, 'gap');
  const { missing } = JSON.parse(gap!.data) as { missing: { from: number; to: number } };
  assert.equal(missing.from, seen + 1);
  assert.ok(missing.to >= missing.from);
  const { result } = JSON.parse(snapshot!.data) as { result: { kind: string; id: string; status: { state: string } } };
  assert.deepEqual([result.kind, result.id, result.status.state], ['task', taskId, 'working']);
  const generations = [snapshot!, ...rest].map(({ id }) => Number(id!.split('.')[0]));
  assert.ok(generations[0]! >= missing.to, 'the snapshot covers the gap');
  assert.deepEqual(
    generations,
    generations.map((_generation, index) => generations[0]! + index),
  );
  assert.equal(JSON.parse(rest.at(-1)!.data).result.status.state, 'completed');

  await staying;
  assert.deepEqual(whole.violations, []);
  assert.equal(whole.task?.status.state, 'TASK_STATE_COMPLETED');
  for (const name of ['streaming_result', 'partial_result']) assert.equal(whole.textOf(name), TOKENS.join(''));
});

test('a task removed by retention is not found, with a reason [S4-44]', { timeout: 120_000 }, async () => {
  let taskId = '';
  for await (const { result } of frames(cluster.url, { text: 'count' })) {
    taskId ||= (result as { id: string }).id;
    break;
  }
  assert.ok(taskId !== '');
  await rpc(cluster.url, { method: 'tasks/cancel', params: { id: taskId } });
  await until(async () => (await log.facts.last(taskId)) === undefined);
  for (const method of ['tasks/get', 'tasks/resubscribe']) {
    const response = await rpc(cluster.ingresses[1]!.url, { method, params: { id: taskId } });
    assert.equal(((await response.json()) as { error: { code: number } }).error.code, -32001, method);
  }
});
