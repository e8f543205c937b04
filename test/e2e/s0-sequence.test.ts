import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { answer, type RemoteAgent, type Step, startRemoteAgent } from '../support/agents/remote-agent.ts';
import { collect, type Frame, foldOf, frames, messageParams, rpc, shapeOf, textOf } from '../support/cluster/a2a-stream.ts';
import { Cluster } from '../support/cluster/cluster.ts';

const TOKENS = ['Here', ' is', ' the', ' ', '\n', 'ha', 'ha', ' **Argo**', 'CD', ' version', ' v3.1.8+becb020', ' ✅ done'];
const ANSWER = TOKENS.join('');

let argocd: RemoteAgent;
let cluster: Cluster;
/** Resolves when the client has received the slow agent's first text, for which the agent waits. */
const firstSeen = Promise.withResolvers<void>();

async function* slowly(): AsyncGenerator<Step> {
  yield { token: 'first' };
  await firstSeen.promise;
  yield { token: ' last' };
  yield { complete: true };
}

before(async () => {
  argocd = await startRemoteAgent({
    dialect: '0.3',
    script: ({ text }) => {
      if (text.includes('fail')) return [{ token: 'so far' }, { fail: true, text: 'broken' }];
      if (text.includes('many')) return answer(Array.from({ length: 550 }, (_, index) => String(index % 10)));
      if (text.includes('slow')) return slowly();
      if (text.includes('same id'))
        return [{ token: 'once', id: 'x' }, { token: 'once', id: 'x' }, { token: 'ha' }, { token: 'ha' }, { complete: true }];
      if (text.includes('tool'))
        return [
          { notice: 'start', tool: 'version_service__version' },
          { notice: 'end', tool: 'version_service__version' },
          ...answer(TOKENS),
        ];
      if (text.includes('odd'))
        return [{ token: 'a' }, { result: { kind: 'telepathy', taskId: 'x' } }, { token: 'b' }, { complete: true }];
      return answer(TOKENS);
    },
  });
  cluster = await Cluster.start({ shards: 'product', agents: [{ name: 'argocd', adapter: 'a2a', url: argocd.url }] });
});

after(async () => {
  await cluster?.[Symbol.asyncDispose]();
  await argocd?.close();
});

const artifactsOf = (list: Frame[], name: string) =>
  list.flatMap(({ event }) =>
    'artifactUpdate' in event && event.artifactUpdate.artifact.name === name ? [event.artifactUpdate] : [],
  );

test('the request of S0 returns the sequence of S0 [S0-33 S0-2 S0-3 S0-5 S0-7 S0-8 S0-9 S0-10 S0-12 S0-14 S0-17 S0-18 S0-20 S0-32 S0-37 S0-45]', async () => {
  const body =
    '{"id":"test-1","method":"message/stream","params":{"message":{"role":"user","parts":[{"kind":"text","text":"show argocd version"}],"messageId":"msg-1"}}}';
  const response = await fetch(cluster.url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', accept: 'text/event-stream' },
    body,
  });
  assert.equal(response.status, 200);
  assert.match(response.headers.get('content-type') ?? '', /^text\/event-stream/);
  const text = await response.text();
  const list = text.split('\n\n').flatMap(block =>
    block
      .split('\n')
      .filter(line => line.startsWith('data: '))
      .map(line => JSON.parse(line.slice(6))),
  );
  assert.ok(list.every(frame => frame.id === 'test-1' && frame.jsonrpc === '2.0'));
  const results = list.map(frame => frame.result);
  assert.equal(results[0].kind, 'task');
  assert.equal(results[0].status.state, 'submitted');
  assert.equal(results.filter(result => result.kind === 'task').length, 1);
  const names = results.filter(result => result.kind === 'artifact-update').map(result => result.artifact.name);
  assert.deepEqual(
    [...new Set(names)],
    [
      'execution_plan_streaming',
      'execution_plan_update',
      'tool_notification_start',
      'streaming_result',
      'tool_notification_end',
      'partial_result',
    ],
  );
  const final = results.at(-1);
  assert.deepEqual([final.kind, final.final, final.status.state], ['status-update', true, 'completed']);
  const plan = results.filter(result => result.artifact?.name === 'execution_plan_streaming');
  assert.deepEqual([plan[0].append, plan[0].lastChunk, plan[0].artifact.parts[0].text.startsWith('⟦')], [false, false, true]);
  assert.equal(new Set(plan.map(chunk => chunk.artifact.artifactId)).size, 1);
  assert.ok(plan.every(chunk => chunk.artifact.description === 'Execution plan streaming in progress'));
  const streamed = plan.map(chunk => chunk.artifact.parts[0].text).join('');
  const update = results.find(result => result.artifact?.name === 'execution_plan_update');
  assert.equal(update.artifact.parts[0].text, streamed);
  assert.deepEqual([update.append, update.lastChunk], [false, true]);
  assert.match(streamed, /^⟦[^⟦⟧]*⟧$/);
  const start = results.find(result => result.artifact?.name === 'tool_notification_start');
  assert.deepEqual(
    [start.append, start.artifact.description, start.artifact.parts[0].text],
    [false, 'Tool call started: argocd', '🔧 Supervisor: Calling Agent Argocd...\n'],
  );
  const [first] = results.filter(result => result.artifact?.name === 'streaming_result');
  assert.deepEqual(
    [first.append, first.lastChunk, first.artifact.description],
    [false, false, 'Streaming result from Platform Engineer'],
  );
  const [partial] = results.filter(result => result.artifact?.name === 'partial_result');
  assert.deepEqual([partial.append, partial.lastChunk, partial.artifact.parts[0].text], [false, true, ANSWER]);
  assert.match(partial.artifact.description, /\(stream ended\)$/);
});

test('one answer artifact, byte for byte, with ids that never mix [S0-6 S0-16 S0-19 S0-28 S0-30 S0-31 S0-36 S0-39 S0-41 S0-47]', async () => {
  const list = await collect(cluster.url, { text: 'show argocd version' });
  const fold = foldOf(list);
  assert.equal(fold.taskIds.size, 1);
  assert.equal(fold.contextIds.size, 1);
  assert.equal(fold.textOf('streaming_result'), ANSWER);
  assert.equal(new Set(artifactsOf(list, 'streaming_result').map(update => update.artifact.artifactId)).size, 1);
  const notices = list.flatMap(({ event }) =>
    'artifactUpdate' in event && /notification/.test(event.artifactUpdate.artifact.name ?? '') ? [event.artifactUpdate] : [],
  );
  assert.equal(new Set(notices.map(notice => notice.artifact.artifactId)).size, notices.length);
  assert.ok(notices.every(notice => notice.append !== true));
});

test('history contains the message as sent with the ids of the task, and a request id may be a number [S0-4]', async () => {
  const params = messageParams('show argocd version', { metadata: { a: 1 } });
  const [first] = await collect(cluster.url, { params, rpcId: 7 });
  assert.equal(first!.rpcId, 7);
  const { id: taskId, contextId, history } = first!.result as { id: string; contextId: string; history: object[] };
  assert.deepEqual(history, [{ ...(params.message as object), taskId, contextId }]);
});

test('no id of the child reaches the client [S0-34 S1-14]', async () => {
  const list = await collect(cluster.url, { text: 'show argocd version' });
  const raw = JSON.stringify(list.map(frame => frame.result));
  assert.ok(argocd.requests.length > 0);
  for (const { taskId } of argocd.requests) assert.ok(!raw.includes(taskId));
});

test('one end notice for each start, with the same call id [S0-15 S2-7]', async () => {
  const list = await collect(cluster.url, { text: 'use a tool' });
  const calls = (name: string) => artifactsOf(list, name).map(update => update.artifact.metadata?.toolCallId);
  assert.deepEqual(calls('tool_notification_start').sort(), calls('tool_notification_end').sort());
  assert.equal(calls('tool_notification_start').length, 2);
});

test('a tool notice of the agent is a separate artifact, never part of the answer [S0-24 S2-4 S2-5 S2-6]', async () => {
  const list = await collect(cluster.url, { text: 'use a tool' });
  assert.equal(textOf(list, 'streaming_result'), ANSWER);
  const notice = artifactsOf(list, 'tool_notification_start').find(update => update.artifact.metadata?.sourceAgent === 'argocd');
  assert.equal(notice?.artifact.parts[0]?.text, '🔧 Argocd: Calling tool: Version_Service__Version\n');
  assert.equal(notice?.artifact.metadata?.tool, 'version_service__version');
});

test('equal tokens are kept; a message id delivered twice counts once [S0-22 S0-40]', async () => {
  const list = await collect(cluster.url, { text: 'same id' });
  assert.equal(textOf(list, 'streaming_result'), 'oncehaha');
});

test('a failed child fails the task with a reason, and its text is kept [S0-26]', async () => {
  const list = await collect(cluster.url, { text: 'please fail' });
  const final = list.at(-1)!.result as { status: { state: string }; final: boolean; metadata: Record<string, unknown> };
  assert.deepEqual([final.status.state, final.final], ['failed', true]);
  assert.equal(textOf(list, 'streaming_result'), 'so far');
  assert.ok(artifactsOf(list, 'tool_notification_end').some(update => update.artifact.parts[0]?.text?.startsWith('❌')));
});

test('four events of a sub-agent are handled: tokens, notices, an empty marker, a final status without a message [S0-27 S0-21 S0-25 S0-29 S0-23]', async () => {
  const list = await collect(cluster.url, { text: 'use a tool' });
  assert.ok(!JSON.stringify(list.map(frame => frame.result)).includes('current_result'));
  assert.equal(list.filter(frame => shapeOf(frame) === 'status:working').length, 1);
  assert.equal(list.filter(frame => shapeOf(frame) === 'status:completed').length, 1);
});

test('550 tokens in a burst arrive in a tenth of the frames, unchanged [S0-35 S0-11]', async () => {
  const list = await collect(cluster.url, { text: 'many' });
  assert.equal(textOf(list, 'streaming_result'), Array.from({ length: 550 }, (_, index) => index % 10).join(''));
  assert.ok(list.length * 10 <= 550, `${list.length} frames`);
});

test('the first text is sent while the agent still works [S0-38 S1-4]', { timeout: 120_000 }, async () => {
  const list: Frame[] = [];
  for await (const frame of frames(cluster.url, { text: 'slow' })) {
    list.push(frame);
    if (textOf(list, 'streaming_result') === 'first') firstSeen.resolve();
  }
  assert.equal(textOf(list, 'streaming_result'), 'first last');
});

test('an event of an unknown kind is skipped, and the stream continues [S0-42]', async () => {
  assert.equal(textOf(await collect(cluster.url, { text: 'odd' }), 'streaming_result'), 'ab');
});

test('artifact names match the interface exactly [S0-44]', async () => {
  const list = await collect(cluster.url, { text: 'use a tool' });
  const shapes = list.map(shapeOf).filter((shape, index, all) => shape !== all[index - 1] && !shape.endsWith('+'));
  assert.deepEqual(
    shapes,
    [
      'task',
      'status:working',
      'artifact:execution_plan_streaming',
      'artifact:execution_plan_update',
      'artifact:tool_notification_start',
      'artifact:tool_notification_end',
      'artifact:streaming_result',
      'artifact:tool_notification_end',
      'artifact:partial_result',
      'status:completed',
    ].flatMap(shape => (shape === 'artifact:tool_notification_start' ? [shape] : [shape])),
  );
});

test('a sub-agent answers the same request itself [S0-46]', async () => {
  const list = await collect(cluster.agents[0]!.url, { text: 'show argocd version' });
  assert.equal(shapeOf(list[0]!), 'task');
  assert.equal(textOf(list, 'response'), ANSWER);
  assert.equal(shapeOf(list.at(-1)!), 'status:completed');
});

test('a malformed message is -32602 and creates no task [S0-43]', async () => {
  const bad = [
    { message: { role: 'user', parts: [], messageId: 'x' } },
    { message: { role: 'robot', parts: [{ kind: 'text', text: 'x' }], messageId: 'x' } },
    { message: { role: 'user', parts: [{ kind: 'text' }], messageId: 'x' } },
    { message: { role: 'user', parts: [{ kind: 'text', text: 'x' }] } },
    {},
  ];
  for (const params of bad) {
    const answered = (await (await rpc(cluster.url, { params })).json()) as { id: unknown; error: { code: number } };
    assert.deepEqual([answered.id, answered.error.code], ['req-1', -32602]);
  }
});

test('a hundred concurrent requests keep their ids [S4-6]', async () => {
  const all = await Promise.all(
    Array.from({ length: 100 }, (_, index) => collect(cluster.url, { text: 'show argocd version', rpcId: `r${index}` })),
  );
  const tasks = new Set<string>();
  for (const [index, list] of all.entries()) {
    assert.ok(list.every(frame => frame.rpcId === `r${index}`));
    assert.equal(textOf(list, 'streaming_result'), ANSWER);
    tasks.add((list[0]!.result as { id: string }).id);
  }
  assert.equal(tasks.size, 100);
});
