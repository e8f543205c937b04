import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { type Message, type StreamResponse, type Task, textOf } from '@hopline/a2a';
import { createA2a } from 'a2a-ai-provider';
import { collect } from '../kit/collect.ts';
import { userMessage } from '../kit/user-message.ts';
import { answer, type RemoteAgent, type Step, startRemoteAgent } from '../support/agents/remote-agent.ts';
import { Cluster } from '../support/cluster/cluster.ts';
import { DRIVERS } from './client-drivers.ts';

/**
 * The profile `chat` with clients that know nothing of Hopline. They show the text of every artifact, and the message of a task's status.
 * The agent does everything that other profiles show twice or between words: tools, progress, an artifact of its own, and the whole answer
 * at its end.
 */

const TOKENS = ['Grüße ', 'ha', 'ha', ' 👩‍🚀', '\n', '  done ✅'];
const ANSWER = TOKENS.join('');
const MANY = Array.from({ length: 300 }, (_, index) => `${index} `);

let remote: RemoteAgent;
let nested: Cluster;
let cluster: Cluster;

function script({ text }: { text: string }): Step[] {
  if (text === 'ask') return [{ inputRequired: 'Which one?' }];
  if (text === 'fail') return [{ token: 'half' }, { fail: true, text: 'no luck' }];
  if (text === 'many') return answer(MANY);
  return [{ notice: 'start', tool: 'lookup' }, { notice: 'end', tool: 'lookup' }, ...answer(TOKENS)];
}

before(async () => {
  remote = await startRemoteAgent({ dialect: '0.3', script });
  const agents = [{ name: 'remote', adapter: 'a2a', url: remote.url }];
  nested = await Cluster.shared({ agents, env: { HOPLINE_PUSH: 'true' } });
  cluster = await Cluster.start({
    profile: 'chat',
    env: { HOPLINE_DEFAULT_AGENT: 'remote' },
    agents: [...agents, { name: 'nested', adapter: 'a2a', url: nested.url }],
  });
});

after(async () => {
  await cluster?.[Symbol.asyncDispose]();
  await nested?.[Symbol.asyncDispose]();
  await remote?.close();
});

function message(text: string, agent = 'remote'): Message {
  return userMessage(text, { metadata: { agent } });
}

/** All text that a client shows if it appends the text of each artifact. */
function shownByStream(events: readonly StreamResponse[]): string {
  return events.map(event => ('artifactUpdate' in event ? textOf(event.artifactUpdate.artifact.parts) : '')).join('');
}

/** All text that a client shows if it waits for the task to end. */
function shownByTask({ artifacts = [], status }: Task): string {
  return [...artifacts.map(({ parts }) => textOf(parts)), textOf(status.message?.parts ?? [])].join('');
}

function progressOf(events: readonly StreamResponse[]): string[] {
  return events.flatMap(event => {
    if (!('statusUpdate' in event)) return [];
    const text = textOf(event.statusUpdate.status.message?.parts ?? []);
    return text === '' ? [] : [text.trim()];
  });
}

const PROGRESS = [
  '**🎯 Execution Plan**\n1. Remote',
  '🔧 Supervisor: Calling Agent Remote...',
  '🔧 Remote: Calling tool: Lookup',
  '✅ Remote: Tool Lookup completed',
  '✅ Supervisor: Remote completed',
];

for (const { name, open } of DRIVERS)
  test(`${name} shows the answer once, and progress as statuses`, async () => {
    const client = await open(cluster.url);
    assert.equal(shownByTask(await client.send(message('talk'))), ANSWER);
    const events = await collect(client.stream(message('talk')));
    assert.equal(shownByStream(events), ANSWER);
    assert.deepEqual(progressOf(events), PROGRESS);
    const { id } = (events[0] as { task: Task }).task;
    assert.equal((await client.get(id)).artifacts?.length, 1);
  });

test('a question and a failure are the message of the status', async () => {
  const client = await DRIVERS[0]!.open(cluster.url);
  assert.equal(shownByTask(await client.send(message('ask'))), 'Which one?');
  const failed = await client.send(message('fail'));
  assert.equal(failed.status.state, 'TASK_STATE_FAILED');
  assert.equal(shownByTask(failed), 'halfno luck');
});

test('plan, notices and progress of a cluster below in profile `caipe` are statuses as well', async () => {
  const client = await DRIVERS[0]!.open(cluster.url);
  const events = await collect(client.stream(message('talk', 'nested')));
  assert.equal(shownByStream(events), ANSWER);
  assert(progressOf(events).some(text => text.includes('Execution Plan') && text.includes('Remote')));
});

test('a2a-ai-provider shows the answer once, generated and streamed', async t => {
  // The provider logs every event.
  t.mock.method(console, 'log', () => {});
  const model = createA2a()(`${cluster.url}/.well-known/agent-card.json`);
  for (const [text, expected] of [
    ['talk', ANSWER],
    ['many', MANY.join('')],
  ] as const) {
    const options = { prompt: [{ role: 'user', content: [{ type: 'text', text }] }] } as Parameters<typeof model.doGenerate>[0];
    const { content } = await model.doGenerate(options);
    assert.deepEqual(content, [{ type: 'text', text: expected }]);
    const { stream } = await model.doStream(options);
    const deltas: string[] = [];
    for await (const part of stream as unknown as AsyncIterable<{ type: string; delta?: string }>)
      if (part.type === 'text-delta') deltas.push(part.delta!);
    assert.equal(deltas.join(''), expected);
  }
});
