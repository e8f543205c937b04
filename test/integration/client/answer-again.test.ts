import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { text } from 'node:stream/consumers';
import { type TestContext, test } from 'node:test';
import { HoplineChatTransport } from '@hopline/client/ai-sdk';
import { createClient, type TaskClient } from '@hopline/client/tasks';
import { openRig } from '../../../packages/a2a-http/src/http-server.test-kit.ts';
import { listen } from '../../kit/listen.ts';
import { PythonDriver } from '../../support/python/python-driver.ts';
import { pythonWithHttpx } from '../../support/python/python-with-httpx.ts';

const found = await pythonWithHttpx();
const python = 'python' in found ? found.python : '';
const skip = 'skip' in found ? found.skip : false;

const CONTEXT = 'c';
const NEW = 'The first half, the second half.';

type Profile = 'transparent' | 'caipe';
type When = 'while its turn runs' | 'after its turn has ended';

/**
 * A task that has answered "Old. " and asked, at a server behind a proxy. The proxy breaks the first connection with the answer to the question
 * once the task has it, before an event.
 */
async function openQuestion(
  t: TestContext,
  profile: Profile,
  when: When,
): Promise<{ url: string; taskId: string; methods: string[] }> {
  const rig = await openRig(t, { profile });
  const { relay } = rig;
  const name = profile === 'caipe' ? 'streaming_result' : 'response';
  const cut = Promise.withResolvers<void>();
  const isRepeated = Promise.withResolvers<void>();
  relay.onClient = async (taskId, { turn }) => {
    const lane = `l${turn}`;
    await relay.publish(taskId, { kind: 'status', state: 'TASK_STATE_WORKING' });
    await relay.openArtifact(taskId, lane, name);
    if (turn === 1) {
      await relay.text(taskId, lane, 'Old. ', true);
      return relay.end(taskId, 'INPUT_REQUIRED');
    }
    await relay.text(taskId, lane, 'The first half, ');
    if (when === 'while its turn runs') {
      cut.resolve();
      await isRepeated.promise;
    }
    await relay.text(taskId, lane, 'the second half.', true);
    if (profile === 'caipe') {
      const artifact = { name: 'partial_result', description: 'Partial result' };
      await relay.publish(taskId, {
        kind: 'artifact',
        lane: 'result',
        artifact,
        parts: [{ text: NEW }],
        append: false,
        last: true,
      });
    }
    await relay.end(taskId);
    cut.resolve();
  };
  const task = await createClient({ url: rig.url }).send({ contextId: CONTEXT, parts: [{ text: 'paint it' }] });
  assert.ok('task' in task);
  const methods: string[] = [];
  const proxy = createServer(async (request, response) => {
    const body = await text(request);
    methods.push(JSON.parse(body).method);
    const headers = { 'content-type': 'application/json', 'a2a-version': '1.0' };
    const lastEventId = request.headers['last-event-id'];
    const upstream = await fetch(rig.url, {
      method: 'POST',
      headers: lastEventId === undefined ? headers : { ...headers, 'last-event-id': String(lastEventId) },
      body,
    });
    if (methods.length === 1) {
      await cut.promise;
      request.socket.destroy();
      return upstream.body?.cancel();
    }
    response.writeHead(upstream.status, { 'content-type': upstream.headers.get('content-type') ?? '' });
    for await (const chunk of upstream.body!) {
      response.write(chunk);
      if (Buffer.from(chunk).includes('data: ')) isRepeated.resolve();
    }
    response.end();
  });
  const origin = await listen(proxy);
  t.after(() => proxy.close());
  return { url: `${origin}/`, taskId: task.task.id, methods };
}

/** The text that a chat of the AI SDK shows. */
async function chatAnswer(client: TaskClient, taskId: string): Promise<string> {
  const asked = { role: 'assistant', metadata: { hopline: { state: 'input-required', taskId } }, parts: [] };
  const answer = { id: 'm2', role: 'user', parts: [{ type: 'text', text: 'blue' }] };
  const stream = await new HoplineChatTransport({ client }).sendMessages({
    trigger: 'submit-message',
    chatId: CONTEXT,
    messages: [asked, answer],
    abortSignal: undefined,
  });
  let shown = '';
  for await (const chunk of stream) if (chunk.type === 'text-delta') shown += chunk.delta;
  return shown;
}

for (const profile of ['transparent', 'caipe'] as const)
  for (const when of ['while its turn runs', 'after its turn has ended'] as const) {
    test(`an answer to a question of profile ${profile} that is sent again ${when} shows the text of its turn`, async t => {
      const { url, taskId, methods } = await openQuestion(t, profile, when);
      const client = createClient({ url, retry: { baseMs: 1 } });
      assert.equal(await client.ask({ taskId, parts: [{ text: 'blue' }] }), NEW);
      assert.deepEqual(methods, ['SendStreamingMessage', 'SendStreamingMessage']);
    });

    test(`a chat of the AI SDK shows the text of the turn, for profile ${profile}, ${when}`, async t => {
      const { url, taskId, methods } = await openQuestion(t, profile, when);
      assert.equal(await chatAnswer(createClient({ url, retry: { baseMs: 1 } }), taskId), NEW);
      assert.deepEqual(methods, ['SendStreamingMessage', 'SendStreamingMessage']);
    });

    test(`the same in Python, for profile ${profile}, ${when}`, { skip }, async t => {
      const { url, taskId, methods } = await openQuestion(t, profile, when);
      await using driver = new PythonDriver(python);
      const answer = await driver.call<{ text: string }>('ask', { url, question: 'blue', task: taskId });
      assert.equal(answer.text, NEW);
      assert.deepEqual(methods, ['SendStreamingMessage', 'SendStreamingMessage']);
    });
  }
