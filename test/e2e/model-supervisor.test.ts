import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { after, afterEach, before, test } from 'node:test';
import { Fold } from '@hopline/a2a';
import { auditTask, isBalanced } from '@hopline/audit';
import type { Log } from '@hopline/log';
import { openJetStreamLog } from '@hopline/log-jetstream';
import { answer, type ForeignAgent, startForeignAgent } from '../agents/foreign-agent.ts';
import { type Asked, ModelServer, newest, type Reply, type Say } from '../agents/model-server.ts';
import { collect, type Frame, frames, messageParams, shapeOf, textOf } from '../cluster/a2a-stream.ts';
import { Cluster } from '../cluster/cluster.ts';

const PLAN = ['⟦', '**🎯 Execution', ' Plan**\n', '1. Argocd: version\n', '⟧', '\n'];
const VERSION = ['ArgoCD', ' is ', '\n', 'v3.1.8', ' ✅', ' ha', ' ha'];
const words = (name: string, count = 120) => Array.from({ length: count }, (_, index) => `${name}${index} `);

let model: ModelServer;
let argocd: ForeignAgent;
let github: ForeignAgent;
let jira: ForeignAgent;
let quiet: ForeignAgent;
let cluster: Cluster;
let log: Log;
/** Tasks of all tests: their books are looked at in the end. */
const tasks = new Set<string>();
/** Deliveries of a message to the agent that fails once. */
let failures = 0;

const slowly = async function* (tokens: readonly string[], everyMs: number) {
  for (const token of tokens) {
    yield { token };
    yield { pause: everyMs };
  }
  yield { complete: true as const };
};

before(async () => {
  model = await ModelServer.start();
  argocd = await startForeignAgent({
    dialect: '0.3',
    script: ({ text, turn }) => {
      if (text.includes('slow')) return slowly(words('argocd'), 15);
      if (text.includes('which')) return [{ token: 'Let me see. ' }, { inputRequired: 'Which cluster?' }];
      if (turn > 1) return answer(['On ', text, ': v3']);
      if (text.includes('broken')) return [{ token: 'so far' }, { fail: true, text: 'out of order' }];
      return [
        { notice: 'start', tool: 'version_service__version' },
        { notice: 'end', tool: 'version_service__version' },
        ...answer(VERSION),
      ];
    },
  });
  github = await startForeignAgent({ dialect: '1.0', script: () => slowly(words('github'), 5) });
  jira = await startForeignAgent({
    dialect: '0.3',
    recoverable: false,
    script: ({ text }) => {
      if (!text.includes('once')) return slowly(words('jira'), 5);
      failures += 1;
      return failures === 1
        ? [...words('lost', 10).map(token => ({ token })), { pause: 200 }, { cut: true }]
        : answer(words('kept', 10));
    },
  });
  quiet = await startForeignAgent({ dialect: '1.0', script: answer(['between', ' us ', '✅']) });
  cluster = await Cluster.start({
    agents: [
      { name: 'argocd', adapter: 'a2a', url: argocd.url },
      { name: 'github', adapter: 'a2a', url: github.url },
      { name: 'jira', adapter: 'a2a', url: jira.url },
      { name: 'quiet', adapter: 'a2a', url: quiet.url, forwardText: false },
    ],
    env: {
      HOPLINE_PLANNER: 'model',
      HOPLINE_MODEL: 'stand-in',
      OPENAI_BASE_URL: model.url,
      HOPLINE_ACK_WAIT_MS: '1500',
      HOPLINE_AGENT_GONE_MS: '3000',
      HOPLINE_MODEL_STEPS_MAX: '4',
      HOPLINE_MODEL_FIRST_TOKEN_MS: '2000',
    },
  });
  log = await openJetStreamLog({ servers: cluster.nats.url, name: 'test' });
});

after(async () => {
  await log?.close();
  await cluster?.[Symbol.asyncDispose]();
  for (const agent of [argocd, github, jira, quiet]) await agent?.close();
  await model?.[Symbol.asyncDispose]();
});

afterEach(() => {
  model.asked.length = 0;
});

/** Which step of its conversation a request of the model asks for, 1-based. */
const stepOf = ({ messages }: Asked) => messages.filter(({ role }) => role === 'assistant').length + 1;
const call = (name: string, request: string): Say => ({ call: name, args: { request } });
/** The stand-in answers by the step it is asked for, so that a second question for one step would be seen in `asked`. */
function script(...replies: (Reply | ((asked: Asked) => Reply))[]): void {
  model.reply = asked => {
    const reply = replies[stepOf(asked) - 1] ?? [];
    return typeof reply === 'function' ? reply(asked) : reply;
  };
}

function fold(list: readonly Frame[]): Fold {
  const folded = new Fold();
  for (const { event } of list) folded.add(event);
  for (const id of folded.taskIds) tasks.add(id);
  assert.deepEqual(folded.violations, []);
  return folded;
}

type RecordedStep = { text: string; read: unknown[] };

async function recordedSteps(taskId: string): Promise<RecordedStep[]> {
  const newest = await log.facts.last(taskId);
  const steps: RecordedStep[] = [];
  for await (const { record } of log.facts.read(taskId, newest!.record.first || newest!.seq)) {
    for (const fact of record.facts)
      if (fact.kind === 'step.recorded' && fact.said !== null) steps.push(fact.said as RecordedStep);
  }
  return steps;
}

const toolResults = (asked: Asked) => asked.messages.filter(({ role }) => role === 'tool').map(({ content }) => content ?? '');
const artifactsOf = (list: readonly Frame[], name: string) =>
  list.flatMap(({ event }) =>
    'artifactUpdate' in event && event.artifactUpdate.artifact.name === name ? [event.artifactUpdate] : [],
  );
const sourcesOf = (list: readonly Frame[]) => {
  const texts: Record<string, string> = {};
  for (const { artifact, append } of artifactsOf(list, 'streaming_result')) {
    const source = String(artifact.metadata?.sourceAgent);
    const text = artifact.parts.map(part => part.text ?? '').join('');
    texts[source] = append ? (texts[source] ?? '') + text : text;
  }
  return texts;
};
const sha = (text: string) => createHash('sha256').update(text).digest('hex');

/** Follows a task to its end over broken connections, and does something at its nth frame. */
async function follow(text: string, at: (list: readonly Frame[]) => boolean, act: () => Promise<unknown>): Promise<Frame[]> {
  const list: Frame[] = [];
  let acted: Promise<unknown> | undefined;
  for await (const frame of frames(cluster.url, { text })) {
    list.push(frame);
    if (acted === undefined && at(list)) acted = act();
  }
  assert.ok(acted !== undefined, 'nothing happened in mid-stream');
  await acted;
  return list;
}

test('S2-1 S2-4 S2-5 S2-6 S2-7 S2-23 S2-37 C-24 the seven items, in their order, of a turn that a model plans', async () => {
  const summary = ['ArgoCD runs', ' v3.1.8', '.'];
  script([{ tokens: PLAN }, call('argocd', 'show the version')], [{ tokens: summary }]);
  const list = await collect(cluster.url, { text: 'show argocd version' });
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
  assert.equal(fold(list).textOf('execution_plan_update'), PLAN.join('').trimEnd());
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

test('S2-9 C-5 text that policy does not forward is read by the model, and by no client', async () => {
  script([call('quiet', 'go'), call('argocd', 'show')], asked => [
    { text: `It said ${toolResults(asked)[0]?.length} characters.` },
  ]);
  const list = await collect(cluster.url, { text: 'try' });
  const said = '[the user has not seen this answer]\nbetween us ✅';
  assert.deepEqual(toolResults(model.asked[1]!), [said, VERSION.join('')]);
  assert.deepEqual(sourcesOf(list), { argocd: VERSION.join(''), supervisor: `It said ${said.length} characters.` });
  assert.ok(!JSON.stringify(list.map(frame => frame.result)).includes('between'));
  // Without a word of the model, and without a model at all, the client is not left without an answer: it gets the text once, in the end.
  script([call('quiet', 'go')], [{ call: '_finish', args: {} }]);
  const params = messageParams('try', { metadata: { agent: 'quiet' } });
  for (const request of [{ text: 'try' }, { params }]) {
    const silent = await collect(cluster.url, request);
    assert.deepEqual([sourcesOf(silent), textOf(silent, 'partial_result')], [{}, 'between us ✅']);
  }
});

test('S2-12 S2-22 S2-33 every event in the log says whose it is, and all that is not a record of ours is shown, under its name', async () => {
  script([{ tokens: PLAN }, call('argocd', 'show the version')], [{ text: 'So it is.' }]);
  const list = await collect(cluster.url, { text: 'show argocd version' });
  const [taskId] = fold(list).taskIds;
  const newest = await log.facts.last(taskId!);
  const visible: unknown[] = [];
  const names: Record<string, Set<string | undefined>> = {};
  for await (const { record } of log.facts.read(taskId!, newest!.record.first || newest!.seq)) {
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
  // The foreign agent speaks of `current_result`; ours are these.
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
  for await (const { record } of log.inputs.read(taskId!)) {
    if (record.from === 'client') continue;
    assert.ok(record.from.id !== '' && record.from.turn === 1 && record.from.attempt >= 1 && record.n >= 1);
  }
});

test('S2-14 a step that fails in mid-stream and is asked again comes to the same as one that did not', async () => {
  const step: Say[] = [{ tokens: PLAN }, { text: 'I ask. ' }, call('argocd', 'show')];
  const run = async (...first: Reply[]) => {
    let tries = 0;
    script(() => first[tries++] ?? step, [{ text: 'So.' }]);
    const list = await collect(cluster.url, { text: 'show argocd version' });
    const folded = fold(list);
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

test('S2-2 S2-11 S2-34 the answer is delivered once; the model reads the same text, whole and once, and adds nothing', async () => {
  script([{ tokens: PLAN }, call('argocd', 'show the version')], [{ call: '_finish', args: {} }]);
  const list = await collect(cluster.url, { text: 'show argocd version' });
  assert.equal(shapeOf(list.at(-1)!), 'status:completed');
  assert.deepEqual(sourcesOf(list), { argocd: VERSION.join('') });
  assert.equal(textOf(list, 'partial_result'), VERSION.join(''));
  assert.equal(model.asked.length, 2);
  assert.deepEqual(toolResults(model.asked[1]!), [VERSION.join('')]);
  const steps = await recordedSteps([...fold(list).taskIds][0]!);
  const read = steps.flatMap(step => step.read);
  assert.deepEqual(read, [{ call: 'call-1-1-1', sha256: sha(VERSION.join('')), units: VERSION.join('').length }]);
  assert.equal(argocd.requests.at(-1)?.text, 'show the version');
  assert.deepEqual(
    model.asked[0]!.tools.map(tool => tool.function.name),
    ['argocd', 'github', 'jira', 'quiet'],
  );
});

test('three agents streaming at once under one parent: three texts, each byte-identical', async () => {
  script([call('argocd', 'slow'), call('github', 'go'), call('jira', 'go')], asked => [
    { text: toolResults(asked).map(sha).join(' ') },
  ]);
  const list = await collect(cluster.url, { text: 'all three' });
  const { supervisor, ...texts } = sourcesOf(list);
  const expected = { argocd: words('argocd').join(''), github: words('github').join(''), jira: words('jira').join('') };
  assert.deepEqual(texts, expected);
  assert.equal(supervisor, [expected.argocd, expected.github, expected.jira].map(sha).join(' '));
  // They really streamed at once, and each between its own start and end (C-28).
  const order = artifactsOf(list, 'streaming_result').map(({ artifact }) => artifact.metadata?.sourceAgent);
  assert.ok(order.indexOf('github') < order.lastIndexOf('argocd') && order.indexOf('argocd') < order.lastIndexOf('github'));
  assert.equal(textOf(list, 'execution_plan_update'), '⟦**🎯 Execution Plan**\n1. Argocd\n2. Github\n3. Jira\n⟧');
  fold(list);
});

test('the supervisor is killed after its first step: it goes on from the log, and the model is asked each step once', {
  timeout: 60_000,
}, async () => {
  script([{ tokens: PLAN }, call('argocd', 'slow')], [{ tokens: ['The ', 'end'] }]);
  const [supervisor] = cluster.supervisors;
  const isStreaming = (list: readonly Frame[]) => artifactsOf(list, 'streaming_result').length > 5;
  const list = await follow('count', isStreaming, async () => {
    await supervisor!.kill();
    await supervisor!.start();
  });
  assert.equal(shapeOf(list.at(-1)!), 'status:completed');
  assert.deepEqual(model.asked.map(stepOf), [1, 2]);
  assert.deepEqual(sourcesOf(list), { argocd: words('argocd').join(''), supervisor: 'The end' });
  assert.equal(fold(list).textOf('partial_result'), `${words('argocd').join('')}The end`);
  assert.equal(
    artifactsOf(list, 'tool_notification_start').filter(({ artifact }) => artifact.metadata?.tool === 'argocd').length,
    1,
  );
});

test('the supervisor is killed in the middle of its own words: they are replaced, never doubled', {
  timeout: 60_000,
}, async () => {
  const long = words('own', 200);
  let asked = 0;
  model.reply = () => {
    asked += 1;
    return asked === 1
      ? [{ tokens: ['⟦old plan⟧', ...long.slice(0, 50)], everyMs: 10 }, { stall: true }]
      : [{ tokens: ['⟦new plan⟧', ...long] }];
  };
  const [supervisor] = cluster.supervisors;
  const list = await follow(
    'talk',
    all => artifactsOf(all, 'streaming_result').length > 3,
    async () => {
      await supervisor!.kill();
      await supervisor!.start();
    },
  );
  assert.equal(asked, 2);
  assert.deepEqual(sourcesOf(list), { supervisor: long.join('') });
  const folded = fold(list);
  assert.equal(folded.textOf('execution_plan_update'), '⟦new plan⟧');
  assert.equal(folded.textOf('partial_result'), long.join(''));
});

test('an agent process is killed in mid-stream: its text is replaced, the model reads it once', { timeout: 60_000 }, async () => {
  script([call('argocd', 'slow')], [{ call: '_finish', args: {} }]);
  const [agent] = cluster.agents;
  const list = await follow(
    'count',
    all => artifactsOf(all, 'streaming_result').length > 5,
    async () => {
      await agent!.kill();
      await agent!.start();
    },
  );
  assert.equal(shapeOf(list.at(-1)!), 'status:completed');
  assert.equal(textOf(list, 'partial_result'), words('argocd').join(''));
  assert.deepEqual(toolResults(model.asked[1]!), [words('argocd').join('')]);
  fold(list);
});

test('C-5 a child that fails once begins again: a new attempt replaces its text, and its call ends once', {
  timeout: 60_000,
}, async () => {
  script([call('jira', 'once')], [{ call: '_finish', args: {} }]);
  const list = await collect(cluster.url, { text: 'try' });
  assert.equal(shapeOf(list.at(-1)!), 'status:completed');
  assert.equal(failures, 2);
  assert.ok(JSON.stringify(list.map(frame => frame.result)).includes('lost0'), 'the first attempt was not seen');
  assert.deepEqual(sourcesOf(list), { jira: words('kept', 10).join('') });
  assert.equal(textOf(list, 'partial_result'), words('kept', 10).join(''));
  const ends = artifactsOf(list, 'tool_notification_end').map(({ artifact }) => artifact.parts[0]?.text);
  assert.deepEqual(ends, ['✅ Supervisor: Jira completed\n']);
  assert.deepEqual(toolResults(model.asked[1]!), [words('kept', 10).join('')]);
  fold(list);
});

test("an agent's question is the task's, and the answer goes back to it; then the model goes on with both", {
  timeout: 60_000,
}, async () => {
  script([{ text: 'I ask. ' }, call('argocd', 'which')], asked => [{ text: `Read: ${newest(asked, 'tool')}` }]);
  const first = await collect(cluster.url, { text: 'version?' });
  const last = first.at(-1)!.result as {
    taskId: string;
    contextId: string;
    status: { state: string; message: { parts: { text: string }[] } };
  };
  assert.deepEqual([last.status.state, last.status.message.parts[0]?.text], ['input-required', 'Which cluster?']);
  assert.equal(model.asked.length, 1);
  const { taskId, contextId } = last;
  const params = messageParams('blue', { taskId, contextId });
  const second = await collect(cluster.url, { params });
  assert.equal(shapeOf(second.at(-1)!), 'status:completed');
  assert.equal(argocd.requests.at(-1)?.text, 'blue');
  assert.deepEqual(model.asked.map(stepOf), [1, 2]);
  const read = 'Let me see. \n[it asked: Which cluster?]\n[the user answered: blue]\nOn blue: v3';
  assert.equal(newest(model.asked[1]!, 'tool'), read);
  assert.equal(textOf(second, 'partial_result'), `On blue: v3Read: ${read}`);
});

test('a failed agent is what the model makes of it; when it says nothing, the task has failed with the reason', async () => {
  script([call('argocd', 'broken'), call('telepathy', 'x')], [{ text: 'It is out of order.' }]);
  const told = await collect(cluster.url, { text: 'try' });
  const final = told.at(-1)!.result as { status: { state: string }; metadata: { failedAgents: { agent: string }[] } };
  assert.deepEqual([final.status.state, final.metadata.failedAgents[0]?.agent], ['completed', 'argocd']);
  const [result, invented] = toolResults(model.asked[1]!);
  assert.match(result!, /^so far\n(out of order\n)?\[the agent failed: /);
  assert.equal(invented, 'There is no agent of that name.');
  script([call('argocd', 'broken')], [{ call: '_finish', args: {} }]);
  const silent = await collect(cluster.url, { text: 'try' });
  assert.equal(shapeOf(silent.at(-1)!), 'status:failed');
});

for (const [name, replies, reason, retryable] of [
  ['stalls', [[{ stall: true }]], 'the model did not begin to answer in time', true],
  ['says nothing', [[]], 'the model said nothing', true],
  ['refuses', [{ status: 401 }], 'the model provider does not accept the credentials (HTTP 401)', false],
  ['never ends', Array.from({ length: 4 }, () => [call('nobody', 'x')]), 'the model wanted more than 4 steps', false],
] as const satisfies readonly (readonly [string, readonly Reply[], string, boolean])[]) {
  test(`a model that ${name} fails the task with a reason, never a hang`, { timeout: 60_000 }, async () => {
    script(...replies);
    const list = await collect(cluster.url, { text: 'try' });
    const final = list.at(-1)!.result as { status: { state: string }; metadata: Record<string, unknown> };
    assert.deepEqual([final.status.state, final.metadata.reason, final.metadata.retryable], ['failed', reason, retryable]);
  });
}

test('agents vanish and appear at run time: the planner sees it within seconds, and a call to one that is gone is given up', {
  timeout: 90_000,
}, async () => {
  const [agent] = cluster.agents;
  script([call('argocd', 'slow')], [{ text: 'It is gone.' }]);
  const list = await follow(
    'count',
    all => artifactsOf(all, 'streaming_result').length > 5,
    () => agent!.kill(),
  );
  assert.equal(shapeOf(list.at(-1)!), 'status:completed');
  assert.match(newest(model.asked[1]!, 'tool'), /\[the agent failed: the agent is gone\]$/);
  const offered = async () => {
    model.asked.length = 0;
    script([{ text: 'hello' }]);
    await collect(cluster.url, { text: 'who is there' });
    return model.asked[0]!.tools.map(tool => tool.function.name);
  };
  assert.deepEqual(await offered(), ['github', 'jira', 'quiet']);
  await agent!.start();
  const start = performance.now();
  while (!(await offered()).includes('argocd')) assert.ok(performance.now() - start < 5_000, 'the agent was not seen');
});

test('metadata.agent names the agent: nobody asks the model', async () => {
  const list = await collect(cluster.url, { params: messageParams('show version', { metadata: { agent: 'argocd' } }) });
  assert.equal(textOf(list, 'partial_result'), VERSION.join(''));
  assert.equal(model.asked.length, 0);
});

test('it sums up only when asked to: the setting is the default, metadata.summary decides', async () => {
  const systemOf = (asked: Asked | undefined) => asked?.messages.find(({ role }) => role === 'system')?.content ?? '';
  script([{ text: 'hi' }]);
  await collect(cluster.url, { text: 'hello' });
  await collect(cluster.url, { params: messageParams('hello', { metadata: { summary: true } }) });
  assert.match(systemOf(model.asked[0]), /Do not repeat/);
  assert.match(systemOf(model.asked[1]), /conclude with a short summary/);
});

test('S2-32 S2-13 the books of every task above balance, steps included', async () => {
  assert.ok(tasks.size >= 6);
  for (const taskId of tasks) {
    const audit = await auditTask(log, taskId);
    assert.ok(audit !== undefined && isBalanced(audit), JSON.stringify(audit));
    assert.ok(audit.tallies.step.accepted > 0);
  }
});
