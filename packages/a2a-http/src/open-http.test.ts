import assert from 'node:assert/strict';
import { Agent, get, type IncomingMessage } from 'node:http';
import { type TestContext, test } from 'node:test';
import { createA2AServer } from '@hopline/a2a-server';
import { agentCard } from '@hopline/agent-card';
import { PublishedCard } from '@hopline/agent-card/signing';
import { createMemoryLog } from '@hopline/log/memory';
import { createLogger } from '@hopline/telemetry';
import { openHttp } from './open-http.ts';

function open(t: TestContext, publicUrl?: string, lastRequestsMs?: number) {
  const logger = createLogger({ service: 'test', instance: 'test', level: 'silent' });
  const server = createA2AServer({ log: createMemoryLog(), role: 'supervisor', profile: 'caipe', logger });
  const settings = { name: 'test', description: 'test', version: '0', skills: [], capabilities: {} };
  const card = new PublishedCard(() => agentCard({ ...settings, url: http.url }));
  const http = openHttp(server, { card, publicUrl, lastRequestsMs });
  t.after(() => http.close());
  return http;
}

test('the card has the address at which clients reach the server', async t => {
  for (const host of ['127.0.0.1', '0.0.0.0', '::']) {
    const http = open(t);
    assert.equal(http.url, '');
    await http.listen(host, 0);
    assert.match(http.url, /^http:\/\/127\.0\.0\.1:\d+\/$/, host);
    const card = (await (await fetch(new URL('.well-known/agent-card.json', http.url))).json()) as { url: string };
    assert.equal(card.url, http.url);
  }
});

test('the card has the public address if one is configured', async t => {
  const http = open(t, 'https://agents.example/a2a');
  assert.equal(http.url, 'https://agents.example/a2a');
  await http.listen('127.0.0.1', 0);
  assert.equal(http.url, 'https://agents.example/a2a');
});

test('a server that is closing answers one last request on each open connection, and closes once none is open', async t => {
  const http = open(t, undefined, 60 * 60_000);
  await http.listen('127.0.0.1', 0);
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const connectionOf = async () => {
    const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
    get(new URL('.well-known/agent-card.json', http.url), { agent }, resolve).on('error', reject);
    const response = await promise;
    for await (const _chunk of response);
    return [response.statusCode, response.headers.connection];
  };
  assert.deepEqual(await connectionOf(), [200, 'keep-alive']);
  const closing = http.close();
  assert.deepEqual(await connectionOf(), [200, 'close']);
  await closing;
});
