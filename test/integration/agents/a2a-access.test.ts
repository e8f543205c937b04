import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { createA2AAgent } from '@hopline/agent-a2a';
import { answer, type RemoteAgentOptions, startRemoteAgent } from '../../support/agents/remote-agent.ts';
import { eventsOf, lastOf, textOf } from '../../support/agents/turn.ts';
import { createAuthority } from '../tls/certificates.ts';
import { startTlsProxy } from '../tls/tls-proxy.ts';

const authority = createAuthority('Agents');
const EXTENSIONS = ['https://example.org/ext/one', 'https://example.org/ext/two'];

async function remoteAgent(t: TestContext, options: Partial<RemoteAgentOptions> = {}) {
  const remote = await startRemoteAgent({ dialect: '0.3', script: answer(['hi']), ...options });
  t.after(() => remote.close());
  return remote;
}

for (const [dialect, header] of [
  ['1.0', 'a2a-extensions'],
  ['0.3', 'x-a2a-extensions'],
] as const) {
  test(`requests to a ${dialect} agent name the configured extensions`, async t => {
    const remote = await remoteAgent(t, { dialect });
    const agent = createA2AAgent({ url: remote.url, extensions: EXTENSIONS, headers: { authorization: 'Bearer x' } });
    t.after(() => agent.close());
    assert.equal(textOf(await eventsOf(agent, 'go')), 'hi');
    const { headers } = remote.requests[0]!;
    assert.deepEqual([headers[header], headers.authorization], [EXTENSIONS.join(', '), 'Bearer x']);
  });
}

test('an agent behind TLS is trusted with the configured CA, and receives the client certificate it requests', async t => {
  const remote = await remoteAgent(t, { card: false });
  const server = { ...authority.issue('agent'), ca: authority.cert, requestCert: true, rejectUnauthorized: true };
  const url = await startTlsProxy(t, remote.url, server);
  const pair = authority.issue('hopline');
  const trusting = createA2AAgent({ url, tls: { ca: authority.cert, ...pair } });
  const stranger = createA2AAgent({ url, tls: { ...pair } });
  const nameless = createA2AAgent({ url, tls: { ca: authority.cert } });
  t.after(() => Promise.all([trusting, stranger, nameless].map(agent => agent.close())));
  assert.equal(textOf(await eventsOf(trusting, 'go')), 'hi');
  for (const agent of [stranger, nameless]) {
    assert.equal(lastOf(await eventsOf(agent, 'go'), 'failed').reason, 'the agent cannot be reached');
  }
  assert.equal(remote.requests.length, 1);
});
