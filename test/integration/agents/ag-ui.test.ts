import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { json } from 'node:stream/consumers';
import { type TestContext, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { RunAgentInputSchema } from '@ag-ui/core/schemas';
import { createAgUiAgent } from '@hopline/agent-ag-ui';
import { createClient, NoAnswerError } from '@hopline/client';
import type { ClientView } from '@hopline/task-view';
import { listen } from '../../kit/listen.ts';
import { until } from '../../kit/until.ts';
import { startPythonScript, UVICORN } from '../../support/agents/python-agent.ts';
import { startRemoteAgent } from '../../support/agents/remote-agent.ts';
import { eventsOf, lastOf } from '../../support/agents/turn.ts';
import { Cluster } from '../../support/cluster/cluster.ts';
import { newestPythonWith } from '../../support/python/python-with-httpx.ts';

const ANSWER = 'The answer: haha\r\n\r\n**bold** ✅ done 👩‍👩‍👧';
const TIMEOUT = 600_000;

type Script = (input: { messages: unknown[]; resume?: unknown }) => readonly object[] | { status: number } | 'hang';

/** A server of AG-UI that reads its input by the schema of AG-UI. */
async function startServer(t: TestContext, script: Script) {
  const inputs: object[] = [];
  let open = 0;
  const server = createServer((request, response) => {
    open += 1;
    response.once('close', () => {
      open -= 1;
    });
    void (async () => {
      const input = RunAgentInputSchema.parse(await json(request));
      inputs.push(input);
      const events = script(input);
      if (typeof events === 'object' && 'status' in events) return response.writeHead(events.status).end();
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.flushHeaders();
      if (events === 'hang') return;
      for (const event of events) response.write(`data: ${JSON.stringify(event)}\n\n`);
      response.end();
    })().catch(() => response.destroy());
  });
  const origin = await listen(server);
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  const agent = createAgUiAgent({ url: `${origin}/agent` });
  return { agent, inputs, open: () => open };
}

test('the input of a run has the history, the message with its files, and the state of the thread', async t => {
  const { agent, inputs } = await startServer(t, () => [{ type: 'RUN_FINISHED', threadId: 'context-1', runId: 'r' }]);
  const history = [
    { messageId: '1', role: 'ROLE_USER' as const, parts: [{ text: 'before' }] },
    { messageId: '2', role: 'ROLE_AGENT' as const, parts: [{ text: 'answered' }] },
  ];
  const parts = [
    { text: 'look' },
    { raw: 'AA==', mediaType: 'image/png' },
    { url: 'https://x/y.pdf', mediaType: 'application/pdf' },
  ];
  lastOf(await eventsOf(agent, parts, { history, resume: { state: { n: 1 } } }), 'done');
  const owner = { tenant: 't', subject: 'ann' };
  const message = { messageId: 'm', role: 'ROLE_USER' as const, parts };
  for (const options of [{ message }, { message }, { message, owner }]) await eventsOf(agent, parts, options);
  type Input = { threadId: string; runId: string; state: unknown; messages: { role: string; content: unknown }[] };
  const [input, ...others] = inputs as Input[];
  assert.deepEqual(input?.state, { n: 1 });
  const [one, again, anns] = others.map(({ threadId, runId }) => ({ threadId, runId }));
  assert.deepEqual(one, again, 'another attempt is the same run');
  assert.equal(one?.threadId, input?.threadId);
  assert.notEqual(anns?.threadId, one?.threadId, 'another owner has another thread');
  assert.deepEqual(
    input?.messages.map(({ role, content }) => [role, content]),
    [
      ['user', 'before'],
      ['assistant', 'answered'],
      [
        'user',
        [
          { type: 'text', text: 'look' },
          { type: 'image', source: { type: 'data', value: 'AA==', mimeType: 'image/png' } },
          { type: 'document', source: { type: 'url', value: 'https://x/y.pdf', mimeType: 'application/pdf' } },
        ],
      ],
    ],
  );
});

test('a server that is away, refuses or breaks fails the turn with one sentence', async t => {
  const { agent } = await startServer(t, ({ messages }) => {
    const { content } = messages.at(-1) as { content: string };
    return content === 'refuse' ? { status: 403 } : content === 'busy' ? { status: 503 } : [];
  });
  const failure = async (text: string, one = agent) => {
    const { reason, retryable } = lastOf(await eventsOf(one, text), 'failed');
    return [reason, retryable];
  };
  assert.deepEqual(await failure('refuse'), ['the AG-UI server answered with status 403', false]);
  assert.deepEqual(await failure('busy'), ['the AG-UI server answered with status 503', true]);
  assert.deepEqual(await failure('end'), ['the stream of the AG-UI server ended without the end of its run', true]);
  const away = createAgUiAgent({ url: 'http://127.0.0.1:9/' });
  assert.deepEqual(await failure('hello', away), ['the AG-UI server cannot be reached', true]);
});

test('a cancel closes the connection, and a silent server ends the turn', async t => {
  const { agent, open } = await startServer(t, () => 'hang');
  const stop = new AbortController();
  const turn = eventsOf(agent, 'go', { signal: stop.signal });
  await until(() => open() === 1);
  stop.abort();
  assert.deepEqual(await turn, []);
  await until(() => open() === 0);
});

test('an agent of AG-UI behind a cluster: its text, a question with its answer, a failure and a cancel', {
  timeout: 120_000,
}, async t => {
  const poet = await startRemoteAgent({
    dialect: '1.0',
    script: function* ({ text, turn }) {
      if (text.includes('fail')) yield* [{ token: 'so far ' }, { fail: true, text: 'no ink' }] as const;
      else if (text.includes('wait')) yield* [{ token: 'so far ' }, { hang: true }] as const;
      else if (text.includes('ask') && turn === 1) yield { inputRequired: 'Which color?' };
      else yield* [{ token: 'You wrote: ' }, { token: text }, { complete: true }] as const;
    },
  });
  t.after(() => poet.close());
  // The server of AG-UI is another cluster.
  await using behind = await Cluster.shared({ agents: [{ name: 'poet', adapter: 'a2a', url: poet.url }] });
  await using cluster = await Cluster.shared({
    profile: 'transparent',
    agents: [{ name: 'writer', adapter: 'ag-ui', url: `${behind.url}/agui/poet` }],
  });
  const client = createClient({ url: cluster.url });
  const ask = (text: string) => client.ask(text, { metadata: { agent: 'writer' } });
  assert.equal(await ask('hello'), 'You wrote: hello');
  const thrown = async (asked: Promise<unknown>) => {
    const error = await asked.then(
      () => assert.fail('the task was completed'),
      (reason: unknown) => reason,
    );
    assert.ok(error instanceof NoAnswerError, String(error));
    return error.view;
  };
  const { question, taskId } = await thrown(ask('ask me'));
  assert.equal(question?.text, 'Which color?');
  assert.equal(await client.ask({ taskId: taskId!, parts: [{ text: 'blue' }] }), 'You wrote: blue');
  assert.match(String((await thrown(ask('fail'))).failure), /no ink/);
  const sent = await client.send({ parts: [{ text: 'wait' }] }, { blocking: false, metadata: { agent: 'writer' } });
  assert.ok('task' in sent);
  for await (const { answer } of client.watch(sent.task.id)) if (answer === 'so far ') break;
  await client.cancel(sent.task.id);
  assert.equal((await client.get(sent.task.id)).status.state, 'TASK_STATE_CANCELED');
});

const found = await newestPythonWith(['pydantic-ai-slim[ag-ui]==2.68.0', UVICORN]);

test('an agent of Pydantic AI over AG-UI: its answer once, byte for byte, a call of its tool, and a failure', {
  skip: 'skip' in found && found.skip,
  timeout: TIMEOUT,
}, async t => {
  const script = fileURLToPath(new URL('../../support/agents/python/ag_ui_agent.py', import.meta.url));
  const server = await startPythonScript('python' in found ? found.python : '', script);
  t.after(server.stop);
  const agents = [{ name: 'teller', adapter: 'ag-ui', url: `${server.url}agent` }];
  await using caipe = await Cluster.shared({ agents });
  await using transparent = await Cluster.shared({ profile: 'transparent', agents: [] });
  for (const { url } of [caipe, transparent]) {
    const client = createClient({ url });
    const options = { metadata: { agent: 'teller' } };
    const sent = await client.send('weather', options);
    assert.ok('task' in sent);
    let last: ClientView | undefined;
    for await (const view of client.watch(sent.task.id)) last = view;
    assert.equal(last?.answer, ANSWER);
    assert.deepEqual(
      last?.tools.filter(({ tool }) => tool === 'weather').map(({ arguments: args, result }) => [args, result]),
      [[{ city: 'Oslo' }, 'rain']],
    );
    await assert.rejects(client.ask('fail', options), NoAnswerError);
  }
});
