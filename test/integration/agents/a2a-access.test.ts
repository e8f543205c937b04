import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { createA2AAgent } from '@hopline/agent-a2a';
import { answer, type ForeignAgentOptions, startForeignAgent } from '../../support/agents/remote-agent.ts';
import { eventsOf, lastOf, textOf } from '../../support/agents/turn.ts';
import { createAuthority } from '../tls/certificates.ts';
import { startTlsProxy } from '../tls/tls-proxy.ts';

const authority = createAuthority('Agents');
const EXTENSIONS = ['https://example.org/ext/one', 'https://example.org/ext/two'];

async function foreignAgent(t: TestContext, options: Partial<ForeignAgentOptions> = {}) {
  const foreign = await startForeignAgent({ dialect: '0.3', script: answer(['hi']), ...options });
  t.after(() => foreign.close());
  return foreign;
}

for (const [dialect, header] of [
  ['1.0', 'a2a-extensions'],
  ['0.3', 'x-a2a-extensions'],
] as const) {
  test(`an agent of ${dialect} is asked for the extensions that are configured`, async t => {
    const foreign = await foreignAgent(t, { dialect });
    const agent = createA2AAgent({ url: foreign.url, extensions: EXTENSIONS, headers: { authorization: 'Bearer x' } });
    t.after(() => agent.close());
    assert.equal(textOf(await eventsOf(agent, 'go')), 'hi');
    const { headers } = foreign.requests[0]!;
    assert.deepEqual([headers[header], headers.authorization], [EXTENSIONS.join(', '), 'Bearer x']);
  });
}

test('an agent behind TLS is believed when its certificate is signed by whom we were told of, and gets ours when it asks for one', async t => {
  const foreign = await foreignAgent(t, { card: false });
  const server = { ...authority.issue('agent'), ca: authority.cert, requestCert: true, rejectUnauthorized: true };
  const url = await startTlsProxy(t, foreign.url, server);
  const own = authority.issue('hopline');
  const trusting = createA2AAgent({ url, tls: { ca: authority.cert, ...own } });
  const stranger = createA2AAgent({ url, tls: { ...own } });
  const nameless = createA2AAgent({ url, tls: { ca: authority.cert } });
  t.after(() => Promise.all([trusting, stranger, nameless].map(agent => agent.close())));
  assert.equal(textOf(await eventsOf(trusting, 'go')), 'hi');
  for (const agent of [stranger, nameless]) {
    assert.equal(lastOf(await eventsOf(agent, 'go'), 'failed').reason, 'the agent cannot be reached');
  }
  assert.equal(foreign.requests.length, 1);
});
