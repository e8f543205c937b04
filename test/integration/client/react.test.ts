import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, test } from 'node:test';
import { approvalRequestParts } from '@hopline/a2a';
import { approvalResponse, createClient, type TaskSnapshot } from '@hopline/client/tasks';
import { Window } from 'happy-dom';
import { until } from '../../kit/until.ts';
import { type RemoteAgent, startRemoteAgent } from '../../support/agents/remote-agent.ts';
import { Cluster } from '../../support/cluster/cluster.ts';

/** React reads these globals when it is loaded. The `fetch` of the page stays that of Node. */
const page = new Window({ url: 'http://127.0.0.1/' });
Object.assign(globalThis, { window: page, document: page.document, IS_REACT_ACT_ENVIRONMENT: false });
const { createElement, StrictMode } = await import('react');
const { createRoot, hydrateRoot } = await import('react-dom/client');
const { renderToString } = await import('react-dom/server');
const { useHoplineChat, useTask } = await import('@hopline/react');

const TOKENS = Array.from({ length: 80 }, (_, index) => `${index} 🎯 `);
const ANSWER = TOKENS.join('');
const HALF = TOKENS.length / 2;
const APPROVAL = { callId: 'call-1', tool: 'refund', arguments: { order: '17' } };

let remote: RemoteAgent;
let cluster: Cluster;
/** Lets the agent of the newest task write the second half of its answer. */
let half = Promise.withResolvers<void>();

before(async () => {
  remote = await startRemoteAgent({
    dialect: '1.0',
    script: async function* ({ text, turn, params }) {
      if (turn === 1 && text.includes('refund order 17')) {
        yield { status: 'input-required', parts: approvalRequestParts(APPROVAL) as Record<string, unknown>[] };
        return;
      }
      if (turn === 2 && text.includes('Approved')) {
        const { parts } = (params as { message: { parts: { data?: unknown }[] } }).message;
        yield { token: JSON.stringify(parts.find(({ data }) => data !== undefined)?.data) };
        return yield { complete: true };
      }
      if (text === 'ask me' && turn === 1) {
        yield { token: 'Hm. ' };
        yield { inputRequired: 'which one?' };
        return;
      }
      const { promise } = half;
      for (const [index, token] of TOKENS.entries()) {
        if (index === HALF) await promise;
        yield { token };
      }
      yield { complete: true };
    },
  });
  cluster = await Cluster.shared({ agents: [{ name: 'halves', adapter: 'a2a', url: remote.url }] });
});

after(async () => {
  await cluster?.[Symbol.asyncDispose]();
  await remote?.close();
  await page.happyDOM.close();
});

const client = () => createClient({ url: cluster.url });

type Rendered = { answer: string; status: string };
type TaskProps = { from: ReturnType<typeof client>; id: string; initial?: TaskSnapshot; onRender?: (rendered: Rendered) => void };

function TaskPage({ from, id, initial, onRender }: TaskProps) {
  const { view, status } = useTask(from, id, { initial });
  onRender?.({ answer: view.answer, status });
  return createElement('article', { title: status }, view.answer);
}

test('the first view comes from the server, and the page continues after it without a repeated or missing text', {
  timeout: 90_000,
}, async () => {
  half = Promise.withResolvers();
  const sent = await client().send('count', { blocking: false });
  assert.ok('task' in sent);
  const { id } = sent.task;
  let made: TaskSnapshot;
  await until(async () => {
    made = await client().snapshot(id);
    return (made.event.task.artifacts ?? []).some(({ parts }) => JSON.stringify(parts).includes(`${HALF - 1} 🎯`));
  });
  const html = renderToString(createElement(TaskPage, { from: client(), id, initial: made! }));
  const firstHalf = TOKENS.slice(0, HALF).join('');
  assert.ok(html.includes(firstHalf), html);

  const element = page.document.createElement('main');
  element.innerHTML = html;
  const mismatches: unknown[] = [];
  const rendered: Rendered[] = [];
  const requests: { cursor: string | null; method: string }[] = [];
  const counted: typeof fetch = async (input, init) => {
    const { method } = JSON.parse(String(init?.body));
    requests.push({ cursor: new Headers(init?.headers).get('last-event-id'), method });
    return fetch(input, init);
  };
  const initial = JSON.parse(JSON.stringify(made!)) as TaskSnapshot;
  const root = hydrateRoot(
    element as never,
    createElement(TaskPage, {
      from: createClient({ url: cluster.url, fetch: counted }),
      id,
      initial,
      onRender: one => void rendered.push(one),
    }),
    { onRecoverableError: error => mismatches.push(error) },
  );
  await until(() => requests.length > 0);
  half.resolve();
  await until(() => rendered.at(-1)?.status === 'ended');
  root.unmount();
  assert.equal(element.textContent, '');
  assert.deepEqual(mismatches, []);
  assert.equal(rendered[0]?.answer, firstHalf);
  assert.equal(rendered.at(-1)?.answer, ANSWER);
  for (const [index, { answer }] of rendered.entries())
    if (index > 0) assert.ok(answer.startsWith(rendered[index - 1]!.answer), 'text is only added');
  assert.deepEqual(requests, [{ method: 'SubscribeToTask', cursor: made!.cursor }]);
  assert.ok(made!.cursor !== undefined && made!.cursor !== '0.0');

  // A page of the task that has ended needs no stream.
  const ended = await client().snapshot(id);
  assert.ok(renderToString(createElement(TaskPage, { from: client(), id, initial: ended })).includes(ANSWER));
  assert.equal(ended.cursor, undefined);
});

type Chat = ReturnType<typeof useHoplineChat>;

type Tasks = Awaited<ReturnType<ReturnType<typeof client>['list']>>['tasks'];

function openChat(contextId: string, initial?: Tasks, from = client()) {
  const shown: { chat: Chat | undefined } = { chat: undefined };
  const ChatPage = () => {
    shown.chat = useHoplineChat(from, { contextId, initial });
    return createElement('p', null, shown.chat.messages.at(-1)?.text);
  };
  const element = page.document.createElement('main');
  const root = createRoot(element as never);
  root.render(createElement(StrictMode, null, createElement(ChatPage)));
  const texts = () => shown.chat!.messages.map(({ role, text }) => `${role}: ${text}`);
  return { chat: () => shown.chat, texts, isShown: () => element.textContent ?? '', close: () => root.unmount() };
}

test('a chat sends and streams, and after a reload in mid-answer it shows the chat and continues', {
  timeout: 90_000,
}, async () => {
  const contextId = randomUUID();
  half = Promise.withResolvers();
  const first = openChat(contextId);
  await until(() => first.chat()?.status === 'ready');
  await first.chat()!.send('count');
  await until(() => first.chat()!.status === 'streaming' && first.isShown().includes(`${HALF - 1} 🎯`));
  first.close();

  const second = openChat(contextId);
  await until(() => second.chat()?.status === 'streaming');
  const { tasks } = await client().list({ contextId, includeArtifacts: true });
  const third = openChat(contextId, tasks);
  await until(() => third.isShown().includes(`${HALF - 1} 🎯`));
  half.resolve();
  for (const one of [second, third]) {
    await until(() => one.chat()!.status === 'ready');
    assert.deepEqual(one.texts(), ['user: count', `agent: ${ANSWER}`]);
    assert.equal(one.chat()!.error, undefined);
    await until(() => one.isShown() === ANSWER);
    one.close();
  }
});

test('an agent asks, the next message answers it in the same task, and a reload has both turns in order', {
  timeout: 90_000,
}, async () => {
  const contextId = randomUUID();
  half = Promise.withResolvers();
  half.resolve();
  const first = openChat(contextId);
  await until(() => first.chat()?.status === 'ready');
  await first.chat()!.send('ask me');
  await until(() => first.chat()!.question?.text === 'which one?');
  assert.equal(first.chat()!.status, 'ready');
  await first.chat()!.send('that one');
  await until(() => first.chat()!.status === 'ready' && first.chat()!.question === undefined);
  const expected = ['user: ask me', 'agent: Hm. ', 'user: that one', `agent: ${ANSWER}`];
  assert.deepEqual(first.texts(), expected);
  assert.equal(first.chat()!.messages[1]?.question, 'which one?');
  assert.equal((await client().list({ contextId })).tasks.length, 1);
  const second = openChat(contextId);
  await until(() => second.chat()?.status === 'ready' && second.texts().length === 4);
  assert.deepEqual(second.texts(), expected);
  first.close();
  second.close();
});

test('a call is approved in the page, and the agent gets the decision', { timeout: 90_000 }, async () => {
  const { chat, texts, close } = openChat(randomUUID());
  await until(() => chat()?.status === 'ready');
  await chat()!.send('refund order 17');
  await until(() => chat()!.question !== undefined);
  const { approval, text } = chat()!.question!;
  assert.deepEqual([approval, text], [APPROVAL, 'Run refund with {"order":"17"}?']);
  await chat()!.send(approvalResponse(approval!, true));
  await until(() => chat()!.status === 'ready' && chat()!.question === undefined);
  assert.deepEqual(texts(), [
    'user: refund order 17',
    'agent: ',
    'user: Approved',
    'agent: {"approvalResponse":{"callId":"call-1","approved":true}}',
  ]);
  close();
});

test('stop cancels the task, even before its first event, and a failure is an error of the chat', {
  timeout: 90_000,
}, async () => {
  const contextId = randomUUID();
  half = Promise.withResolvers();
  const chat = openChat(contextId);
  await until(() => chat.chat()?.status === 'ready');
  const sent = chat.chat()!.send('count');
  await chat.chat()!.stop();
  await sent;
  await until(() => chat.chat()!.messages.at(-1)?.view?.state === 'TASK_STATE_CANCELED');
  assert.equal(chat.chat()!.status, 'ready');
  chat.close();
  half.resolve();

  const unreachable = createClient({ url: 'http://127.0.0.1:9/', retry: { unreachedTriesMax: 1, totalMsMax: 1 } });
  const shown: { chat: Chat | undefined } = { chat: undefined };
  const ChatPage = () => {
    shown.chat = useHoplineChat(unreachable, {});
    return null;
  };
  const root = createRoot(page.document.createElement('main') as never);
  root.render(createElement(ChatPage));
  await until(() => shown.chat?.status === 'ready');
  await shown.chat!.send('hello');
  await until(() => shown.chat!.status === 'error');
  assert.match(String(shown.chat!.error), /cannot be reached/);
  assert.deepEqual(
    shown.chat!.messages.map(({ text }) => text),
    ['hello'],
  );
  root.unmount();
});

test('an answer that the server refuses is an error, its question stays open, and the next answer is answered', {
  timeout: 90_000,
}, async () => {
  half = Promise.withResolvers();
  half.resolve();
  let refusals = 0;
  const refusing: typeof fetch = async (input, init) => {
    if (refusals === 0 || !String(init?.body).includes('"SendMessage"')) return fetch(input, init);
    refusals -= 1;
    const error = { code: -32602, message: 'Invalid parameters' };
    return Response.json({ jsonrpc: '2.0', id: JSON.parse(String(init?.body)).id, error });
  };
  const one = openChat(randomUUID(), undefined, createClient({ url: cluster.url, fetch: refusing }));
  await until(() => one.chat()?.status === 'ready');
  await one.chat()!.send('ask me');
  await until(() => one.chat()!.question?.text === 'which one?');
  refusals = 1;
  await one.chat()!.send('that one');
  await until(() => one.chat()!.status === 'error');
  assert.equal(one.chat()!.question?.text, 'which one?');
  await one.chat()!.send('this one');
  await until(() => one.chat()!.status === 'ready' && one.chat()!.question === undefined);
  assert.deepEqual(one.texts(), ['user: ask me', 'agent: Hm. ', 'user: that one', 'user: this one', `agent: ${ANSWER}`]);
  assert.deepEqual(
    one.chat()!.messages.map(({ error }) => error !== undefined),
    [false, false, true, false, false],
  );
  one.close();
});
