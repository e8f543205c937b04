import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { Fold } from '@hopline/a2a';
import fc from 'fast-check';
import { until } from '../kit/until.ts';
import { type RemoteAgent, startRemoteAgent } from '../support/agents/remote-agent.ts';
import { collect, type Frame, frames, rpc } from '../support/cluster/a2a-stream.ts';
import { Cluster } from '../support/cluster/cluster.ts';

const TOKENS = Array.from({ length: 120 }, (_, index) => `${index} `);

let remote: RemoteAgent;
let cluster: Cluster;

before(async () => {
  remote = await startRemoteAgent({
    dialect: '0.3',
    script: async function* ({ text }) {
      for (const token of TOKENS) {
        yield { token };
        yield { pause: 4 };
      }
      if (text.includes('endless')) yield { hang: true };
      yield { complete: true };
    },
  });
  cluster = await Cluster.shared({ agents: [{ name: 'numbers', adapter: 'a2a', url: remote.url }], balanced: true });
});

after(async () => {
  await cluster?.[Symbol.asyncDispose]();
  await remote?.close();
});

const taskOf = (frame: Frame): string => (frame.result as { id: string }).id;

/** Reads `count` frames of a stream, then disconnects. */
async function cutAfter(url: string, request: Parameters<typeof frames>[1], count: number): Promise<Frame[]> {
  const got: Frame[] = [];
  for await (const frame of frames(url, request)) {
    got.push(frame);
    if (got.length === count) break;
  }
  return got;
}

const resubscribe = (taskId: string, lastEventId: string) => ({
  method: 'tasks/resubscribe',
  params: { id: taskId },
  lastEventId,
});

const seen = (list: Frame[]) => list.map(({ id, result }) => ({ id, result }));

test('a client that resumes after any frame, on another ingress, gets each later frame once [S3-31]', {
  timeout: 120_000,
}, async () => {
  const [first, second] = cluster.ingresses;
  const whole = await collect(first!.url, { text: 'count' });
  const taskId = taskOf(whole[0]!);
  for (let index = 0; index < whole.length; index++) {
    const rest = await collect(second!.url, resubscribe(taskId, whole[index]!.id));
    assert.deepEqual(seen(rest), seen(whole.slice(index + 1)));
  }
});

test('random interruptions, resumed on either ingress, give the same fold (promise 3)', {
  timeout: 120_000,
}, async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.record({ after: fc.integer({ min: 1, max: 12 }), ingress: fc.integer({ min: 0, max: 1 }) }), {
        minLength: 1,
        maxLength: 6,
      }),
      async cuts => {
        const fold = new Fold();
        const all = await cutAfter(cluster.url, { text: 'count' }, cuts[0]!.after);
        const taskId = taskOf(all[0]!);
        for (const { after: count, ingress } of cuts.slice(1)) {
          all.push(...(await cutAfter(cluster.ingresses[ingress]!.url, resubscribe(taskId, all.at(-1)!.id), count)));
        }
        all.push(...(await collect(cluster.ingresses[1]!.url, resubscribe(taskId, all.at(-1)!.id))));
        for (const { event } of all) fold.add(event);
        assert.deepEqual(fold.violations, []);
        assert.equal(fold.textOf('streaming_result'), TOKENS.join(''));
        assert.equal(fold.textOf('partial_result'), TOKENS.join(''));
        const generations = all.map(({ id }) => Number(id.split('.')[0]));
        assert.deepEqual(
          generations,
          generations.map((_generation, index) => index + 1),
        );
      },
    ),
    { numRuns: 8 },
  );
});

test('a task completes after a client disconnect, which is not an error [S4-25 S2-35]', {
  timeout: 120_000,
}, async () => {
  const errors = () => cluster.ingresses.map(({ output }) => [...output.matchAll(/"level":(50|60)/g)].length);
  const earlier = errors();
  const [first] = await cutAfter(cluster.url, { text: 'count' }, 1);
  const taskId = taskOf(first!);
  const rest = await collect(cluster.url, resubscribe(taskId, first!.id));
  assert.equal((rest.at(-1)!.result as { status: { state: string } }).status.state, 'completed');
  const got = (await (await rpc(cluster.url, { method: 'tasks/get', params: { id: taskId } })).json()) as {
    result: { status: { state: string } };
  };
  assert.equal(got.result.status.state, 'completed');
  assert.deepEqual(errors(), earlier, 'an error was logged');
});

test('blocking false responds at once and the task continues; blocking waits for the end (S1-2) [S1-3]', {
  timeout: 120_000,
}, async () => {
  const send = async (blocking: boolean) => {
    const params = {
      message: { kind: 'message', role: 'user', messageId: `b-${blocking}`, parts: [{ kind: 'text', text: 'count' }] },
      configuration: { blocking },
    };
    return (
      (await (await rpc(cluster.url, { method: 'message/send', params })).json()) as {
        result: { id: string; status: { state: string }; artifacts?: { name: string; parts: { text: string }[] }[] };
      }
    ).result;
  };
  const early = await send(false);
  assert.notEqual(early.status.state, 'completed');
  const late = await send(true);
  assert.equal(late.status.state, 'completed');
  assert.equal(late.artifacts?.find(artifact => artifact.name === 'partial_result')?.parts[0]?.text, TOKENS.join(''));
});

test('cancel on another ingress stops the agent, and no event follows', { timeout: 120_000 }, async () => {
  const [first, second] = cluster.ingresses;
  const list: Frame[] = [];
  let canceled: Promise<Response> | undefined;
  for await (const frame of frames(first!.url, { text: 'endless' })) {
    list.push(frame);
    if ('artifactUpdate' in frame.event && frame.event.artifactUpdate.artifact.name === 'streaming_result')
      canceled ??= rpc(second!.url, { method: 'tasks/cancel', params: { id: taskOf(list[0]!) } });
  }
  const answered = (await (await canceled!).json()) as { result: { status: { state: string } } };
  assert.equal(answered.result.status.state, 'canceled');
  assert.equal((list.at(-1)!.result as { status: { state: string } }).status.state, 'canceled');
  await until(() => remote.requests.some(request => request.method === 'cancel'), 'the agent receives the cancel');
  const again = (await (await rpc(first!.url, { method: 'tasks/cancel', params: { id: taskOf(list[0]!) } })).json()) as {
    error: { code: number };
  };
  assert.equal(again.error.code, -32002);
});

test('a malformed or future cursor is rejected; an unknown task is not found', async () => {
  const [first] = await cutAfter(cluster.url, { text: 'count' }, 1);
  const taskId = taskOf(first!);
  const code = async (request: Parameters<typeof rpc>[1]) =>
    ((await (await rpc(cluster.url, request)).json()) as { error?: { code: number } }).error?.code;
  assert.equal(await code(resubscribe(taskId, 'nonsense')), -32602);
  assert.equal(await code(resubscribe(taskId, '999999.1')), -32602);
  assert.equal(await code({ method: 'tasks/resubscribe', params: { id: 'no-such-task' } }), -32001);
});
