import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import OpenAI from 'openai';
import { collect } from '../kit/collect.ts';
import { countingTokens } from '../support/agents/counting-agent.ts';
import { type RemoteAgent, startRemoteAgent } from '../support/agents/remote-agent.ts';
import { Cluster } from '../support/cluster/cluster.ts';
import { Guide } from '../support/guides/guide.ts';

const TOKENS = countingTokens(200);
const WHOLE = TOKENS.join('');

let counter: RemoteAgent;
let writer: RemoteAgent;
let cluster: Cluster;

before(async () => {
  counter = await startRemoteAgent({
    dialect: '0.3',
    script: async function* ({ text }) {
      for (const token of TOKENS) {
        yield { token };
        yield { pause: 15 };
      }
      if (text.includes('endless')) yield { hang: true };
      yield { complete: true };
    },
  });
  writer = await startRemoteAgent({
    dialect: '1.0',
    script: function* ({ text, turn }) {
      if (text.includes('fail')) yield* [{ token: 'so far ' }, { fail: true, text: 'no ink' }] as const;
      else if (text.includes('ask') && turn === 1) yield { inputRequired: 'Which color?' };
      else yield* [{ token: `You wrote: ${text}` }, { complete: true }] as const;
    },
  });
  cluster = await Cluster.shared({
    replicas: 2,
    agents: [
      { name: 'counter', adapter: 'a2a', url: counter.url },
      { name: 'writer', adapter: 'a2a', url: writer.url },
    ],
  });
});

after(async () => {
  await cluster?.[Symbol.asyncDispose]();
  await counter?.close();
  await writer?.close();
});

const clientOf = (index: number) =>
  new OpenAI({ baseURL: `${cluster.ingresses[index]!.url}/v1`, apiKey: 'unused', maxRetries: 0 });

/** The answer as the task has it. */
async function answerOf(responseId: string): Promise<string> {
  const id = responseId.replace(/^(?:resp_|chatcmpl-)/, '');
  const response = await fetch(`${cluster.url}/tasks/${id}`, { headers: { 'a2a-version': '1.0' } });
  const { artifacts } = (await response.json()) as { artifacts: { name: string; parts: { text: string }[] }[] };
  const whole = artifacts.findLast(({ name }) => name === 'partial_result');
  return whole!.parts.map(({ text }) => text).join('');
}

const failure = (promise: PromiseLike<unknown>) =>
  Promise.resolve(promise).then(
    () => assert.fail('the request succeeded'),
    (error: unknown) => {
      assert.ok(error instanceof OpenAI.APIError, String(error));
      return { status: error.status, code: error.code, param: error.param, message: error.message };
    },
  );

test('agents are models, and each answers a chat completion', async () => {
  const openai = clientOf(0);
  const models = await openai.models.list();
  assert.deepEqual(models.data.map(({ id }) => id).toSorted(), ['counter', 'hopline', 'writer']);
  assert.equal((await openai.models.retrieve('writer')).id, 'writer');
  const messages = [{ role: 'user' as const, content: 'hello' }];
  const written = await openai.chat.completions.create({ model: 'writer', messages, temperature: 0 });
  assert.equal(written.choices[0]!.message.content, 'You wrote: hello');
  assert.equal(written.choices[0]!.finish_reason, 'stop');
  const counted = await openai.chat.completions.create({ model: 'counter', messages });
  assert.equal(counted.choices[0]!.message.content, WHOLE);
  assert.equal(await answerOf(counted.id), WHOLE);
});

test('earlier messages of a stateless client are text before the question', async () => {
  const { choices } = await clientOf(0).chat.completions.create({
    model: 'writer',
    messages: [
      { role: 'system', content: 'Be brief.' },
      { role: 'user', content: 'one' },
      { role: 'assistant', content: 'two' },
      { role: 'user', content: [{ type: 'text', text: 'three' }] },
    ],
  });
  assert.match(
    choices[0]!.message.content!,
    /system: Be brief\.\n\nuser: one\n\nassistant: two\n\nAnswer this message:\n\n+three$/,
  );
});

test('a chat with a context id answers the question of the agent', async () => {
  const openai = clientOf(0);
  const metadata = { context_id: `chat-${crypto.randomUUID()}` };
  const asked = { role: 'user' as const, content: 'ask me' };
  const first = await openai.chat.completions.create({ model: 'writer', messages: [asked], metadata });
  assert.equal(first.choices[0]!.message.content, 'Which color?');
  const stream = await openai.chat.completions.create({
    model: 'writer',
    metadata,
    stream: true,
    messages: [asked, { role: 'assistant', content: 'Which color?' }, { role: 'user', content: 'blue' }],
  });
  let text = '';
  for await (const chunk of stream) text += chunk.choices[0]?.delta.content ?? '';
  assert.equal(text, 'You wrote: blue');
});

test('a streamed chat has the whole answer once after a kill of a relay in mid-stream', { timeout: 120_000 }, async () => {
  const stream = await clientOf(0).chat.completions.create({
    model: 'counter',
    messages: [{ role: 'user', content: 'count' }],
    stream: true,
    stream_options: { include_usage: true },
  });
  let [text, id, chunks] = ['', '', 0];
  let reason: string | null = null;
  for await (const chunk of stream) {
    id = chunk.id;
    text += chunk.choices[0]?.delta.content ?? '';
    reason = chunk.choices[0]?.finish_reason ?? reason;
    chunks += 1;
    if (chunks === 20) void cluster.killRelays().then(() => cluster.startRelays());
  }
  assert.deepEqual([text, reason], [WHOLE, 'stop']);
  assert.equal(text, await answerOf(id));
});

test('a cut response stream resumes on another replica by sequence number, with the same events', {
  timeout: 120_000,
}, async () => {
  const events: OpenAI.Responses.ResponseStreamEvent[] = [];
  const stream = await clientOf(0).responses.create({ model: 'counter', input: 'count', stream: true, background: true });
  for await (const event of stream) {
    events.push(event);
    if (events.length === 15) break;
  }
  const { id } = (events[0] as OpenAI.Responses.ResponseCreatedEvent).response;
  const after = events.at(-1)!.sequence_number;
  const rest = await clientOf(1).responses.retrieve(id, { stream: true, starting_after: after });
  for await (const event of rest) events.push(event);
  assert.deepEqual(
    events.map(({ sequence_number: n }) => n),
    events.map((_, index) => index),
  );
  const deltas = events.flatMap(event => (event.type === 'response.output_text.delta' ? [event.delta] : []));
  assert.equal(deltas.join(''), WHOLE);
  const again = await collect(await clientOf(0).responses.retrieve(id, { stream: true }));
  assert.deepEqual(again, events);
  const whole = await clientOf(1).responses.retrieve(id);
  assert.deepEqual([whole.status, whole.output_text, whole.background, whole.model], ['completed', WHOLE, true, 'counter']);
  assert.equal(await answerOf(id), WHOLE);
});

test('a background response is polled, and previous_response_id continues its conversation', { timeout: 120_000 }, async () => {
  const openai = clientOf(0);
  let response = await openai.responses.create({ model: 'counter', input: 'count', background: true, metadata: { a: 'b' } });
  assert.equal(response.status, 'in_progress');
  assert.equal(response.metadata?.a, 'b');
  while (response.status === 'in_progress') response = await clientOf(1).responses.retrieve(response.id);
  assert.deepEqual([response.status, response.output_text], ['completed', WHOLE]);
  const next = await openai.responses.create({ model: 'writer', input: 'more', previous_response_id: response.id });
  assert.deepEqual([next.output_text, next.previous_response_id], ['You wrote: more', response.id]);
});

test('the answer to a question is the next response of the task, even with the package’s helper', async () => {
  const openai = clientOf(0);
  const asked = await openai.responses.create({ model: 'writer', input: 'ask me' });
  assert.deepEqual([asked.status, asked.output_text, asked.metadata?.state], ['completed', 'Which color?', 'input-required']);
  const stream = openai.responses.stream({ model: 'writer', input: 'blue', previous_response_id: asked.id });
  const answered = await stream.finalResponse();
  assert.deepEqual([answered.id, answered.output_text], [`${asked.id}.2`, 'You wrote: blue']);
  const read = await clientOf(1).responses.retrieve(answered.id);
  assert.deepEqual([read.output_text, read.previous_response_id], ['You wrote: blue', asked.id]);
  assert.equal((await clientOf(1).responses.retrieve(asked.id)).output_text, 'Which color?');
});

test('a response in progress can be canceled; one that has ended stays as it is', { timeout: 120_000 }, async () => {
  const openai = clientOf(0);
  const running = await openai.responses.create({ model: 'counter', input: 'endless', background: true });
  const canceled = await openai.responses.cancel(running.id);
  assert.equal(canceled.status, 'cancelled');
  assert.equal((await clientOf(1).responses.cancel(running.id)).status, 'cancelled');
});

test('failures and wrong requests have the form and status of OpenAI', async () => {
  const openai = clientOf(0);
  const messages = [{ role: 'user' as const, content: 'hello' }];
  const chat = (more: object) => failure(openai.chat.completions.create({ model: 'writer', messages, ...more }));
  const unknown = await chat({ model: 'gpt-0' });
  assert.deepEqual([unknown.status, unknown.code, unknown.param], [404, 'model_not_found', 'model']);
  const several = await chat({ n: 2 });
  assert.deepEqual([several.status, several.code, several.param], [400, 'unsupported_parameter', 'n']);
  const tools = await chat({ tools: [{ type: 'function', function: { name: 'f' } }] });
  assert.deepEqual([tools.status, tools.param], [400, 'tools']);
  assert.equal((await chat({ messages: [{ role: 'assistant', content: 'x' }] })).param, 'messages');
  const failed = await chat({ messages: [{ role: 'user', content: 'fail' }] });
  assert.deepEqual([failed.status, failed.code], [500, 'task_failed']);
  assert.match(failed.message, /no ink/);
  const response = await openai.responses.create({ model: 'writer', input: 'fail' });
  assert.deepEqual([response.status, response.error?.code], ['failed', 'server_error']);
  const missing = await failure(openai.responses.retrieve('resp_01b8dac5-b9dd-7000-8000-1c0700000007'));
  assert.deepEqual([missing.status, missing.code], [404, 'response_not_found']);
  assert.equal((await failure(openai.responses.create({ model: 'writer', input: 'x', previous_response_id: 'y' }))).status, 404);
  assert.equal((await failure(openai.responses.delete(response.id))).status, 405);
  assert.equal((await failure(openai.responses.retrieve(`${response.id}.7`))).status, 404);
  const noTurn = await openai.responses.retrieve(`${response.id}.7`, { stream: true });
  assert.equal((await failure(noTurn[Symbol.asyncIterator]().next())).code, 'response_not_found');
  const key = { headers: { 'idempotency-key': crypto.randomUUID() } };
  const [one, two] = await Promise.all([
    openai.chat.completions.create({ model: 'writer', messages }, key),
    clientOf(1).chat.completions.create({ model: 'writer', messages }, key),
  ]);
  assert.equal(one.id, two.id);
});

test('a chat of Open WebUI is one task for each message, and its requests for a title and tags start none', async () => {
  const chatId = crypto.randomUUID();
  const post = async (body: object) => {
    const response = await fetch(`${cluster.ingresses[1]!.url}/v1/chat/completions`, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        authorization: 'Bearer unused',
        'x-openwebui-chat-id': chatId,
        'x-openwebui-user-name': 'Ann',
        'x-openwebui-user-id': crypto.randomUUID(),
        'x-openwebui-user-role': 'user',
      },
      body: JSON.stringify({ model: 'writer', ...body }),
    });
    assert.equal(response.status, 200);
    return response;
  };
  const system = { role: 'system', content: 'Be brief.' };
  const first = { role: 'user', content: 'one' };
  const streamed = { stream: true, stream_options: { include_usage: true } };
  const textOf = async (response: Response) => {
    const frames = [...(await response.text()).matchAll(/^data: (\{.*)$/gm)].map(
      ([, data]) => JSON.parse(data!) as OpenAI.ChatCompletionChunk,
    );
    return frames.map(({ choices }) => choices[0]?.delta.content ?? '').join('');
  };
  assert.match(await textOf(await post({ messages: [system, first], ...streamed })), /^You wrote: .*one$/s);
  const history = '### Chat History:\n<chat_history>\nUSER: one\nASSISTANT: You wrote: one\n</chat_history>';
  for (const [wanted, content] of [
    ['title', '{"title":"one"}'],
    ['tags', '{"tags":[]}'],
    ['follow_ups', '{"follow_ups":[]}'],
  ]) {
    const prompt = `### Task:\nDescribe the chat.\n### Output:\nJSON format: { "${wanted}": "…" }\n${history}`;
    const response = await post({ messages: [{ role: 'user', content: prompt }], stream: false, max_completion_tokens: 1_000 });
    const { choices, object } = (await response.json()) as OpenAI.ChatCompletion;
    assert.deepEqual([object, choices[0]!.message.content], ['chat.completion', content]);
  }
  const answer = { role: 'assistant', content: 'You wrote: one' };
  const next = await post({ messages: [system, first, answer, { role: 'user', content: 'two' }], ...streamed });
  assert.equal(await textOf(next), 'You wrote: two');
  const response = await fetch(`${cluster.url}/tasks?contextId=${chatId}`, { headers: { 'a2a-version': '1.0' } });
  assert.equal(((await response.json()) as { tasks: unknown[] }).tasks.length, 2);
});

test('the code of the guide runs', { timeout: 120_000 }, async () => {
  const guide = new Guide('openai.md');
  const code = guide.block('new OpenAI(').replaceAll('http://127.0.0.1:8000', cluster.ingresses[0]!.url);
  const cwd = fileURLToPath(new URL('..', import.meta.url));
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '--eval', code], { cwd });
  assert.match(stdout, /hopline\ncounter\nwriter\nYou wrote: hello\nYou wrote: hello again\nYou wrote: and more\n/);
  guide.assertAllTaken();
});
