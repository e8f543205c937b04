import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { readTask } from '@hopline/log';
import { type ModelRequest, newest, type Reply, type ResponseStep } from '../support/agents/model-server.ts';
import { collect, messageParams, shapeOf, textOf } from '../support/cluster/a2a-stream.ts';
import { Cluster } from '../support/cluster/cluster.ts';
import {
  artifactsOf,
  call,
  ModelCluster,
  PLAN,
  sha,
  sourcesOf,
  stepOf,
  toolResults,
  VERSION,
  words,
} from '../support/cluster/model-cluster.ts';

let hopline: ModelCluster;

before(async () => {
  hopline = await ModelCluster.start();
});

after(() => hopline?.[Symbol.asyncDispose]());

type RecordedStep = { text: string; read: unknown[] };

async function recordedSteps(taskId: string): Promise<RecordedStep[]> {
  const newest = await hopline.log.facts.last(taskId);
  const steps: RecordedStep[] = [];
  for await (const { record } of readTask(hopline.log.facts, newest!)) {
    for (const fact of record.facts)
      if (fact.kind === 'step.recorded' && fact.payload !== null) steps.push(fact.payload as RecordedStep);
  }
  return steps;
}

test('a turn planned by a model has its seven items in order [S2-1 S2-4 S2-5 S2-6 S2-7 S2-23 S2-37 S2-40 C-24]', async () => {
  const summary = ['ArgoCD runs', ' v3.1.8', '.'];
  hopline.script([{ tokens: PLAN }, call('argocd', 'show the version')], [{ tokens: summary }]);
  const list = await collect(hopline.url, { text: 'show argocd version' });
  const shapes = list.map(shapeOf).filter((shape, index, all) => shape !== all[index - 1] && !shape.endsWith('+'));
  assert.deepEqual(shapes, [
    'task',
    'status:working',
    'artifact:execution_plan_streaming',
    'artifact:execution_plan_update',
    'artifact:tool_notification_start',
    'artifact:tool_notification_end',
    'artifact:streaming_result',
    'artifact:tool_notification_end',
    'artifact:streaming_result',
    'artifact:partial_result',
    'status:completed',
  ]);
  const seen = list.flatMap(({ event }) => {
    if (!('artifactUpdate' in event)) return [];
    const { name, metadata, parts } = event.artifactUpdate.artifact;
    const text = parts[0]?.text ?? '';
    if (name === 'streaming_result') return text === '' ? [] : [`tokens of ${metadata?.sourceAgent}`];
    return /notification/.test(name ?? '') ? [text.trim()] : [];
  });
  assert.deepEqual(
    seen.filter((item, index) => item !== seen[index - 1]),
    [
      '🔧 Supervisor: Calling Agent Argocd...',
      '🔧 Argocd: Calling tool: Version_Service__Version',
      '✅ Argocd: Tool Version_Service__Version completed',
      'tokens of argocd',
      '✅ Supervisor: Argocd completed',
      'tokens of supervisor',
    ],
  );
  assert.equal(hopline.fold(list).textOf('execution_plan_update'), PLAN.join('').trimEnd());
  assert.deepEqual(sourcesOf(list), { argocd: VERSION.join(''), supervisor: summary.join('') });
  assert.equal(textOf(list, 'partial_result'), VERSION.join('') + summary.join(''));
  for (const { append, artifact } of artifactsOf(list, 'streaming_result').slice(0, 1)) {
    assert.deepEqual([append, artifact.description], [false, 'Streaming result from Platform Engineer']);
  }
  const open: string[] = [];
  for (const { event } of list) {
    if (!('artifactUpdate' in event)) continue;
    const { name, metadata } = event.artifactUpdate.artifact;
    if (name === 'tool_notification_start') open.push(String(metadata?.toolCallId));
    if (name === 'tool_notification_end') assert.equal(open.pop(), metadata?.toolCallId);
  }
  assert.deepEqual(open, []);
  const forwarded = list.filter(
    ({ event }) => 'artifactUpdate' in event && event.artifactUpdate.artifact.metadata?.sourceAgent === 'argocd',
  );
  assert.ok(
    forwarded.length >= 3 &&
      forwarded.every(({ event }) => 'artifactUpdate' in event && event.artifactUpdate.artifact.metadata?.toolCallId),
  );
});

test('text that policy does not forward reaches the model, but no client [S2-9 C-5]', async () => {
  hopline.script([call('quiet', 'go'), call('argocd', 'show')], request => [
    { text: `It has ${toolResults(request)[0]?.length} characters.` },
  ]);
  const list = await collect(hopline.url, { text: 'try' });
  const result = '[the user has not seen this answer]\nbetween us ✅';
  assert.deepEqual(toolResults(hopline.requests[1]!), [result, VERSION.join('')]);
  assert.deepEqual(sourcesOf(list), { argocd: VERSION.join(''), supervisor: `It has ${result.length} characters.` });
  assert.ok(!JSON.stringify(list.map(frame => frame.result)).includes('between'));
  // With a silent model, or without a model, the client still gets an answer: the text once, at the end.
  hopline.script([call('quiet', 'go')], [{ call: '_finish', args: {} }]);
  const params = messageParams('try', { metadata: { agent: 'quiet' } });
  for (const request of [{ text: 'try' }, { params }]) {
    const silent = await collect(hopline.url, request);
    assert.deepEqual([sourcesOf(silent), textOf(silent, 'partial_result')], [{}, 'between us ✅']);
  }
});

test('each event in the log has its source, and all except internal records are shown under their names [S2-12 S2-22 S2-33]', async () => {
  hopline.script([{ tokens: PLAN }, call('argocd', 'show the version')], [{ text: 'So it is.' }]);
  const list = await collect(hopline.url, { text: 'show argocd version' });
  const [taskId] = hopline.fold(list).taskIds;
  const newest = await hopline.log.facts.last(taskId!);
  const visible: unknown[] = [];
  const names: Record<string, Set<string | undefined>> = {};
  for await (const { record } of readTask(hopline.log.facts, newest!)) {
    for (const fact of record.facts) {
      if ('event' in fact) visible.push(fact.event);
      if (fact.kind !== 'artifact.updated') continue;
      assert.ok(fact.lane !== '' && fact.attempt >= 1);
      names[fact.producer] = (names[fact.producer] ?? new Set()).add(fact.event.artifactUpdate.artifact.name);
    }
  }
  assert.deepEqual(
    list.map(({ event }) => event),
    visible,
  );
  // The remote agent's `current_result` is not among them.
  assert.deepEqual(Object.fromEntries(Object.entries(names).map(([producer, of]) => [producer, [...of].sort()])), {
    supervisor: [
      'execution_plan_streaming',
      'execution_plan_update',
      'partial_result',
      'streaming_result',
      'tool_notification_end',
      'tool_notification_start',
    ],
    'call-1-1-1': ['streaming_result', 'tool_notification_end', 'tool_notification_start'],
  });
  for await (const { record } of hopline.log.inputs.read(taskId!)) {
    if (record.from === 'client' || record.from === 'relay') continue;
    assert.ok(record.from.id !== '' && record.from.turn === 1 && record.from.attempt >= 1 && record.n >= 1);
  }
});

test('a step that fails in mid-stream and is requested again has the result of a step that did not fail [S2-14]', async () => {
  const step: ResponseStep[] = [{ tokens: PLAN }, { text: 'I ask. ' }, call('argocd', 'show')];
  const run = async (...first: Reply[]) => {
    let tries = 0;
    hopline.script(() => first[tries++] ?? step, [{ text: 'So.' }]);
    const list = await collect(hopline.url, { text: 'show argocd version' });
    const folded = hopline.fold(list);
    const names = [
      'execution_plan_update',
      'streaming_result',
      'tool_notification_start',
      'tool_notification_end',
      'partial_result',
    ];
    return { tries, state: shapeOf(list.at(-1)!), texts: names.map(name => folded.textOf(name)) };
  };
  const whole = await run();
  const cut = await run([{ tokens: ['⟦half', ' a plan⟧', 'I sh'] }, { pause: 100 }, { cut: true }], { status: 503 });
  assert.deepEqual({ ...cut, tries: 1 }, { ...whole, tries: 1 });
  assert.deepEqual([whole.tries, cut.tries], [1, 3]);
});

test('the answer is delivered once; the model gets the same complete text once, and adds nothing [S2-2 S2-11 S2-34]', async () => {
  hopline.script([{ tokens: PLAN }, call('argocd', 'show the version')], [{ call: '_finish', args: {} }]);
  const list = await collect(hopline.url, { text: 'show argocd version' });
  assert.equal(shapeOf(list.at(-1)!), 'status:completed');
  assert.deepEqual(sourcesOf(list), { argocd: VERSION.join('') });
  assert.equal(textOf(list, 'partial_result'), VERSION.join(''));
  assert.equal(hopline.requests.length, 2);
  assert.deepEqual(toolResults(hopline.requests[1]!), [VERSION.join('')]);
  const steps = await recordedSteps([...hopline.fold(list).taskIds][0]!);
  const read = steps.flatMap(step => step.read);
  assert.deepEqual(read, [{ call: 'call-1-1-1', sha256: sha(VERSION.join('')), units: VERSION.join('').length }]);
  assert.equal(hopline.agents.argocd.requests.at(-1)?.text, 'show the version');
  assert.deepEqual(
    hopline.requests[0]!.tools.map(tool => tool.function.name),
    ['argocd', 'github', 'jira', 'quiet'],
  );
});

test('three agents that stream in parallel under one parent make three byte-identical texts', async () => {
  hopline.script([call('argocd', 'slow'), call('github', 'go'), call('jira', 'go')], request => [
    { text: toolResults(request).map(sha).join(' ') },
  ]);
  const list = await collect(hopline.url, { text: 'all three' });
  const { supervisor, ...texts } = sourcesOf(list);
  const expected = { argocd: words('argocd').join(''), github: words('github').join(''), jira: words('jira').join('') };
  assert.deepEqual(texts, expected);
  assert.equal(supervisor, [expected.argocd, expected.github, expected.jira].map(sha).join(' '));
  // Their streams overlapped, each between its own start and end (C-28).
  const order = artifactsOf(list, 'streaming_result').map(({ artifact }) => artifact.metadata?.sourceAgent);
  assert.ok(order.indexOf('github') < order.lastIndexOf('argocd') && order.indexOf('argocd') < order.lastIndexOf('github'));
  assert.equal(textOf(list, 'execution_plan_update'), '⟦**🎯 Execution Plan**\n1. Argocd\n2. Github\n3. Jira\n⟧');
  hopline.fold(list);
});

test("an agent's question becomes the task's, its answer goes to the agent, and the model continues with both", {
  timeout: 120_000,
}, async () => {
  hopline.script([{ text: 'I ask. ' }, call('argocd', 'which')], request => [{ text: `Read: ${newest(request, 'tool')}` }]);
  const first = await collect(hopline.url, { text: 'version?' });
  const last = first.at(-1)!.result as {
    taskId: string;
    contextId: string;
    status: { state: string; message: { parts: { text: string }[] } };
  };
  assert.deepEqual([last.status.state, last.status.message.parts[0]?.text], ['input-required', 'Which cluster?']);
  assert.equal(hopline.requests.length, 1);
  const { taskId, contextId } = last;
  const params = messageParams('blue', { taskId, contextId });
  const second = await collect(hopline.url, { params });
  assert.equal(shapeOf(second.at(-1)!), 'status:completed');
  assert.equal(hopline.agents.argocd.requests.at(-1)?.text, 'blue');
  assert.deepEqual(hopline.requests.map(stepOf), [1, 2]);
  const read = 'Let me see. \n[the agent asked: Which cluster?]\n[the user answered: blue]\nOn blue: v3';
  assert.equal(newest(hopline.requests[1]!, 'tool'), read);
  assert.equal(textOf(second, 'partial_result'), `On blue: v3Read: ${read}`);
});

test('the model decides about a failed agent; when it stays silent, the task fails with the reason', async () => {
  hopline.script([call('argocd', 'broken'), call('telepathy', 'x')], [{ text: 'It is out of order.' }]);
  const answered = await collect(hopline.url, { text: 'try' });
  const final = answered.at(-1)!.result as { status: { state: string }; metadata: { failedAgents: { agent: string }[] } };
  assert.deepEqual([final.status.state, final.metadata.failedAgents[0]?.agent], ['completed', 'argocd']);
  const [result, invented] = toolResults(hopline.requests[1]!);
  assert.match(result!, /^so far\n(out of order\n)?\[the agent failed: /);
  assert.equal(invented, 'No agent has that name.');
  hopline.script([call('argocd', 'broken')], [{ call: '_finish', args: {} }]);
  const silent = await collect(hopline.url, { text: 'try' });
  assert.equal(shapeOf(silent.at(-1)!), 'status:failed');
});

test('metadata.agent selects the agent without a model request', async () => {
  hopline.script();
  const list = await collect(hopline.url, { params: messageParams('show version', { metadata: { agent: 'argocd' } }) });
  assert.equal(textOf(list, 'partial_result'), VERSION.join(''));
  assert.equal(hopline.requests.length, 0);
});

test('the summary is optional: the setting is the default, metadata.summary overrides it', async () => {
  const systemOf = (request: ModelRequest | undefined) => request?.messages.find(({ role }) => role === 'system')?.content ?? '';
  hopline.script([{ text: 'hi' }]);
  await collect(hopline.url, { text: 'hello' });
  await collect(hopline.url, { params: messageParams('hello', { metadata: { summary: true } }) });
  assert.match(systemOf(hopline.requests[0]), /Do not repeat/);
  assert.match(systemOf(hopline.requests[1]), /finish with a short summary/);
});

test('inputs and facts of all tasks above balance, steps included [S2-32 S2-13]', () => hopline.assertConserved());

const { OPENAI_BASE_URL, OPENAI_API_KEY = '', OPENAI_MODEL = 'gpt-5-mini' } = process.env;
const absent = OPENAI_BASE_URL === undefined && 'OPENAI_BASE_URL is not set';
test('a turn planned by a real model calls the agent once and shows its answer', { skip: absent, timeout: 300_000 }, async t => {
  const { agents } = hopline;
  const real = await Cluster.start({
    agents: [{ name: 'argocd', adapter: 'a2a', url: agents.argocd.url, description: 'Returns the version of ArgoCD.' }],
    env: {
      HOPLINE_PLANNER: 'model',
      HOPLINE_MODEL: OPENAI_MODEL,
      OPENAI_BASE_URL: OPENAI_BASE_URL!,
      ...(OPENAI_API_KEY !== '' && { OPENAI_API_KEY }),
    },
  });
  t.after(() => real[Symbol.asyncDispose]());
  const list = await collect(real.url, { text: 'Which version of ArgoCD runs? Ask the argocd agent once.' });
  assert.equal(shapeOf(list.at(-1)!), 'status:completed');
  assert.equal(sourcesOf(list).argocd, VERSION.join(''));
  assert.match(textOf(list, 'execution_plan_update'), /^⟦[^⟦⟧]+⟧$/);
  assert.equal(textOf(list, 'partial_result').split(VERSION.join('')).length, 2);
});
