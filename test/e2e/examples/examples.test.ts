import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { type ClientView, ViewFold } from '@hopline/task-view';
import { ModelServer } from '../../support/agents/model-server.ts';
import { pythonWith, startPythonAgent } from '../../support/agents/python-agent.ts';
import { collect, type Frame, foldOf, messageParams, textOf } from '../../support/cluster/a2a-stream.ts';
import { Cluster } from '../../support/cluster/cluster.ts';

const EXAMPLES = fileURLToPath(new URL('../../../infra/examples/', import.meta.url));

type Entry = Record<string, unknown>;

/** The cluster of `HOPLINE_AGENTS=infra/examples/NAME/agents.json npm start`. `change` sets addresses of this test. */
function startExample(
  name: string,
  change: (entry: Entry) => Entry = entry => entry,
  env: Record<string, string> = {},
): Promise<Cluster> {
  const folder = `${EXAMPLES}${name}`;
  const { agents } = JSON.parse(readFileSync(`${folder}/agents.json`, 'utf8')) as { agents: Entry[] };
  return Cluster.start({ agents: agents.map(change), agentsFolder: folder, env });
}

const stateOf = (list: readonly Frame[]) => foldOf(list).task?.status.state;
const taskIdOf = (list: readonly Frame[]) => (list[0]!.result as { id: string }).id;
const answerTo = (list: readonly Frame[], text: string) => ({ params: messageParams(text, { taskId: taskIdOf(list) }) });

function viewOf(list: readonly Frame[]): ClientView {
  const fold = new ViewFold();
  for (const { event } of list) fold.add({ event });
  return fold.view;
}

test('hand-written: asks a question, streams, and returns a file', { timeout: 120_000 }, async () => {
  await using cluster = await startExample('hand-written');
  const question = await collect(cluster.url, { text: 'throw some dice' });
  assert.equal(stateOf(question), 'TASK_STATE_INPUT_REQUIRED');
  const thrown = await collect(cluster.url, answerTo(question, '3'));
  assert.equal(stateOf(thrown), 'TASK_STATE_COMPLETED');
  const text = textOf(thrown, 'streaming_result');
  const [pips = ''] = text.split('\n');
  assert.match(text, /^([1-6] ){3}\nTogether \d+\.\n$/);
  const file = textOf(thrown, 'dice.csv');
  assert.deepEqual(file.match(/(?<=,)\d/g), pips.trim().split(' '));
});

test('langgraph: streams the model, asks, and continues with the answer', { timeout: 120_000 }, async () => {
  await using cluster = await startExample('langgraph');
  const question = await collect(cluster.url, { text: 'a poem' });
  const fold = foldOf(question);
  assert.match(textOf(question, 'streaming_result'), /^Roses are red,\n/);
  assert.equal(fold.task?.status.state, 'TASK_STATE_INPUT_REQUIRED');
  assert.equal(fold.task?.status.message?.parts[0]?.text, 'Shall I publish it? (yes or no)');
  const published = await collect(cluster.url, answerTo(question, 'yes'));
  assert.equal(stateOf(published), 'TASK_STATE_COMPLETED');
  assert.equal(textOf(published, 'partial_result'), 'Published.');
});

test('nested: a cluster is the agent of another cluster', { timeout: 120_000 }, async () => {
  await using below = await startExample('hand-written');
  await using cluster = await startExample('nested', entry => ({ ...entry, url: below.url }));
  const list = await collect(cluster.url, { text: '2 dice' });
  assert.equal(stateOf(list), 'TASK_STATE_COMPLETED');
  assert.match(textOf(list, 'streaming_result'), /^([1-6] ){2}\nTogether \d+\.\n$/);
});

test('model: answers with the tools of its MCP server', { timeout: 120_000 }, async () => {
  const reply = (request: { messages: { role: string; content?: string | null }[] }) => {
    const result = request.messages.findLast(({ role }) => role === 'tool');
    if (result === undefined) return [{ call: 'get-sum', args: { a: 17, b: 25 } }, { finish: 'tool_calls' }];
    return [{ text: `It is ${/42/.exec(result.content ?? '')?.[0] ?? 'unknown'}.` }, { finish: 'stop' }];
  };
  await using model = await ModelServer.start(reply);
  const env = { OPENAI_BASE_URL: model.url, OPENAI_API_KEY: 'key-of-the-example' };
  await using cluster = await startExample('model', undefined, env);
  const list = await collect(cluster.url, { text: 'add 17 and 25' });
  assert.equal(stateOf(list), 'TASK_STATE_COMPLETED');
  assert.equal(textOf(list, 'streaming_result'), 'It is 42.');
  assert.ok(model.requests[0]!.tools.some(tool => tool.function.name === 'get-sum'));
});

test('own-model: an agent calls a model with a tool, and counts its tokens', { timeout: 120_000 }, async () => {
  const reply = (request: { messages: { role: string; content?: string | null }[] }) => {
    const result = request.messages.findLast(({ role }) => role === 'tool');
    if (result === undefined) return [{ call: 'distance', args: { city: 'Prague' } }];
    return [{ tokens: ['Take ', 'the ', `train: ${/\d+/.exec(result.content ?? '')?.[0]} km.`] }];
  };
  await using model = await ModelServer.start(reply);
  const env = { OPENAI_BASE_URL: model.url, OPENAI_API_KEY: 'key-of-the-example' };
  await using cluster = await startExample('own-model', entry => ({ ...entry, env: Object.keys(env) }), env);
  const list = await collect(cluster.url, { text: 'to Prague' });
  assert.equal(stateOf(list), 'TASK_STATE_COMPLETED');
  assert.equal(textOf(list, 'streaming_result'), 'Take the train: 350 km.\n\n(8 tokens)\n');
  assert.equal(model.requests[0]!.headers.authorization, 'Bearer key-of-the-example');
  const { tools, usage } = viewOf(list);
  assert.deepEqual(
    // The agent's call belongs to the supervisor.
    tools.filter(({ tool }) => tool !== 'trip').map(({ tool, arguments: args, result }) => [tool, args, result]),
    [['distance', { city: 'Prague' }, { km: 350 }]],
  );
  assert.deepEqual(usage, { inputTokens: 22, outputTokens: 8, cachedTokens: 8, reasoningTokens: 0 });
});

const python = pythonWith('1');
const skip = python === undefined && 'no Python with a2a-sdk 1.x: install it with uvicorn, or name one in A2A_PYTHON_1';

test('python-a2a: an agent written with the Python SDK, behind Hopline', { skip, timeout: 120_000 }, async t => {
  const agent = await startPythonAgent(python!, '1');
  t.after(agent.stop);
  await using cluster = await startExample('python-a2a', entry => ({ ...entry, url: agent.url }));
  const list = await collect(cluster.url, { text: 'hi' });
  assert.equal(stateOf(list), 'TASK_STATE_COMPLETED');
  assert.match(textOf(list, 'streaming_result'), /^Python replies: haha/);
});
