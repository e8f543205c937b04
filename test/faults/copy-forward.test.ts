import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { Fold } from '@hopline/a2a';
import type { Log } from '@hopline/log';
import { openJetStreamLog } from '@hopline/log-jetstream';
import { until } from '../kit/until.ts';
import { countingTokens } from '../support/agents/counting-agent.ts';
import { type RemoteAgent, type Step, startRemoteAgent } from '../support/agents/remote-agent.ts';
import { collect, type Frame, frames, messageParams, rpc } from '../support/cluster/a2a-stream.ts';
import { Cluster } from '../support/cluster/cluster.ts';
import { keepFactsFor } from '../support/cluster/short-retention.ts';

/** About ten seconds of text, of which the log keeps six, because a relay on a busy machine may copy a task seconds late. */
const TOKENS = countingTokens(500);
const MAX_AGE_MS = 6_000;
const COPY_FORWARD_AFTER_MS = 700;

let remote: RemoteAgent;
let cluster: Cluster;
let log: Log;

function* play(text: string, turn: number): Generator<Step> {
  if (text === 'ask' && turn === 1) return yield { inputRequired: 'Which one?' };
  for (const token of text === 'count' ? TOKENS : ['done']) yield* [{ token }, { pause: 20 }] as Step[];
  yield { complete: true };
}

before(async () => {
  remote = await startRemoteAgent({ dialect: '0.3', script: ({ text, turn }) => play(text, turn) });
  cluster = await Cluster.start({
    agents: [{ name: 'counter', adapter: 'a2a', url: remote.url }],
    ingresses: 2,
    relays: 2,
    env: { HOPLINE_COPY_FORWARD_AFTER_MS: `${COPY_FORWARD_AFTER_MS}` },
  });
  log = await openJetStreamLog({ servers: cluster.nats.url, name: 'test' });
  await keepFactsFor(cluster.nats.url, MAX_AGE_MS);
});

after(async () => {
  await log?.close();
  await cluster?.[Symbol.asyncDispose]();
  await remote?.close();
});

/** Log sequence of a task's oldest remaining record. */
async function oldestOf(taskId: string): Promise<number> {
  for await (const { seq } of log.facts.read(taskId, 1)) return seq;
  return 0;
}

test('a task that outlives its retention is complete for a live stream, a resume from any frame, and a read (promise 3) [S4-44]', {
  timeout: 90_000,
}, async () => {
  const [here, there] = cluster.ingresses;
  const seen: Frame[] = [];
  let isGone = false;
  for await (const frame of frames(here!.url, { text: 'count' })) {
    seen.push(frame);
    isGone ||= seen.length % 20 === 0 && (await oldestOf(taskOf(seen[0]!))) > Number(seen[0]!.id.split('.')[1]);
  }
  assert.ok(isGone, 'retention removed the first record of the running task');
  const whole = new Fold();
  for (const { event } of seen) whole.add(event);
  assert.deepEqual(whole.violations, []);
  for (const name of ['streaming_result', 'partial_result']) assert.equal(whole.textOf(name), TOKENS.join(''));

  const id = taskOf(seen[0]!);
  for (const at of [0, Math.floor(seen.length / 2)]) {
    const rest = await collect(there!.url, { method: 'tasks/resubscribe', params: { id }, lastEventId: seen[at]!.id });
    assert.deepEqual(
      rest.map(({ result }) => result),
      seen.slice(at + 1).map(({ result }) => result),
    );
  }
  const { result } = (await (await rpc(there!.url, { method: 'tasks/get', params: { id } })).json()) as {
    result: { history: unknown[]; artifacts: { name: string; parts: { text: string }[] }[] };
  };
  assert.equal(result.history.length, 1);
  assert.equal(result.artifacts.find(({ name }) => name === 'partial_result')?.parts[0]?.text, TOKENS.join(''));
});

test('a task that waits for its client longer than the retention can be answered, and ends [S4-44 S3-8]', {
  timeout: 120_000,
}, async () => {
  const question = await collect(cluster.url, { text: 'ask' });
  const taskId = taskOf(question[0]!);
  const beginning = (await log.facts.last(taskId))!.seq;
  await until(async () => (await oldestOf(taskId)) > beginning);
  const answered = await collect(cluster.ingresses[1]!.url, { params: messageParams('this one', { taskId }) });
  const { status } = answered.at(-1)!.result as { status: { state: string } };
  assert.equal(status.state, 'completed');
  const { result } = (await (await rpc(cluster.url, { method: 'tasks/get', params: { id: taskId } })).json()) as {
    result: { history: { parts: { text: string }[] }[] };
  };
  assert.deepEqual(
    result.history.map(({ parts }) => parts[0]!.text),
    ['ask', 'Which one?', 'this one'],
  );
});

function taskOf({ result }: Frame): string {
  return (result as { id: string }).id;
}
