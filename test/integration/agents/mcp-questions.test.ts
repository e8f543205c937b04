import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { type TestContext, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import type { Part } from '@hopline/a2a';
import type { AgentEvent, Turn } from '@hopline/agent';
import { callTool, createMcpAgent, MCP_LIMITS, type McpOptions, type McpServer, McpSession } from '@hopline/agent-mcp';
import { freePort } from '@hopline/local-cluster';
import { until } from '../../kit/until.ts';
import { eventsOf, lastOf, textOf, turnOf } from '../../support/agents/turn.ts';

/** Questions of MCP servers: `elicitation/create` of the earlier revisions and `input_required` of 2026-07-28. */

const TIMEOUT = { timeout: 120_000 };
const ASKING = fileURLToPath(new URL('../../support/agents/asking-mcp-server.ts', import.meta.url));
const ASKING_2026 = fileURLToPath(new URL('../../support/agents/asking-mcp-server-2026.ts', import.meta.url));
const asking = (...args: string[]) => ({ command: process.execPath, args: [ASKING, ...args] });
const asking2026 = { command: process.execPath, args: [ASKING_2026] };

/** Starts a server over HTTP. */
async function serve(t: TestContext, args: string[], env: Record<string, string> = {}) {
  const child = spawn(process.execPath, args, { env: { ...process.env, ...env }, stdio: ['ignore', 'pipe', 'ignore'] });
  t.after(() => child.kill('SIGKILL'));
  return child;
}

async function asking2026AtUrl(t: TestContext) {
  const child = await serve(t, [...asking2026.args, 'http']);
  const [port] = (await once(createInterface({ input: child.stdout }), 'line')) as [string];
  return { url: `http://127.0.0.1:${port}/mcp` };
}

function everythingFile(): string {
  const name = '@modelcontextprotocol/server-everything';
  return join(dirname(createRequire(import.meta.url).resolve(`${name}/package.json`)), 'dist/index.js');
}

/** One turn in a process of its own, because the answer may reach a different process than the question. */
async function oneTurn(t: TestContext, server: McpOptions, parts: string | Part[], more: Partial<Turn> = {}) {
  const agent = createMcpAgent(server);
  t.after(() => agent.close());
  const events = await eventsOf(agent, parts, more);
  return { events, end: events.at(-1)!, text: textOf(events) };
}

const shownText = ({ content }: Awaited<ReturnType<typeof callTool>>) =>
  content.map(block => (block.type === 'text' ? block.text : '')).join('');

const questionIn = (end: AgentEvent) => {
  const { state, message, resume } = lastOf([end], 'interrupted');
  assert.equal(state, 'TASK_STATE_INPUT_REQUIRED');
  // The log keeps it as JSON.
  return { text: message.parts[0]?.text ?? '', data: message.parts[1]?.data, resume: JSON.parse(JSON.stringify(resume)) };
};

/** A task: the first message, and an answer to each question. Returns the questions and the answer text of the last turn. */
async function conversation(t: TestContext, server: McpOptions, [first, ...answers]: (string | Part[])[]) {
  const questions: string[] = [];
  let turn = await oneTurn(t, server, first!);
  for (const answer of answers) {
    const { text, resume } = questionIn(turn.end);
    questions.push(text.split('\n')[0]!);
    turn = await oneTurn(t, server, answer, { resume });
  }
  return { questions, ...turn };
}

for (const [name, server, booked] of [
  ['stdio, 2025-06-18', () => asking(), 'booked Rome for 3'],
  ['stdio, 2025-06-18, ends when its first request is not initialize', () => asking('strict'), 'booked Rome for 3'],
  ['stdio, 2026-07-28', () => asking2026, 'booked 3 nights in Rome'],
  ['HTTP, 2026-07-28', asking2026AtUrl, 'booked 3 nights in Rome'],
] as const) {
  test(`${name}: each question ends the turn, and the last answer completes the call`, TIMEOUT, async t => {
    const at = await server(t);
    const { questions, text, end } = await conversation(t, at, ['book {}', 'Rome', '3']);
    assert.equal(questions.length, 2);
    assert.equal(questions[0], 'Which city?');
    assert.match(questions[1]!, /^How many nights/);
    assert.deepEqual([text, end.type], [booked, 'done']);
  });

  test(`${name}: a declined question reaches the tool`, TIMEOUT, async t => {
    const { text } = await conversation(t, await server(t), ['book {}', 'decline']);
    assert.equal(text, 'not booked: decline');
  });
}

test('the question has the text and the form of the server', TIMEOUT, async t => {
  const { end } = await oneTurn(t, asking(), 'several {}');
  const { text, data } = questionIn(end);
  assert.match(
    text,
    /^Who are you\?\n\n- name \(string\): Your name\n- age \(number, optional, default 7\)\n\nAnswer with a JSON object/,
  );
  assert.equal((data as { message: string }).message, 'Who are you?');
  const answered = await conversation(t, asking(), ['several {}', [{ data: { name: 'Ada' } }]]);
  assert.equal(answered.text, 'accept {"age":7,"name":"Ada"}');
});

test('an answer that does not fit is asked for again, and the tool does not run', TIMEOUT, async t => {
  const { questions, text } = await conversation(t, asking(), ['confirm {"file":"a.md"}', 'perhaps', 'yes']);
  assert.deepEqual(questions, ['Delete a.md?', 'This question needs `yes`, `decline` or `cancel`.']);
  assert.equal(text, 'accept {}');
});

test('the same question twice in a call needs two answers', TIMEOUT, async t => {
  const { text } = await conversation(t, asking(), ['twice {}', 'red', 'blue']);
  assert.equal(text, 'accept {"color":"red"}, accept {"color":"blue"}');
});

test('two questions of one result are asked one after the other', TIMEOUT, async t => {
  const { questions, text } = await conversation(t, asking2026, ['both {}', 'a', 'b']);
  assert.deepEqual(questions, ['First?', 'Second?']);
  const { first, second } = JSON.parse(text);
  assert.deepEqual([first.content, second.content], [{ first: 'a' }, { second: 'b' }]);
});

test(
  'a server that refuses the state of its earlier process gets the call from its beginning, with all answers',
  TIMEOUT,
  async t => {
    const { questions, text } = await conversation(t, asking2026, ['signed {}', 'a', 'b']);
    assert.deepEqual(questions, ['first?', 'second?']);
    assert.equal(text, '{"second":"b"}');
  },
);

test('calls before the question do not run again, and those after it follow', TIMEOUT, async t => {
  const first = await oneTurn(t, asking(), 'slow {"ms":1} confirm {"file":"b"} slow {"ms":2}');
  assert.equal(first.text, 'slept');
  const second = await oneTurn(t, asking(), 'yes', { resume: questionIn(first.end).resume });
  assert.equal(second.text, 'accept {}slept');
  assert.deepEqual(
    second.events.flatMap(event => (event.type === 'tool' && event.phase === 'start' ? [event.tool] : [])),
    ['confirm', 'slow'],
  );
});

test('the tool runs again with the answer, in the same process of the server if it lives', TIMEOUT, async t => {
  const agent = createMcpAgent(asking());
  t.after(() => agent.close());
  const question = questionIn((await eventsOf(agent, 'counted {}')).at(-1)!);
  assert.match(textOf(await eventsOf(agent, 'yes', { resume: question.resume })), /^accept \{\} in run 2 of/);
});

test('a tool that does not end after its canceled question does not hold the turn', TIMEOUT, async t => {
  const { text } = await conversation(t, asking(), ['stubborn {}', 'yes']);
  assert.equal(text, 'continued');
});

test(
  'a question that could belong to any of several calls fails them all as retryable, and then calls run one at a time',
  TIMEOUT,
  async t => {
    const agent = createMcpAgent(asking());
    t.after(() => agent.close());
    await agent.skills();
    const both = () => Promise.all(['a', 'b'].map(name => eventsOf(agent, `confirm {"file":"${name}"}`)));
    for (const events of await both())
      assert.deepEqual(lastOf(events, 'failed'), {
        type: 'failed',
        reason: 'the MCP server asked a question that could belong to any of several calls',
        retryable: true,
      });
    assert.deepEqual(
      (await both()).map(events => questionIn(events.at(-1)!).text.split('\n')[0]),
      ['Delete a?', 'Delete b?'],
    );
  },
);

test('a question of a call that was canceled is not shown to the user of another call', TIMEOUT, async t => {
  const agent = createMcpAgent(asking());
  t.after(() => agent.close());
  const stop = new AbortController();
  for await (const { type } of agent.run(turnOf('late {}', { signal: stop.signal }))) if (type === 'progress') stop.abort();
  const { reason, retryable } = lastOf(await eventsOf(agent, 'slow {"ms":60000}'), 'failed');
  assert.deepEqual([reason, retryable], ['the MCP server asked a question that could belong to any of several calls', true]);
  assert.equal(textOf(await eventsOf(agent, 'slow {"ms":1}')), 'slept');
});

test('a server gets no sampling and no page: each is refused with one sentence', TIMEOUT, async t => {
  assert.equal((await oneTurn(t, asking(), 'ok {}')).text, '{"elicitation":{"form":{}}}');
  const sampled = await oneTurn(t, asking(), 'sample {}');
  assert.equal(sampled.text, 'this client offers no sampling: a server calls a model itself');
  assert.match((await oneTurn(t, asking(), 'open_page {}')).text, /does not support URL-mode/);
  for (const call of ['sample {}', 'open_page {}']) {
    const { reason, retryable } = lastOf((await oneTurn(t, asking2026, call)).events, 'failed');
    assert.match(reason, /^tool \w+ needs a capability that this agent does not offer, such as sampling$/);
    assert.equal(retryable, false);
  }
});

test('a session that does not offer questions refuses them, like the session of the adapter `model`', TIMEOUT, async t => {
  const call = async (server: McpServer, tool: string) => {
    const session = new McpSession(server, MCP_LIMITS);
    t.after(() => session.close());
    const { signal } = new AbortController();
    return callTool({ tool, args: {} }, { session, limits: MCP_LIMITS, signal, trace: {}, onprogress: () => {} });
  };
  assert.equal(shownText(await call(asking(), 'ok')), '{}');
  assert.equal(shownText(await call(asking(), 'confirm')), 'this client does not offer elicitation/create');
  await assert.rejects(call(asking2026, 'book'), { name: 'ToolCallFault', message: /^tool book needs a capability/ });
});

for (const [name, server] of [
  ['stdio', () => asking2026],
  ['HTTP', asking2026AtUrl],
] as const)
  test(`${name}, 2026-07-28: cancelling a turn cancels its call`, TIMEOUT, async t => {
    const agent = createMcpAgent(await server(t));
    t.after(() => agent.close());
    const counts = async () => textOf(await eventsOf(agent, 'calls {}'));
    const stop = new AbortController();
    const waiting = eventsOf(agent, 'wait {}', { signal: stop.signal });
    await until(async () => (await counts()) === '{"waiting":1,"canceled":0}');
    stop.abort();
    await waiting;
    await until(async () => (await counts()) === '{"waiting":1,"canceled":1}');
  });

for (const transport of ['stdio', 'streamableHttp'])
  test(`server-everything over ${transport}: its question of many fields, for two tasks at once over HTTP`, TIMEOUT, async t => {
    let server: McpOptions = { command: process.execPath, args: [everythingFile(), 'stdio'] };
    if (transport !== 'stdio') {
      const port = await freePort();
      await serve(t, [everythingFile(), transport], { PORT: String(port) });
      server = { url: `http://127.0.0.1:${port}/mcp` };
      const answers = () =>
        fetch(`http://127.0.0.1:${port}/mcp`).then(response => response.body?.cancel().then(() => true) ?? true);
      await until(() => answers().catch(() => false), 'the MCP server answers');
    }
    const agent = createMcpAgent(server);
    t.after(() => agent.close());
    const tasks = transport === 'stdio' ? ['Ada'] : ['Ada', 'Bob'];
    const asked = await Promise.all(tasks.map(() => eventsOf(agent, 'trigger-elicitation-request {}')));
    for (const [index, name] of tasks.entries()) {
      const { text, resume } = questionIn(asked[index]!.at(-1)!);
      assert.match(text, /^Please provide inputs/);
      const wrong = await eventsOf(agent, '{"integer":1000}', { resume });
      assert.match(questionIn(wrong.at(-1)!).text, /^The answer does not fit/);
      assert.match(textOf(await eventsOf(agent, JSON.stringify({ name }), { resume })), new RegExp(name));
    }
  });
