import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import type { Turn } from '@hopline/agent';
import { createLangGraphAgent } from '@hopline/agent-langgraph';
import { AIMessage, HumanMessage } from '@langchain/core/messages';
import { Command, MemorySaver, START, StateGraph } from '@langchain/langgraph';
import { FileSaver } from '../../support/agents/graphs/file-saver.ts';
import * as graphs from '../../support/agents/graphs/graphs.ts';
import { State } from '../../support/agents/graphs/graphs.ts';
import { eventsOf, lastOf, textOf } from '../../support/agents/turn.ts';

const agentOf = (graph: unknown, more: object = {}) => createLangGraphAgent({ graph, HumanMessage, ...more });
/** Each context is a separate thread. */
const turn = (contextId: string, messageId: string, text: string, more: Partial<Turn> = {}): Partial<Turn> => ({
  contextId,
  taskId: `task of ${contextId}`,
  message: { messageId, role: 'ROLE_USER', parts: [{ text }] },
  ...more,
});
const runTurn = async (agent: Awaited<ReturnType<typeof agentOf>>, options: Partial<Turn>) => {
  const events = await eventsOf(agent, '', options);
  return { events, text: textOf(events), end: events.at(-1)! };
};

async function saverFile(t: TestContext): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'langgraph-'));
  t.after(() => rm(folder, { recursive: true, force: true }));
  return join(folder, 'threads.json');
}

test('interrupt() asks for input, and each answer resumes the same thread', async () => {
  const agent = await agentOf(graphs.asks);
  const first = await runTurn(agent, turn('asks', 'm-1', 'paint'));
  const question = lastOf(first.events, 'interrupted');
  assert.equal(question.state, 'TASK_STATE_INPUT_REQUIRED');
  assert.deepEqual(question.message.parts, [{ text: 'Which colour?' }, { data: { question: 'Which colour?' } }]);
  assert.equal(first.text, 'Hm. ');
  const second = await runTurn(agent, turn('asks', 'm-2', 'blue', { resume: question.resume }));
  const nextQuestion = lastOf(second.events, 'interrupted');
  assert.deepEqual(nextQuestion.message.parts, [{ text: 'Which size?' }]);
  assert.equal(second.text, '', 'the text of the previous turn is not repeated');
  const third = await runTurn(agent, turn('asks', 'm-3', 'large', { resume: nextQuestion.resume }));
  assert.equal(third.text, 'painted blue large for "m-3"');
  assert.equal(third.end.type, 'done');
});

for (const [name, classes] of [
  ["the graph's own class", { Command }],
  ['a class of the adapter', {}],
] as const) {
  test(`the answer to interrupt() is not a plain object, which LangGraph.js ignores since 1.5.0: ${name}`, async () => {
    const { asks } = graphs;
    const inputs: unknown[] = [];
    const graph = {
      channels: asks.channels,
      checkpointer: asks.checkpointer,
      getState: asks.getState.bind(asks),
      stream: (...[input, config]: Parameters<typeof asks.stream>) => {
        inputs.push(input);
        return asks.stream(input, config);
      },
    };
    const agent = await agentOf(graph, classes);
    const { resume } = lastOf((await runTurn(agent, turn(name, 'm-1', 'paint'))).events, 'interrupted');
    const second = await runTurn(agent, turn(name, 'm-2', 'blue', { resume }));
    assert.deepEqual(lastOf(second.events, 'interrupted').message.parts, [{ text: 'Which size?' }]);
    const command = inputs[1] as { lg_name?: unknown };
    assert.equal(command.lg_name, 'Command');
    assert.notEqual(Object.getPrototypeOf(command), Object.prototype);
  });
}

test('an answer without text resumes with its data', async () => {
  const agent = await agentOf(graphs.asks);
  const first = await runTurn(agent, turn('data', 'm-1', 'paint'));
  const message = { messageId: 'm-2', role: 'ROLE_USER' as const, parts: [{ data: 7 }] };
  const second = await runTurn(agent, turn('data', '', '', { message, resume: lastOf(first.events, 'interrupted').resume }));
  const resume = lastOf(second.events, 'interrupted').resume;
  assert.match((await runTurn(agent, turn('data', 'm-3', 'x', { resume }))).text, /^painted 7 x/);
});

test('a thread still waits after a restart of the process, even without the resume value of the turn', async t => {
  const path = await saverFile(t);
  const started = async () => agentOf(graphs.asksBare.builder.compile(), { checkpointer: new FileSaver(path) });
  const first = await runTurn(await started(), turn('restart', 'm-1', 'paint'));
  const { resume } = lastOf(first.events, 'interrupted');
  const second = await runTurn(await started(), turn('restart', 'm-2', 'blue', { resume }));
  assert.equal(lastOf(second.events, 'interrupted').message.parts[0]?.text, 'Which size?');
  const third = await runTurn(await started(), turn('restart', 'm-3', 'large'));
  assert.match(third.text, /^painted blue large/, 'the inbox identifies the question');
});

test('a pending question of an abandoned task does not consume the first message of the next task', async () => {
  const agent = await agentOf(graphs.asks);
  await runTurn(agent, turn('left', 'm-1', 'paint'));
  const next = await runTurn(agent, turn('left', 'm-2', 'something else', { taskId: 'another task' }));
  assert.equal(lastOf(next.events, 'interrupted').message.parts[0]?.text, 'Which colour?');
});

test('a message the thread has ingested adds no second HumanMessage, newest or not [S1-9]', async () => {
  const agent = await agentOf(graphs.counts);
  assert.equal((await runTurn(agent, turn('dup', 'm-1', 'one'))).text, '1 one');
  assert.equal((await runTurn(agent, turn('dup', 'm-2', 'two'))).text, '2 two');
  const again = await runTurn(agent, turn('dup', 'm-1', 'one', { attempt: 2 }));
  assert.match(again.text, /^2 /);
  const other = await runTurn(agent, turn('another context', 'm-1', 'one'));
  assert.equal(other.text, '1 one', 'another context is another thread (S1-10)');
});

test('the same context id of two owners leads to two threads', async () => {
  const agent = await agentOf(graphs.counts);
  const of = (subject: string, messageId: string) => runTurn(agent, turn('owned', messageId, subject, { owner: { subject } }));
  assert.equal((await of('ada', 'm-1')).text, '1 ada');
  assert.equal((await of('bob', 'm-1')).text, '1 bob');
  assert.equal((await of('ada', 'm-2')).text, '2 ada');
  assert.equal((await runTurn(agent, turn('owned', 'm-1', 'anonymous'))).text, '1 anonymous');
});

test('a turn whose process died after the run sends the answer again without a second run [S1-9]', async () => {
  let runs = 0;
  const graph = new StateGraph(State)
    .addNode('n', async () => {
      runs += 1;
      return { messages: [new AIMessage('the answer')] };
    })
    .addEdge(START, 'n')
    .compile({ checkpointer: new MemorySaver() });
  const agent = await agentOf(graph);
  assert.equal((await runTurn(agent, turn('finished', 'm-1', 'x'))).text, 'the answer');
  const again = await runTurn(agent, turn('finished', 'm-1', 'x', { attempt: 2 }));
  assert.deepEqual([again.text, again.end.type, runs], ['the answer', 'done', 1]);
});

test('a turn whose process died during the run continues from the checkpoint, and its text is complete', async t => {
  const path = await saverFile(t);
  const ran: string[] = [];
  const build = (second: () => Promise<object>) =>
    new StateGraph(State)
      .addNode('first', async () => {
        ran.push('first');
        return { messages: [new AIMessage('one. ')] };
      })
      .addNode('second', second)
      .addEdge(START, 'first')
      .addEdge('first', 'second')
      .compile();
  const stop = new AbortController();
  const dying = build(async () => {
    stop.abort();
    return new Promise<never>(() => {});
  });
  await runTurn(await agentOf(dying, { checkpointer: new FileSaver(path) }), turn('died', 'm-1', 'x', { signal: stop.signal }));
  const going = build(async () => ({ messages: [new AIMessage('two.')] }));
  const again = await runTurn(
    await agentOf(going, { checkpointer: new FileSaver(path) }),
    turn('died', 'm-1', 'x', { attempt: 2 }),
  );
  assert.equal(again.text, 'one. two.');
  assert.deepEqual(lastOf(again.events, 'done').message?.parts, [{ text: 'two.' }]);
  assert.deepEqual(ran, ['first']);
});

test('a question pending when the process died is asked again, not answered by the message that led to it', async () => {
  const agent = await agentOf(graphs.asks);
  await runTurn(agent, turn('question', 'm-1', 'paint'));
  const again = await runTurn(agent, turn('question', 'm-1', 'paint', { attempt: 2 }));
  assert.equal(lastOf(again.events, 'interrupted').message.parts[0]?.text, 'Which colour?');
});

test('two tasks of one context run in sequence', async () => {
  const agent = await agentOf(graphs.counts);
  const both = await Promise.all([runTurn(agent, turn('two', 'm-1', 'a')), runTurn(agent, turn('two', 'm-2', 'b'))]);
  assert.deepEqual(both.map(({ text }) => text).toSorted(), ['1 a', '2 b']);
});
