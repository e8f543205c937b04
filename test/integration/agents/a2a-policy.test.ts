import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { parseAgentEntry } from '../../../services/sub-agent/src/agent-entry.ts';
import { sharedUser } from '../../../services/sub-agent/src/code-processes.test-kit.ts';
import { createAgent } from '../../../services/sub-agent/src/create-agent.ts';
import { answer, type RemoteAgentOptions, startRemoteAgent } from '../../support/agents/remote-agent.ts';
import { eventsOf, textOf } from '../../support/agents/turn.ts';
import { createAuthority } from '../tls/certificates.ts';
import { startTlsProxy } from '../tls/tls-proxy.ts';

const VARIABLES: Record<string, string> = {
  TOKEN: 'bearer-secret',
  KEY: 'key-secret',
  ORG: 'acme',
  BROKEN: 'one\ntwo',
  EMPTY: '',
};

async function remoteAgent(t: TestContext, options: Partial<RemoteAgentOptions> = {}) {
  const remote = await startRemoteAgent({ dialect: '0.3', script: answer(['h', 'i']), ...options });
  t.after(() => remote.close());
  return remote;
}

/** The agent of an entry, created as the service does. */
async function agentOf(t: TestContext, entry: object, folder = '/nowhere') {
  const agent = await createAgent(parseAgentEntry(JSON.stringify({ name: 'argo', adapter: 'a2a', ...entry })), {
    folder,
    onSkipped: () => {},
    model: { baseUrl: 'http://127.0.0.1:1/v1', apiKey: undefined },
    webhooks: () => ({ open: () => undefined }),
    secret: variable => VARIABLES[variable],
    code: sharedUser(),
  });
  t.after(() => agent.close());
  return agent;
}

test("requests contain an entry's credentials, read from the environment, and name its extensions", async t => {
  const remote = await remoteAgent(t);
  const extensions = ['https://example.org/ext/one', 'urn:two'];
  const policies: [object, Record<string, string>][] = [
    [{ auth: { bearerEnv: 'TOKEN' } }, { authorization: 'Bearer bearer-secret' }],
    [{ auth: { apiKeyEnv: 'KEY' } }, { 'x-api-key': 'key-secret' }],
    [{ auth: { apiKeyEnv: 'KEY', header: 'X-Key' } }, { 'x-key': 'key-secret' }],
    [
      { headersEnv: { 'x-org': 'ORG' }, headers: { 'x-team': 'sre' } },
      { 'x-org': 'acme', 'x-team': 'sre' },
    ],
    [{ extensions }, { 'x-a2a-extensions': extensions.join(', ') }],
  ];
  for (const [policy, expected] of policies) {
    const agent = await agentOf(t, { url: remote.url, ...policy });
    assert.equal(textOf(await eventsOf(agent, 'go')), 'hi');
    const { headers } = remote.requests.at(-1)!;
    for (const [name, value] of Object.entries(expected)) assert.equal(headers[name], value);
  }
});

test('a missing variable, or a value that no header can contain, fails at start with the field, without name or value', async t => {
  const url = 'http://127.0.0.1:1/';
  const refused: [object, string][] = [
    [{ auth: { bearerEnv: 'MISSING' } }, 'the variable that auth.bearerEnv names is not set'],
    [{ auth: { bearerEnv: 'EMPTY' } }, 'the variable that auth.bearerEnv names is not set'],
    [{ auth: { apiKeyEnv: 'BROKEN' } }, 'the variable that auth.apiKeyEnv names contains characters that a header cannot have'],
    [{ headersEnv: { 'x-org': 'MISSING' } }, 'the variable that headersEnv.x-org names is not set'],
  ];
  for (const [policy, reason] of refused)
    await assert.rejects(agentOf(t, { url, ...policy }), { message: `agent "argo": ${reason}` });
});

test('TLS files are relative to the agents file, and are read at start', async t => {
  const authority = createAuthority('Agents');
  const folder = await mkdtemp(join(tmpdir(), 'a2a-policy-'));
  t.after(() => rm(folder, { recursive: true }));
  const pair = authority.issue('hopline');
  const files = {
    'ca.pem': authority.cert,
    'own.pem': pair.cert,
    'own.key': pair.key,
    'other.key': authority.issue('x').key,
    junk: 'x',
  };
  for (const [name, pem] of Object.entries(files)) await writeFile(join(folder, name), pem);

  const remote = await remoteAgent(t, { card: false });
  const tlsServer = { ...authority.issue('agent'), ca: authority.cert, requestCert: true, rejectUnauthorized: true };
  const url = await startTlsProxy(t, remote.url, tlsServer);
  const tls = { caFile: 'ca.pem', certFile: './own.pem', keyFile: join(folder, 'own.key') };
  assert.equal(textOf(await eventsOf(await agentOf(t, { url, tls }, folder), 'go')), 'hi');

  const refused: [object, string][] = [
    [{ caFile: 'none.pem' }, 'the file that tls.caFile names cannot be read'],
    [{ caFile: 'junk' }, 'the file that tls.caFile names contains no PEM certificate'],
    [{ ...tls, keyFile: 'other.key' }, 'the files that tls.certFile and tls.keyFile name cannot be used together'],
    [{ ...tls, certFile: 'junk' }, 'the files that tls.certFile and tls.keyFile name cannot be used together'],
  ];
  for (const [wrong, reason] of refused)
    await assert.rejects(agentOf(t, { url, tls: wrong }, folder), { message: `agent "argo": ${reason}` });
});
