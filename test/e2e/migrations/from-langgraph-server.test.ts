import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createLangGraphAgent } from '@hopline/agent-langgraph';
import { startRecordedServer } from '../../support/agents/recorded-server.ts';
import { eventsOf, textOf } from '../../support/agents/turn.ts';
import { collect, messageParams } from '../../support/cluster/a2a-stream.ts';
import { Cluster } from '../../support/cluster/cluster.ts';
import { Guide } from '../../support/guides/guide.ts';

const GUIDE = new Guide('from-langgraph-server.md');
const RECORDING = new URL('../../support/agents/recordings/langgraph-chat.json', import.meta.url);

test('the entry of the guide is the graph of a LangGraph server', { timeout: 120_000 }, async t => {
  const server = await startRecordedServer(RECORDING);
  t.after(() => server.close());
  const [[entry]] = GUIDE.agents() as [[{ url: string; assistant: string }]];
  const agent = await createLangGraphAgent({ ...entry, url: server.url });
  const message = { messageId: 'm-1', role: 'ROLE_USER' as const, parts: [{ text: 'hi' }] };
  assert.deepEqual(GUIDE.npmStart().args, ['--agents', 'agents.json']);
  const events = await eventsOf(agent, '', { contextId: 'context chat', taskId: 'task chat', message });
  assert.equal(textOf(events), 'Hello from the server');
});

test('the graph of the guide runs without a server, asks, and continues with the answer', { timeout: 120_000 }, async t => {
  const agentsFolder = GUIDE.folder(t, ['graph.ts']);
  await using cluster = await Cluster.start({ agents: GUIDE.agents()[1]!, agentsFolder, profile: 'transparent' });
  const question = await collect(cluster.url, { text: 'plan it' });
  assert.match(JSON.stringify(question.at(-1)!.result), /input-required.*Shall I begin\?/);
  const taskId = (question[0]!.result as { id: string }).id;
  const answered = await collect(cluster.url, { params: messageParams('yes', { taskId }) });
  assert.match(JSON.stringify(answered.at(-1)!.result), /completed/);
  assert.match(JSON.stringify(answered.map(({ result }) => result)), /Begun\./);
});

test('every part of the guide was run', () => GUIDE.assertAllTaken());
