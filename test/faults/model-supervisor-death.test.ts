import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { freePort } from '@hopline/local-cluster';
import { until } from '../kit/until.ts';
import { newest, type Reply } from '../support/agents/model-server.ts';
import { collect, type Frame, frames, messageParams, rpc, shapeOf, textOf } from '../support/cluster/a2a-stream.ts';
import {
  artifactsOf,
  call,
  ModelCluster,
  PLAN,
  sourcesOf,
  stepOf,
  toolResults,
  words,
} from '../support/cluster/model-cluster.ts';
import { ServiceProcess } from '../support/cluster/service-process.ts';

let hopline: ModelCluster;

before(async () => {
  // The server redelivers to the oldest pull, and a paused process keeps its pulls. With few slots the work reaches another process
  // before its attempts are exhausted.
  // A loaded machine restarts an agent slowly.
  hopline = await ModelCluster.start({ HOPLINE_SLOTS: '2', HOPLINE_AGENT_GONE_MS: '60000' });
});

after(() => hopline?.[Symbol.asyncDispose]());

/** Follows a task to its end, and acts in mid-stream. */
async function follow(
  text: string,
  at: (list: readonly Frame[]) => boolean,
  act: () => Promise<unknown>,
  { url } = hopline,
): Promise<Frame[]> {
  const list: Frame[] = [];
  let acted: Promise<unknown> | undefined;
  for await (const frame of frames(url, { text })) {
    list.push(frame);
    if (acted === undefined && at(list)) acted = act();
  }
  assert.ok(acted !== undefined, 'the action did not run in mid-stream');
  await acted;
  return list;
}

test('a supervisor killed after its first step continues from the log, with one model request per step', {
  timeout: 120_000,
}, async () => {
  hopline.script([{ tokens: PLAN }, call('argocd', 'slow')], [{ tokens: ['The ', 'end'] }]);
  const [supervisor] = hopline.cluster.supervisors;
  const isStreaming = (list: readonly Frame[]) => artifactsOf(list, 'streaming_result').length > 0;
  const list = await follow('count', isStreaming, async () => {
    await supervisor!.kill();
    await supervisor!.start();
  });
  assert.equal(shapeOf(list.at(-1)!), 'status:completed');
  assert.deepEqual(hopline.requests.map(stepOf), [1, 2]);
  assert.deepEqual(sourcesOf(list), { argocd: words('argocd').join(''), supervisor: 'The end' });
  assert.equal(hopline.fold(list).textOf('partial_result'), `${words('argocd').join('')}The end`);
  assert.equal(
    artifactsOf(list, 'tool_notification_start').filter(({ artifact }) => artifact.metadata?.tool === 'argocd').length,
    1,
  );
});

test('the text of a supervisor killed while it streams is replaced, never repeated', {
  timeout: 120_000,
}, async () => {
  const long = words('own', 200);
  let requests = 0;
  hopline.model.reply = () => {
    requests += 1;
    return requests === 1
      ? [{ tokens: ['⟦old plan⟧', ...long.slice(0, 50)], everyMs: 10 }, { stall: true }]
      : [{ tokens: ['⟦new plan⟧', ...long] }];
  };
  const [supervisor] = hopline.cluster.supervisors;
  const list = await follow(
    'talk',
    all => artifactsOf(all, 'streaming_result').length > 0,
    async () => {
      await supervisor!.kill();
      await supervisor!.start();
    },
  );
  assert.equal(requests, 2);
  assert.deepEqual(sourcesOf(list), { supervisor: long.join('') });
  const folded = hopline.fold(list);
  assert.equal(folded.textOf('execution_plan_update'), '⟦new plan⟧');
  assert.equal(folded.textOf('partial_result'), long.join(''));
});

test('text of a supervisor resumed after another took over its turn is rejected', {
  timeout: 120_000,
}, async t => {
  const long = words('own', 100);
  let requests = 0;
  hopline.model.reply = request => {
    requests += 1;
    if (requests === 1) return [{ tokens: ['⟦old plan⟧', ...long.slice(0, 50)], everyMs: 10 }, call('argocd', 'slow')];
    return stepOf(request) === 1 ? [{ tokens: ['⟦new plan⟧', ...long] }, call('github', 'go')] : [{ call: '_finish', args: {} }];
  };
  const [paused] = hopline.cluster.supervisors;
  const { spec } = paused!;
  const other = new ServiceProcess({ ...spec, instance: 'supervisor-2' }, await freePort());
  t.after(async () => {
    paused!.resume();
    await other.kill();
  });
  const isSpeaking = (list: readonly Frame[]) => artifactsOf(list, 'streaming_result').length > 0;
  const list = await follow('talk', isSpeaking, async () => {
    paused!.pause();
    await other.start();
    // The other supervisor takes over after the ack wait; the paused one resumes in the middle of its text.
    await until(() => requests >= 2, 'the other supervisor requests an answer of the model');
    paused!.resume();
  });
  assert.equal(shapeOf(list.at(-1)!), 'status:completed');
  assert.deepEqual(sourcesOf(list), { supervisor: long.join(''), github: words('github').join('') });
  assert.equal(hopline.fold(list).textOf('execution_plan_update'), '⟦new plan⟧');
  assert.deepEqual(
    artifactsOf(list, 'tool_notification_start').map(({ artifact }) => artifact.metadata?.tool),
    ['github'],
  );
});

test('cancel ends the task and the running model request', { timeout: 120_000 }, async () => {
  hopline.model.reply = () => [{ tokens: words('own', 5) }, { stall: true }];
  const isSpeaking = (list: readonly Frame[]) => artifactsOf(list, 'streaming_result').length > 0;
  const list: Frame[] = [];
  for await (const frame of frames(hopline.url, { text: 'talk' })) {
    list.push(frame);
    const { id } = list[0]!.result as { id: string };
    if (isSpeaking(list) && hopline.model.open > 0) await rpc(hopline.url, { method: 'tasks/cancel', params: { id } });
  }
  assert.equal(shapeOf(list.at(-1)!), 'status:canceled');
  await until(() => hopline.model.open === 0, 'the request to the model ends');
  assert.deepEqual(sourcesOf(list), { supervisor: words('own', 5).join('') });
});

test('a message received during model output starts a new turn with the earlier request in its history and its own result', {
  timeout: 120_000,
}, async () => {
  hopline.model.reply = request =>
    newest(request, 'user') === 'stop' ? [{ text: 'Stopped.' }] : [{ tokens: words('own', 5) }, { stall: true }];
  hopline.requests.length = 0;
  let second: Promise<Frame[]> | undefined;
  for await (const { event } of frames(hopline.url, { text: 'talk' })) {
    if (!('artifactUpdate' in event) || second !== undefined) continue;
    const { taskId, contextId } = event.artifactUpdate;
    second = collect(hopline.url, { params: messageParams('stop', { taskId, contextId }) });
  }
  const list = await second!;
  assert.equal(shapeOf(list.at(-1)!), 'status:completed');
  assert.equal(textOf(list, 'partial_result'), 'Stopped.');
  const users = hopline.requests
    .at(-1)!
    .messages.filter(({ role }) => role === 'user')
    .map(({ content }) => content);
  assert.deepEqual(users, ['talk', 'stop']);
});

test('the text of an agent killed in mid-stream is replaced, and the model gets it once', { timeout: 120_000 }, async () => {
  hopline.script([call('argocd', 'slow')], [{ call: '_finish', args: {} }]);
  const [agent] = hopline.cluster.agents;
  const list = await follow(
    'count',
    all => artifactsOf(all, 'streaming_result').length > 0,
    async () => {
      await agent!.kill();
      await agent!.start();
    },
  );
  assert.equal(shapeOf(list.at(-1)!), 'status:completed');
  assert.equal(textOf(list, 'partial_result'), words('argocd').join(''));
  assert.deepEqual(toolResults(hopline.requests[1]!), [words('argocd').join('')]);
  hopline.fold(list);
});

test('a child that fails once is retried: the new attempt replaces its text, and its call ends once [C-5]', {
  timeout: 120_000,
}, async () => {
  hopline.script([call('jira', 'once')], [{ call: '_finish', args: {} }]);
  const list = await collect(hopline.url, { text: 'try' });
  assert.equal(shapeOf(list.at(-1)!), 'status:completed');
  assert.equal(hopline.agents.jira.requests.filter(({ text }) => text === 'once').length, 2);
  assert.ok(JSON.stringify(list.map(frame => frame.result)).includes('lost0'), "the first attempt's text was not streamed");
  assert.deepEqual(sourcesOf(list), { jira: words('kept', 10).join('') });
  assert.equal(textOf(list, 'partial_result'), words('kept', 10).join(''));
  const ends = artifactsOf(list, 'tool_notification_end').map(({ artifact }) => artifact.parts[0]?.text);
  assert.deepEqual(ends, ['✅ Supervisor: Jira completed\n']);
  assert.deepEqual(toolResults(hopline.requests[1]!), [words('kept', 10).join('')]);
  hopline.fold(list);
});

for (const [name, replies, reason, retryable] of [
  ['stalls', [[{ stall: true }]], 'the model did not start its answer in time', true],
  ['stays silent', [[]], 'the model returned no text', true],
  ['refuses', [{ status: 401 }], 'the model provider does not accept the credentials (HTTP 401)', false],
  ['never ends', Array.from({ length: 4 }, () => [call('unknown', 'x')]), 'the model did not finish within 4 steps', false],
] as const satisfies readonly (readonly [string, readonly Reply[], string, boolean])[]) {
  test(`if a model ${name}, the task fails with a reason and never hangs`, { timeout: 120_000 }, async () => {
    hopline.script(...replies);
    const list = await collect(hopline.url, { text: 'try' });
    const final = list.at(-1)!.result as { status: { state: string }; metadata: Record<string, unknown> };
    assert.deepEqual([final.status.state, final.metadata.reason, final.metadata.retryable], ['failed', reason, retryable]);
  });
}

test('the planner learns of removed and added agents within seconds, and a call to a removed agent is abandoned', {
  timeout: 120_000,
}, async t => {
  const impatient = await ModelCluster.start({ HOPLINE_AGENT_GONE_MS: '3000', HOPLINE_AGENT_WAIT_MS: '3000' });
  t.after(() => impatient[Symbol.asyncDispose]());
  const [agent] = impatient.cluster.agents;
  impatient.script([call('argocd', 'slow')], [{ text: 'It is gone.' }]);
  const list = await follow(
    'count',
    all => artifactsOf(all, 'streaming_result').length > 0,
    () => agent!.kill(),
    impatient,
  );
  assert.equal(shapeOf(list.at(-1)!), 'status:completed');
  assert.match(newest(impatient.requests[1]!, 'tool'), /\[the agent failed: the agent is gone\]$/);
  const offered = async () => {
    impatient.requests.length = 0;
    impatient.script([{ text: 'hello' }]);
    await collect(impatient.url, { text: 'who is there' });
    return impatient.requests[0]!.tools.map(tool => tool.function.name);
  };
  assert.deepEqual(await offered(), ['github', 'jira', 'quiet']);
  await agent!.start();
  const start = performance.now();
  while (!(await offered()).includes('argocd'))
    assert.ok(performance.now() - start < 30_000, 'the planner does not list the agent');
});

test('inputs and facts of all tasks above balance, steps included [S2-32 S2-13]', () => hopline.assertConserved());
