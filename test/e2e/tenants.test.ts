import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, test } from 'node:test';
import { answer, type RemoteAgent, startRemoteAgent } from '../support/agents/remote-agent.ts';
import { Cluster } from '../support/cluster/cluster.ts';

let agent: RemoteAgent;
let cluster: Cluster;

before(async () => {
  agent = await startRemoteAgent({ dialect: '0.3', script: answer(['ok']) });
  cluster = await Cluster.shared({
    agents: [{ name: 'okay', adapter: 'a2a', url: agent.url }],
    ownEnv: { HOPLINE_TENANTS: 'acme, umbrella' },
  });
});

after(async () => {
  await cluster?.[Symbol.asyncDispose]();
  await agent?.close();
});

async function rest(line: string, body?: unknown) {
  const [method = '', path = ''] = line.split(' ');
  const response = await fetch(`${cluster.url}${path}`, {
    method,
    headers: { 'a2a-version': '1.0', 'content-type': 'application/a2a+json' },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  // biome-ignore lint/suspicious/noExplicitAny: a test fails where an expected member is missing.
  return { status: response.status, body: (await response.json()) as any };
}

test('without authentication, listed tenants have separate tasks, and no other tenant exists', async () => {
  const message = { messageId: randomUUID(), contextId: randomUUID(), role: 'ROLE_USER', parts: [{ text: 'x' }] };
  const tenants = ['', '/acme', '/umbrella'];
  const ids: string[] = [];
  for (const tenant of tenants) ids.push((await rest(`POST ${tenant}/message:send`, { message })).body.task.id);
  assert.equal(new Set(ids).size, tenants.length, 'one message id, one context, three tasks');
  for (const [at, tenant] of tenants.entries()) {
    for (const [of, id] of ids.entries()) {
      assert.equal((await rest(`GET ${tenant}/tasks/${id}`)).status, at === of ? 200 : 404, `${tenant || 'no tenant'}: ${id}`);
    }
    // Other files that share the cluster also have tasks without a tenant.
    const query = tenant === '' ? `?contextId=${message.contextId}` : '';
    const listed = (await rest(`GET ${tenant}/tasks${query}`)).body.tasks as { id: string }[];
    assert.deepEqual(
      listed.map(task => task.id),
      [ids[at]],
    );
  }
  assert.equal((await rest('GET /another/tasks')).status, 404);
  assert.equal((await rest('POST /another/message:send', { message })).status, 404);
});
