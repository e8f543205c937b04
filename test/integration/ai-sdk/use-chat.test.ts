import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, test } from 'node:test';
import { type Client, createClient } from '@hopline/client';
import { HoplineChatTransport } from '@hopline/client/ai-sdk';
import { type ChatTransport, DefaultChatTransport, type UIMessage } from 'ai';
import { Window } from 'happy-dom';
import { until } from '../../kit/until.ts';
import { type RemoteAgent, startRemoteAgent } from '../../support/agents/remote-agent.ts';
import { Cluster } from '../../support/cluster/cluster.ts';
import { textOf } from './headless-chat.ts';

/** React reads these globals when it is loaded. The `fetch` of the page stays that of Node. */
const page = new Window({ url: 'http://127.0.0.1/' });
Object.assign(globalThis, { window: page, document: page.document, IS_REACT_ACT_ENVIRONMENT: false });
const { createElement, StrictMode, useEffect } = await import('react');
const { createRoot } = await import('react-dom/client');
const { useChat } = await import('@ai-sdk/react');

const TOKENS = Array.from({ length: 80 }, (_, index) => `${index} 🎯\n`);
const ANSWER = TOKENS.join('');

let remote: RemoteAgent;
let cluster: Cluster;

before(async () => {
  remote = await startRemoteAgent({
    dialect: '0.3',
    script: async function* ({ text }) {
      for (const token of TOKENS) {
        yield { token };
        yield { pause: 12 };
      }
      if (text.includes('endless')) yield { hang: true };
      yield { complete: true };
    },
  });
  cluster = await Cluster.shared({ agents: [{ name: 'chatter', adapter: 'a2a', url: remote.url }] });
});

after(async () => {
  await cluster?.[Symbol.asyncDispose]();
  await remote?.close();
  await page.happyDOM.close();
});

type Chat = ReturnType<typeof useChat<UIMessage>>;

/** A page with one chat, rendered by React in its strict mode. */
function open(options: { id: string; transport: ChatTransport<UIMessage>; messages?: UIMessage[]; resume?: boolean }) {
  const shown: { chat: Chat | undefined; mounts: number } = { chat: undefined, mounts: 0 };
  const Page = () => {
    shown.chat = useChat<UIMessage>(options);
    useEffect(() => {
      shown.mounts += 1;
    }, []);
    return createElement('p', null, textOf(shown.chat.messages.at(-1)));
  };
  const element = page.document.createElement('main');
  const root = createRoot(element as never);
  root.render(createElement(StrictMode, null, createElement(Page)));
  // The strict mode mounts a component twice, and useChat stops its chat in between.
  return {
    isMounted: () => shown.mounts === 2,
    chat: () => shown.chat!,
    text: () => element.textContent ?? '',
    close: () => root.unmount(),
  };
}

const clientOf = (): Client => createClient({ url: cluster.url });
const stateOf = async (id: string) => (await clientOf().list({ contextId: id })).tasks[0]?.status.state;

const TRANSPORTS: [string, () => ChatTransport<UIMessage>][] = [
  ['its own transport', () => new DefaultChatTransport({ api: `${cluster.url.replace(/\/$/, '')}/ui/chat` })],
  ['the transport of the client', () => new HoplineChatTransport({ client: clientOf() })],
];

for (const [name, transport] of TRANSPORTS)
  test(`useChat with ${name} sends, streams, and resumes in a page that is opened in mid-stream`, {
    timeout: 90_000,
  }, async () => {
    const id = randomUUID();
    const first = open({ id, transport: transport() });
    await until(() => first.isMounted());
    void first.chat().sendMessage({ text: 'count' });
    await until(() => first.text().length > 50);
    const second = open({ id, transport: transport(), messages: first.chat().messages, resume: true });
    for (const one of [first, second]) {
      await until(() => one.chat().status === 'ready' && one.text().length === ANSWER.length);
      assert.equal(one.text(), ANSWER);
      assert.equal(one.chat().messages.length, 2);
    }
    assert.equal(await stateOf(id), 'TASK_STATE_COMPLETED');
    first.close();
    second.close();
  });

test('stop of a resumed useChat cancels the task with the transport of the client', { timeout: 90_000 }, async () => {
  const id = randomUUID();
  const transport = () => new HoplineChatTransport({ client: clientOf() });
  const first = open({ id, transport: transport() });
  await until(() => first.isMounted());
  void first.chat().sendMessage({ text: 'endless' });
  await until(() => first.text().length > 50);
  const second = open({ id, transport: transport(), messages: first.chat().messages, resume: true });
  await until(() => second.chat()?.status === 'streaming' && second.text().length > 50);
  // The strict mode has stopped and resumed the chat while it was mounted.
  assert.equal(await stateOf(id), 'TASK_STATE_WORKING');
  await second.chat().stop();
  await until(async () => (await stateOf(id)) === 'TASK_STATE_CANCELED');
  second.close();
  first.close();
});
