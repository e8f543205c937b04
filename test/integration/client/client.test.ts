import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { A2AError, Fold } from '@hopline/a2a';
import { BEGINNING, type Client, createClient, type Notice, type StreamItem } from '@hopline/client';
import { type RemoteAgent, startRemoteAgent } from '../../support/agents/remote-agent.ts';
import { Cluster } from '../../support/cluster/cluster.ts';

const TOKENS = Array.from({ length: 120 }, (_, index) => `${index} 🎯\n`);
const ANSWER = TOKENS.join('');

let remote: RemoteAgent;
let cluster: Cluster;
let client: Client;

before(async () => {
  remote = await startRemoteAgent({
    dialect: '0.3',
    script: async function* ({ text, turn }) {
      if (text.includes('ask back') && turn === 1) return yield { inputRequired: 'Which one?' };
      for (const token of TOKENS) {
        yield { token };
        yield { pause: text.includes('quick') ? 1 : 15 };
      }
      yield { complete: true };
    },
  });
  cluster = await Cluster.shared({ agents: [{ name: 'numbers', adapter: 'a2a', url: remote.url }] });
  client = createClient({ url: cluster.url });
});

after(async () => {
  await cluster?.[Symbol.asyncDispose]();
  await remote?.close();
});

/** Reads to the end, and acts once after a number of items. */
async function read(items: AsyncIterable<StreamItem>, at = 0, act: () => Promise<unknown> = async () => {}) {
  const list: StreamItem[] = [];
  let acted: Promise<unknown> | undefined;
  for await (const item of items) {
    list.push(item);
    if (list.length === at) acted = act();
  }
  await acted;
  return list;
}

const restart = async (signal: NodeJS.Signals) => {
  const [ingress] = cluster.ingresses;
  await ingress!.kill(signal);
  await ingress!.start();
};

/** Asserts each event once and in order, with the complete answer. */
function assertWhole(list: readonly StreamItem[]): Fold {
  const fold = new Fold();
  const generations = list.map(item => {
    assert.ok('event' in item, 'a gap');
    fold.add(item.event);
    return Number(item.cursor?.split('.')[0]);
  });
  assert.deepEqual(
    generations,
    generations.map((_generation, index) => index + 1),
  );
  assert.deepEqual(fold.violations, []);
  assert.equal(fold.task?.status.state, 'TASK_STATE_COMPLETED');
  for (const name of ['streaming_result', 'partial_result']) assert.equal(fold.textOf(name), ANSWER);
  return fold;
}

test('the client continues automatically after the ingress is killed mid-stream, without lost or repeated events', {
  timeout: 120_000,
}, async () => {
  const notices: Notice[] = [];
  const stream = client.stream('count', { onNotice: notice => notices.push(notice) });
  assertWhole(await read(stream, 10, () => restart('SIGKILL')));
  const errors = notices.flatMap(notice => (notice.kind === 'retry' ? [notice.error.code] : []));
  assert.deepEqual([...new Set(errors)], ['UNAVAILABLE']);
});

test('the client reconnects after the delay that a draining ingress sent', { timeout: 120_000 }, async () => {
  const notices: Notice[] = [];
  const stream = client.stream('count', { onNotice: notice => notices.push(notice) });
  assertWhole(await read(stream, 10, () => restart('SIGTERM')));
  const first = notices.find(({ kind }) => kind === 'retry');
  assert.ok(first?.kind === 'retry' && /shutting down/.test(first.error.message) && first.waitMs >= 500);
});

test('a subscription continues after a restart; for an ended task it returns all events, or those after a cursor', {
  timeout: 120_000,
}, async () => {
  const { task } = (await client.send('count', { blocking: false })) as { task: { id: string } };
  const list = await read(client.subscribe(task.id, { cursor: BEGINNING }), 10, () => restart('SIGKILL'));
  const fold = assertWhole(list);
  assert.equal(fold.task?.id, task.id);
  assert.deepEqual(await read(client.subscribe(task.id, { cursor: BEGINNING })), list);
  const cursors = list.map(item => ('cursor' in item ? item.cursor! : ''));
  for (const at of [0, 7, list.length - 1])
    assert.deepEqual(await read(client.subscribe(task.id, { cursor: cursors[at]! })), list.slice(at + 1));
});

test('a first request with a lost response is repeated, and its task is started once', { timeout: 120_000 }, async () => {
  const asked = remote.requests.length;
  let lost = 0;
  const losing = createClient({
    url: cluster.url,
    retry: { baseMs: 1 },
    fetch: async (input, init) => {
      const response = await fetch(input, init);
      if (lost === 2) return response;
      lost += 1;
      await response.body?.cancel();
      throw new TypeError('the answer was lost');
    },
  });
  assertWhole(await read(losing.stream('quick count')));
  assert.equal(lost, 2);
  assert.equal(remote.requests.length, asked + 1);
});

test('both dialects return the same task in the same form', { timeout: 120_000 }, async () => {
  const old = createClient({ url: cluster.url, dialect: '0.3' });
  const list = await read(old.stream('quick count'));
  const { task } = assertWhole(list);
  assert.deepEqual(await read(client.subscribe(task!.id, { cursor: BEGINNING })), list);
  assert.deepEqual(await old.get(task!.id), await client.get(task!.id));
});

test('cancel stops the agent and ends all streams of the task; a second cancel is a typed error', {
  timeout: 120_000,
}, async () => {
  let canceled: Promise<unknown> | undefined;
  let taskId = '';
  let last: StreamItem | undefined;
  for await (const item of client.stream('count')) {
    if ('event' in item && 'task' in item.event) taskId = item.event.task.id;
    if ('event' in item && 'artifactUpdate' in item.event) canceled ??= client.cancel(taskId);
    last = item;
  }
  assert.ok(last !== undefined && 'event' in last && 'statusUpdate' in last.event);
  assert.equal(last.event.statusUpdate.status.state, 'TASK_STATE_CANCELED');
  assert.equal(((await canceled) as { status: { state: string } }).status.state, 'TASK_STATE_CANCELED');
  const code = (expected: string) => (thrown: unknown) => thrown instanceof A2AError && thrown.code === expected;
  await assert.rejects(client.cancel(taskId), code('TASK_NOT_CANCELABLE'));
  await assert.rejects(client.get('no-such-task'), code('TASK_NOT_FOUND'));
  await assert.rejects(read(client.subscribe(taskId)), code('UNSUPPORTED_OPERATION'));
  await assert.rejects(read(client.subscribe(taskId, { cursor: 'nonsense' })), code('INVALID_PARAMS'));
});

test('a stream ends with the question of an agent, and the answer continues the same task', { timeout: 120_000 }, async () => {
  const asked = await read(client.stream('ask back, quick'));
  const fold = new Fold();
  for (const item of asked) if ('event' in item) fold.add(item.event);
  assert.equal(fold.task?.status.state, 'TASK_STATE_INPUT_REQUIRED');
  const taskId = fold.task!.id;
  const rest = await read(client.stream({ parts: [{ text: 'this one, quick' }], taskId }));
  fold.resume();
  for (const item of rest) if ('event' in item) fold.add(item.event);
  assert.deepEqual(fold.violations, []);
  assert.deepEqual([fold.task?.id, fold.task?.status.state], [taskId, 'TASK_STATE_COMPLETED']);
  assert.equal(fold.textOf('streaming_result'), ANSWER);
});

test('the card names the agents of the cluster', async () => {
  const { agent } = await client.card();
  assert.equal(agent.dialect, '1.0');
  assert.ok(agent.skills.length > 0);
});
