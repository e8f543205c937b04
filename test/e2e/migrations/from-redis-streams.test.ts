import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { DefaultChatTransport, type UIMessage } from 'ai';
import { HeadlessChat, textOf } from '../../integration/ai-sdk/headless-chat.ts';
import { until } from '../../kit/until.ts';
import { Cluster } from '../../support/cluster/cluster.ts';
import { Guide } from '../../support/guides/guide.ts';

const GUIDE = new Guide('from-redis-streams.md');

test('the agent of the guide answers a page, which resumes after a reload, and gets the history from the log', {
  timeout: 120_000,
}, async t => {
  const folder = GUIDE.folder(t, ['assistant.ts', 'chat.ts']);
  const [, , , origin = ''] = GUIDE.npmStart().args;
  const env = { HOPLINE_CORS_ORIGINS: origin };
  await using cluster = await Cluster.start({ agents: GUIDE.agents()[0]!, agentsFolder: folder, env });
  const { api, transport: ofGuide } = await import(pathToFileURL(join(folder, 'chat.ts')).href);
  assert.ok(ofGuide instanceof DefaultChatTransport);
  // The guide names the address of `npm start`.
  const there = api.replace('http://127.0.0.1:8000', cluster.url.replace(/\/$/, ''));
  const transport = new DefaultChatTransport<UIMessage>({ api: there, body: { agent: 'assistant' } });
  const id = randomUUID();
  const onError = (error: Error) => errors.push(error);
  const errors: Error[] = [];
  const chat = new HeadlessChat({ id, transport, onError });
  const sent = chat.sendMessage({ text: 'one two three four five six seven' });
  await until(() => errors.length > 0 || (chat.lastMessage?.role === 'assistant' && textOf(chat.lastMessage).length > 0));
  assert.deepEqual(errors, []);
  const reloaded = new HeadlessChat({ id, transport, messages: chat.messages.slice(0, 1) });
  await Promise.all([sent, reloaded.resumeStream()]);
  for (const one of [chat, reloaded])
    assert.equal(textOf(one.lastMessage), 'You asked 1 times, and lastly: one two three four five six seven');
  await reloaded.sendMessage({ text: 'eight' });
  assert.equal(textOf(reloaded.lastMessage), 'You asked 2 times, and lastly: eight');
});

test('every part of the guide was run', () => GUIDE.assertAllTaken());
