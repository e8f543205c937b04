import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { type Client, createClient } from '@hopline/client';
import { HoplineChatTransport } from '@hopline/client/ai-sdk';
import {
  type ChatTransport,
  DefaultChatTransport,
  lastAssistantMessageIsCompleteWithApprovalResponses,
  type UIMessage,
} from 'ai';
import { until } from '../../kit/until.ts';
import { type RemoteAgent, startRemoteAgent } from '../../support/agents/remote-agent.ts';
import { Cluster } from '../../support/cluster/cluster.ts';
import { HeadlessChat, textOf } from './headless-chat.ts';

const TOKENS = Array.from({ length: 100 }, (_, index) => `${index} 🎯\n`);
const ANSWER = TOKENS.join('');
const AGENTS = ['counter', 'parrot'];

const remotes: RemoteAgent[] = [];
const clusters = new Map<string, Cluster>();

before(async () => {
  for (const name of AGENTS)
    remotes.push(
      await startRemoteAgent({
        dialect: '0.3',
        script: async function* ({ text, turn }) {
          if (text.includes('fail')) return yield { fail: true, text: 'no such city' };
          if (text.includes('ask back') && turn === 1) {
            yield { token: 'Let me see. ' };
            return yield { inputRequired: 'Which one?' };
          }
          if (name === 'parrot') {
            yield { token: `parrot: ${text}` };
            return yield { complete: true };
          }
          for (const token of TOKENS) {
            yield { token };
            yield { pause: 12 };
          }
          if (text.includes('endless')) yield { hang: true };
          yield { complete: true };
        },
      }),
    );
  const agents = AGENTS.map((name, index) => ({ name, adapter: 'a2a', url: remotes[index]!.url }));
  const path = fileURLToPath(new URL('../../support/agents/approving-agent.ts', import.meta.url));
  const refunds = { name: 'refunds', adapter: 'module', path };
  clusters.set('caipe', await Cluster.shared({ replicas: 2, agents: [...agents, refunds] }));
  // The agents above serve this profile, too.
  clusters.set('transparent', await Cluster.shared({ replicas: 2, profile: 'transparent', agents: [] }));
});

after(async () => {
  for (const cluster of clusters.values()) await cluster[Symbol.asyncDispose]();
  for (const remote of remotes) await remote.close();
});

const apiOf = (cluster: Cluster, ingress = 0) => `${cluster.ingresses[ingress]!.url.replace(/\/$/, '')}/ui/chat`;

/** A tab of a page: the chat with what the page has stored of it. */
function tab(transport: ChatTransport<UIMessage>, id: string, messages: UIMessage[] = []) {
  const errors: Error[] = [];
  const chat = new HeadlessChat({ id, transport, messages, onError: error => errors.push(error) });
  return { chat, errors };
}

const unchanged = (cluster: Cluster, ingress = 0) =>
  new DefaultChatTransport<UIMessage>({ api: apiOf(cluster, ingress), body: { agent: 'counter' } });

/** The answer of the newest task of a chat, as the log has it. */
async function storedAnswer(client: Client, contextId: string): Promise<string> {
  const { tasks } = await client.list({ contextId });
  let answer = '';
  for await (const view of client.watch(tasks[0]!.id)) answer = view.answer;
  return answer;
}

/** The newest call of a chat that asks for an approval, or has asked. */
function partOf({ lastMessage }: HeadlessChat) {
  const calls = (lastMessage?.parts ?? []).flatMap(part => (part.type === 'dynamic-tool' ? [part] : []));
  return calls.findLast(({ approval }) => approval !== undefined);
}

const hasText = (chat: HeadlessChat, characters: number) => until(() => textOf(chat.lastMessage).length > characters);

for (const profile of ['caipe', 'transparent']) {
  const clusterOf = () => clusters.get(profile)!;
  const clientOf = () => createClient({ url: clusterOf().url });

  test(`${profile}: the unchanged chat streams an answer once, and a reload and a second tab resume it`, {
    timeout: 90_000,
  }, async () => {
    const id = randomUUID();
    const { chat, errors } = tab(unchanged(clusterOf()), id);
    const sent = chat.sendMessage({ text: 'count' });
    await hasText(chat, 50);
    // After a reload the page still has what it stored; the second tab has only the user's message. Both use the other ingress.
    const reloaded = tab(unchanged(clusterOf(), 1), id, chat.messages);
    const second = tab(unchanged(clusterOf(), 1), id, chat.messages.slice(0, 1));
    await Promise.all([sent, reloaded.chat.resumeStream(), second.chat.resumeStream()]);
    for (const one of [chat, reloaded.chat, second.chat]) {
      assert.equal(textOf(one.lastMessage), ANSWER);
      assert.equal(one.messages.length, 2);
      assert.equal(one.status, 'ready');
    }
    assert.equal(ANSWER, await storedAnswer(clientOf(), id));
    assert.deepEqual([...errors, ...reloaded.errors, ...second.errors], []);
    assert.deepEqual(second.chat.lastMessage?.parts, chat.lastMessage?.parts);
    assert.equal((chat.lastMessage!.metadata as { hopline: { state: string } }).hopline.state, 'completed');
    if (profile === 'caipe') {
      const [tool] = chat.lastMessage!.parts.filter(part => part.type === 'dynamic-tool');
      assert.deepEqual([tool?.toolName, tool?.state], ['counter', 'output-available']);
      assert.match(chat.lastMessage!.parts.map(part => (part.type === 'reasoning' ? part.text : '')).join(''), /Execution Plan/);
    }
    // Nothing runs any more.
    await second.chat.resumeStream();
    assert.equal(textOf(second.chat.lastMessage), ANSWER);
  });

  test(`${profile}: the unchanged chat is whole after a killed ingress and a killed relay`, { timeout: 180_000 }, async () => {
    const cluster = clusterOf();
    const id = randomUUID();
    const { chat, errors } = tab(unchanged(cluster), id);
    const sent = chat.sendMessage({ text: 'count' });
    await hasText(chat, 50);
    await Promise.all([cluster.ingresses[0]!.kill('SIGKILL'), cluster.killRelays()]);
    await sent;
    assert.deepEqual([chat.status, errors.length], ['error', 1]);
    await Promise.all([cluster.ingresses[0]!.start(), cluster.startRelays()]);
    await chat.resumeStream();
    assert.equal(ANSWER, await storedAnswer(clientOf(), id));
    assert.equal(textOf(chat.lastMessage), ANSWER);
    assert.deepEqual([chat.status, chat.messages.length], ['ready', 2]);
  });

  test(`${profile}: with the transport of the client the chat notices neither`, { timeout: 180_000 }, async () => {
    const cluster = clusterOf();
    const id = randomUUID();
    const { chat, errors } = tab(new HoplineChatTransport({ client: clientOf(), agent: 'counter' }), id);
    const sent = chat.sendMessage({ text: 'count' });
    await hasText(chat, 50);
    await Promise.all([cluster.ingresses[0]!.kill('SIGKILL'), cluster.killRelays()]);
    await Promise.all([cluster.ingresses[0]!.start(), cluster.startRelays()]);
    await sent;
    assert.deepEqual([errors, chat.status, textOf(chat.lastMessage)], [[], 'ready', ANSWER]);
    assert.equal(ANSWER, await storedAnswer(clientOf(), id));
  });

  for (const kind of ['unchanged', 'client'] as const) {
    const transportOf = () =>
      kind === 'unchanged' ? unchanged(clusterOf()) : new HoplineChatTransport({ client: clientOf(), agent: 'counter' });

    test(`${profile}, ${kind}: the next message answers the question of the agent`, { timeout: 120_000 }, async () => {
      const id = randomUUID();
      const { chat, errors } = tab(transportOf(), id);
      await chat.sendMessage({ text: 'ask back' });
      assert.match(textOf(chat.lastMessage), /^(Let me see\. )?Which one\?$/);
      assert.equal((chat.lastMessage!.metadata as { hopline: { state: string } }).hopline.state, 'input-required');
      const sent = chat.sendMessage({ text: 'this one' });
      await until(() => chat.messages.length === 4 && textOf(chat.lastMessage).length > 50);
      // A reload in the second turn shows only that turn as the new message.
      const reloaded = tab(transportOf(), id, chat.messages.slice(0, 3));
      await Promise.all([sent, reloaded.chat.resumeStream()]);
      for (const one of [chat, reloaded.chat]) {
        assert.deepEqual(
          one.messages.map(({ role }) => role),
          ['user', 'assistant', 'user', 'assistant'],
        );
        assert.equal(textOf(one.lastMessage), ANSWER);
      }
      assert.equal((await clientOf().list({ contextId: id })).tasks.length, 1);
      assert.deepEqual([...errors, ...reloaded.errors], []);
    });

    const asking = (id: string, messages: UIMessage[] = []) => {
      const transport =
        kind === 'unchanged'
          ? new DefaultChatTransport<UIMessage>({ api: apiOf(clusterOf()), body: { agent: 'refunds' } })
          : new HoplineChatTransport({ client: clientOf(), agent: 'refunds' });
      const errors: Error[] = [];
      const sendAutomaticallyWhen = lastAssistantMessageIsCompleteWithApprovalResponses;
      const onError = (error: Error) => void errors.push(error);
      return { chat: new HeadlessChat({ id, transport, messages, onError, sendAutomaticallyWhen }), errors };
    };

    test(`${profile}, ${kind}: a call waits for its approval, runs, and continues the same message`, {
      timeout: 120_000,
    }, async () => {
      const id = randomUUID();
      const { chat, errors } = asking(id);
      await chat.sendMessage({ text: '17' });
      const waiting = partOf(chat);
      assert.deepEqual([waiting?.state, waiting?.toolName, waiting?.input], ['approval-requested', 'refund', { order: '17' }]);
      await chat.addToolApprovalResponse({ id: waiting!.approval!.id, approved: true });
      await until(() => textOf(chat.lastMessage).includes('50 '));
      // A page that is opened in the turn of the answer shows the whole message: the question, the decision, and the text after it.
      const opened = asking(id, chat.messages.slice(0, 1));
      await Promise.all([until(() => chat.status === 'ready'), opened.chat.resumeStream()]);
      for (const one of [chat, opened.chat]) {
        assert.deepEqual(
          one.messages.map(({ role }) => role),
          ['user', 'assistant'],
        );
        const { state, approval } = partOf(one)!;
        assert.deepEqual([state, approval?.approved], ['output-available', true]);
        assert.equal((partOf(one) as { output?: unknown }).output, 'paid 17');
        const shown = one.lastMessage!.parts.filter(part => part.type === 'dynamic-tool' && part.toolName === 'refund');
        assert.equal(shown.length, 1);
        assert.match(textOf(one.lastMessage), /^Let me see\. .*Pay order 17 back\?0 1 .* 99 paid 17$/);
        assert.equal((one.lastMessage!.metadata as { hopline: { state: string } }).hopline.state, 'completed');
      }
      assert.deepEqual(opened.chat.lastMessage?.id, chat.lastMessage?.id);
      assert.equal((await clientOf().list({ contextId: id })).tasks.length, 1);
      assert.deepEqual([...errors, ...opened.errors], []);
    });

    test(`${profile}, ${kind}: a denied call does not run, and only the first decision counts`, {
      timeout: 120_000,
    }, async () => {
      const id = randomUUID();
      const { chat, errors } = asking(id);
      await chat.sendMessage({ text: '18' });
      const second = asking(id, chat.messages);
      const approvalId = partOf(chat)!.approval!.id;
      await chat.addToolApprovalResponse({ id: approvalId, approved: false, reason: 'too late' });
      await until(() => chat.status === 'ready' && partOf(chat)?.state === 'output-denied');
      assert.match(textOf(chat.lastMessage), /Not paid: too late$/);
      assert.equal((chat.lastMessage!.metadata as { hopline: { state: string } }).hopline.state, 'completed');
      await second.chat.addToolApprovalResponse({ id: approvalId, approved: true });
      await until(() => second.errors.length > 0);
      const { tasks } = await clientOf().list({ contextId: id });
      assert.deepEqual([tasks.length, tasks[0]!.status.state, errors], [1, 'TASK_STATE_COMPLETED', []]);
    });

    test(`${profile}, ${kind}: a failure is an error with its reason`, { timeout: 120_000 }, async () => {
      const { chat, errors } = tab(transportOf(), randomUUID());
      await chat.sendMessage({ text: 'fail' });
      assert.equal(chat.status, 'error');
      assert.match(errors[0]!.message, profile === 'transparent' ? /no such city/ : /./);
    });

    test(`${profile}, ${kind}: a message chooses its agent`, { timeout: 120_000 }, async () => {
      const { chat } = tab(transportOf(), randomUUID());
      await chat.sendMessage({ text: 'hello' }, { body: { agent: 'parrot' } });
      assert.match(textOf(chat.lastMessage), /^parrot: .*hello/s);
      await chat.sendMessage({ text: 'count' }, { body: { agent: 'counter' } });
      assert.equal(textOf(chat.lastMessage), ANSWER);
      assert.equal(chat.messages.length, 4);
    });

    test(`${profile}, ${kind}: an answer is regenerated by another task, and an edited message is answered`, {
      timeout: 120_000,
    }, async () => {
      const id = randomUUID();
      const { chat } = tab(transportOf(), id);
      const options = { body: { agent: 'parrot' } };
      await chat.sendMessage({ text: 'hello' }, options);
      await chat.regenerate(options);
      assert.match(textOf(chat.lastMessage), /^parrot: .*hello/s);
      assert.equal(chat.messages.length, 2);
      assert.equal((await clientOf().list({ contextId: id })).tasks.length, 2);
      await chat.sendMessage({ text: 'good evening', messageId: chat.messages[0]!.id }, options);
      assert.match(textOf(chat.lastMessage), /^parrot: .*good evening/s);
      assert.deepEqual([chat.status, chat.messages.length], ['ready', 2]);
    });
  }

  test(`${profile}: stop after a resume cancels the task with the transport of the client`, { timeout: 120_000 }, async () => {
    const id = randomUUID();
    const transport = () => new HoplineChatTransport({ client: clientOf(), agent: 'counter' });
    const { chat } = tab(transport(), id);
    const sent = chat.sendMessage({ text: 'endless' });
    await hasText(chat, 20);
    const reloaded = tab(transport(), id, chat.messages);
    const first = reloaded.chat.resumeStream();
    // React's strict mode resumes twice. The first resume is aborted, which cancels nothing.
    const resumed = reloaded.chat.resumeStream();
    await until(() => reloaded.chat.status === 'streaming' && textOf(reloaded.chat.lastMessage).length > 20);
    assert.equal((await clientOf().list({ contextId: id })).tasks[0]!.status.state, 'TASK_STATE_WORKING');
    await reloaded.chat.stop();
    await Promise.all([first, resumed, sent]);
    await until(async () => (await clientOf().list({ contextId: id })).tasks[0]!.status.state === 'TASK_STATE_CANCELED');
    assert.deepEqual([chat.status, reloaded.chat.status], ['ready', 'ready']);
  });

  test(`${profile}: stop before the first event cancels the task, and leave does not`, { timeout: 120_000 }, async () => {
    const stateOf = async (id: string) => (await clientOf().list({ contextId: id })).tasks[0]?.status.state;
    const canceled = randomUUID();
    const { chat } = tab(new HoplineChatTransport({ client: clientOf(), agent: 'counter' }), canceled);
    const sent = chat.sendMessage({ text: 'endless' });
    // The request is sent in this turn of the event loop, and no event can arrive in it.
    await setImmediate();
    assert.equal(chat.status, 'submitted');
    await chat.stop();
    await sent;
    await until(async () => (await stateOf(canceled)) === 'TASK_STATE_CANCELED');
    const left = randomUUID();
    const other = tab(new HoplineChatTransport({ client: clientOf(), agent: 'counter', onStop: 'leave' }), left);
    const counting = other.chat.sendMessage({ text: 'count' });
    await hasText(other.chat, 20);
    await other.chat.stop();
    await counting;
    await until(async () => (await stateOf(left)) === 'TASK_STATE_COMPLETED');
  });

  test(`${profile}: stop of the unchanged chat closes the stream, and POST stop cancels the task`, {
    timeout: 120_000,
  }, async () => {
    const id = randomUUID();
    const { chat } = tab(unchanged(clusterOf()), id);
    const sent = chat.sendMessage({ text: 'endless' });
    await hasText(chat, 20);
    await chat.stop();
    await sent;
    const resumed = tab(unchanged(clusterOf()), id, chat.messages);
    const streaming = resumed.chat.resumeStream();
    await until(() => resumed.chat.status === 'streaming');
    const headers = { 'content-type': 'application/json' };
    const stop = () => fetch(`${apiOf(clusterOf(), 1)}/${id}/stop`, { method: 'POST', headers, body: '{}' });
    const stopped = await stop();
    assert.deepEqual([stopped.status, ((await stopped.json()) as { state: string }).state], [200, 'canceled']);
    await streaming;
    assert.equal((resumed.chat.lastMessage!.metadata as { hopline: { state: string } }).hopline.state, 'canceled');
    assert.equal((await stop()).status, 204);
  });
}

test('the head of a stream, and wrong requests, have the right headers and codes', { timeout: 120_000 }, async () => {
  const cluster = clusters.get('transparent')!;
  const api = apiOf(cluster);
  const post = (body: unknown, headers: Record<string, string> = {}) =>
    fetch(api, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: typeof body === 'string' ? body : JSON.stringify(body),
    });
  const message = { id: randomUUID(), role: 'user', parts: [{ type: 'text', text: 'hello' }] };
  const good = await post({ id: randomUUID(), messages: [message] }, { 'hopline-agent': 'parrot' });
  assert.deepEqual([good.status, good.headers.get('x-vercel-ai-ui-message-stream')], [200, 'v1']);
  assert.match(good.headers.get('content-type')!, /^text\/event-stream/);
  const text = await good.text();
  assert.match(text, /parrot: .*hello/);
  assert.match(text, /data: \[DONE\]\n\n$/);
  const wrong: [unknown, number, RegExp][] = [
    ['{', 400, /./],
    [[], 400, /the body must be a JSON object/],
    [{ messages: [message] }, 400, /id must be the id of the chat/],
    [{ id: 'x'.repeat(300), messages: [message] }, 400, /contextId/],
    [{ id: 'c', messages: [{ ...message, role: 'assistant' }] }, 400, /must be a message of the user/],
    [{ id: 'c', messages: [message], agent: 1 }, 400, /agent must be a string/],
    ['x'.repeat(20_000_000), 413, /./],
  ];
  for (const [body, status, pattern] of wrong) {
    const response = await post(body);
    assert.equal(response.status, status, JSON.stringify(body).slice(0, 80));
    assert.match(await response.text(), pattern);
  }
  assert.equal((await post('x', { 'content-type': 'text/plain' })).status, 415);
  assert.equal((await fetch(`${api}/${randomUUID()}/stream`)).status, 204);
  const asked = { id: 'a', role: 'assistant', parts: [], metadata: { hopline: { taskId: 'none', state: 'input-required' } } };
  assert.equal((await post({ id: 'c', messages: [asked, { ...message, id: randomUUID() }] })).status, 404);
});
