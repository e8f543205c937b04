import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { type BaseEvent, HttpAgent, type RunAgentParameters } from '@ag-ui/client';
import { countingTokens } from '../support/agents/counting-agent.ts';
import { type RemoteAgent, startRemoteAgent } from '../support/agents/remote-agent.ts';
import { Cluster } from '../support/cluster/cluster.ts';
import { Guide } from '../support/guides/guide.ts';

const TOKENS = countingTokens(200);
const WHOLE = TOKENS.join('');

let ticker: RemoteAgent;
let poet: RemoteAgent;
let cluster: Cluster;

before(async () => {
  ticker = await startRemoteAgent({
    dialect: '0.3',
    script: async function* () {
      yield { notice: 'start', tool: 'abacus' };
      yield { notice: 'end', tool: 'abacus' };
      for (const token of TOKENS) {
        yield { token };
        yield { pause: 15 };
      }
      yield { complete: true };
    },
  });
  poet = await startRemoteAgent({
    dialect: '1.0',
    script: function* ({ text, turn }) {
      if (text.includes('fail')) yield { fail: true, text: 'no ink' };
      else if (text.includes('ask') && turn === 1) yield { inputRequired: 'Which color?' };
      else yield* [{ token: `You wrote: ${text}` }, { complete: true }] as const;
    },
  });
  cluster = await Cluster.shared({
    replicas: 2,
    agents: [
      { name: 'ticker', adapter: 'a2a', url: ticker.url },
      { name: 'poet', adapter: 'a2a', url: poet.url },
      {
        name: 'refunds',
        adapter: 'module',
        path: fileURLToPath(new URL('../support/agents/approving-agent.ts', import.meta.url)),
      },
    ],
  });
});

after(async () => {
  await cluster?.[Symbol.asyncDispose]();
  await ticker?.close();
  await poet?.close();
});

/** AG-UI's own agent, unchanged: it checks each event with the schemas and the verifier. */
function agentOf(name: string, text: string, { ingress = 0, threadId = `thread-${crypto.randomUUID()}` } = {}): HttpAgent {
  const url = `${cluster.ingresses[ingress]!.url}/agui/${name}`;
  return new HttpAgent({ url, threadId, initialMessages: [{ id: crypto.randomUUID(), role: 'user', content: text }] });
}

async function runOf(agent: HttpAgent, parameters: RunAgentParameters = {}, onEvent: (event: BaseEvent) => void = () => {}) {
  const types: string[] = [];
  const result = await agent.runAgent(parameters, {
    onEvent: ({ event }) => {
      types.push(event.type);
      onEvent(event);
    },
  });
  return { types, result };
}

const answerOf = (agent: HttpAgent) =>
  agent.messages.flatMap(({ role, content }) => (role === 'assistant' && typeof content === 'string' ? [content] : [])).join('');

test('HttpAgent runs two agents, with text, steps, tool calls and state', { timeout: 120_000 }, async () => {
  const writing = agentOf('poet', 'hello');
  const written = await runOf(writing);
  assert.equal(answerOf(writing), 'You wrote: hello');
  assert.deepEqual([written.types[0], written.types.at(-1)], ['RUN_STARTED', 'RUN_FINISHED']);
  const counting = agentOf('ticker', 'count');
  const { types } = await runOf(counting);
  assert.equal(answerOf(counting), WHOLE);
  for (const type of ['STEP_STARTED', 'STEP_FINISHED', 'TOOL_CALL_START', 'TOOL_CALL_RESULT', 'STATE_SNAPSHOT', 'STATE_DELTA'])
    assert.ok(types.includes(type), type);
  assert.equal((counting.state as { hopline: { state: string } }).hopline.state, 'completed');
});

test('a question is an interrupt, and the next run answers it', { timeout: 120_000 }, async () => {
  const agent = agentOf('poet', 'ask me');
  await runOf(agent);
  const [interrupt] = agent.pendingInterrupts;
  assert.deepEqual([interrupt?.reason, interrupt?.message], ['input_required', 'Which color?']);
  await runOf(agent, { resume: [{ interruptId: interrupt!.id, status: 'resolved', payload: 'blue' }] });
  assert.equal(answerOf(agent), 'You wrote: blue');
  assert.deepEqual(agent.pendingInterrupts, []);
});

test('an approval is an interrupt of its call, and the next run has the result of the call', { timeout: 120_000 }, async () => {
  for (const [payload, answer, result] of [
    [{ approved: true }, /99 paid 17$/, 'paid 17'],
    [{ approved: false, reason: 'too late' }, /Not paid: too late$/, undefined],
  ] as const) {
    const agent = agentOf('refunds', '17');
    await runOf(agent);
    const [interrupt] = agent.pendingInterrupts;
    assert.deepEqual([interrupt?.reason, interrupt?.message], ['tool_call', 'Pay order 17 back?']);
    assert.deepEqual(interrupt?.responseSchema?.required, ['approved']);
    assert.deepEqual(interrupt?.metadata, { tool: 'refund', arguments: { order: '17' } });
    const callsOf = () => agent.messages.flatMap(message => (message.role === 'assistant' ? (message.toolCalls ?? []) : []));
    const called = callsOf().find(({ id }) => id === interrupt?.toolCallId);
    assert.deepEqual(called?.function, { name: 'refund', arguments: '{"order":"17"}' });
    const resume = (more: object) => ({
      resume: [{ interruptId: interrupt!.id, status: 'resolved' as const, payload: { ...payload, ...more } }],
    });
    await assert.rejects(runOf(agent, resume({ editedArgs: { order: '18' } })), /editedArgs cannot be used/);
    await runOf(agent, resume({}));
    assert.match(answerOf(agent), answer);
    assert.equal(callsOf().filter(call => call.function.name === 'refund').length, 1);
    const results = agent.messages.filter(message => message.role === 'tool' && message.toolCallId === called?.id);
    assert.deepEqual(
      results.map(({ content }) => content),
      result === undefined ? [] : [result],
    );
  }
});

test('a question that the user cancels ends the task', { timeout: 120_000 }, async () => {
  const agent = agentOf('poet', 'ask me');
  await runOf(agent);
  const { id } = agent.pendingInterrupts[0]!;
  const { types } = await runOf(agent, { resume: [{ interruptId: id, status: 'cancelled' }] });
  assert.deepEqual(types, ['RUN_STARTED', 'RUN_FINISHED']);
  const response = await fetch(`${cluster.url}/tasks/${id.split('.')[0]}`, { headers: { 'a2a-version': '1.0' } });
  assert.equal(((await response.json()) as { status: { state: string } }).status.state, 'TASK_STATE_CANCELED');
});

test('a failure is RUN_ERROR with its reason, and wrong input a 400', { timeout: 120_000 }, async () => {
  const agent = agentOf('poet', 'fail');
  const errors: BaseEvent[] = [];
  await runOf(agent, {}, event => void (event.type === 'RUN_ERROR' && errors.push(event))).catch(() => {});
  assert.match((errors[0] as unknown as { message: string }).message, /no ink/);
  const response = await fetch(`${cluster.url}/agui`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ threadId: 't', runId: 'r', messages: [] }),
  });
  assert.equal(response.status, 400);
});

test('a run that breaks in mid-message is resumed on another replica, while a relay dies', { timeout: 120_000 }, async () => {
  const runId = crypto.randomUUID();
  const first = agentOf('ticker', 'count');
  let deltas = 0;
  await runOf(first, { runId }, ({ type }) => {
    if (type !== 'TEXT_MESSAGE_CONTENT') return;
    deltas += 1;
    if (deltas === 10) first.abortRun();
  }).catch(() => {});
  assert.ok(answerOf(first).length < WHOLE.length);
  const restarted = cluster.killRelays().then(() => cluster.startRelays());
  // The page has kept its messages, with the part of the answer that it has seen.
  const second = agentOf('ticker', 'count', { ingress: 1, threadId: first.threadId });
  second.setMessages(first.messages);
  const { types } = await runOf(second, { runId });
  await restarted;
  assert.deepEqual(types.slice(0, 3), ['RUN_STARTED', 'STATE_SNAPSHOT', 'MESSAGES_SNAPSHOT']);
  assert.equal(types.at(-1), 'RUN_FINISHED');
  assert.equal(answerOf(second), WHOLE);
  const ended = agentOf('ticker', 'count', { threadId: first.threadId });
  ended.setMessages(first.messages);
  await runOf(ended, { runId });
  assert.equal(answerOf(ended), WHOLE);
});

test('the code of the guide runs', { timeout: 120_000 }, async () => {
  const guide = new Guide('ag-ui.md');
  const code = guide.block('HttpAgent').replaceAll('http://127.0.0.1:8000', cluster.ingresses[0]!.url);
  const cwd = fileURLToPath(new URL('..', import.meta.url));
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '--eval', code], { cwd });
  assert.equal(stdout, 'You wrote: helloYou wrote: hello completed\n');
  guide.assertAllTaken();
});
