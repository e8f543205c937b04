import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Message, Metadata } from '@hopline/a2a';
import { agentPathOf, delegatedRequest, namesAgent } from './agent-path.ts';
import { NoAgentFits } from './planner.ts';

const message = (metadata?: Metadata): Message => ({
  messageId: 'm',
  role: 'ROLE_USER',
  parts: [{ text: 'go' }],
  ...(metadata && { metadata }),
});

test('the first segment names the agent of this cluster, and the rest is for the cluster behind it', () => {
  const path = (agent: unknown) => agentPathOf({ message: message({ agent }) });
  assert.deepEqual(path('middle'), { agent: 'middle' });
  assert.deepEqual(path('middle/lower'), { agent: 'middle', rest: 'lower' });
  assert.deepEqual(path('middle/lower/argocd'), { agent: 'middle', rest: 'lower/argocd' });
  assert.equal(agentPathOf({ message: message() }), undefined);
  assert.equal(path(null), undefined);
});

test('the metadata of the message takes precedence over the metadata of the request', () => {
  assert.deepEqual(agentPathOf({ message: message({ agent: 'a' }), metadata: { agent: 'b' } }), { agent: 'a' });
  assert.deepEqual(agentPathOf({ message: message(), metadata: { agent: 'b' } }), { agent: 'b' });
});

test('a value that is not a path of names is refused with a clear reason', () => {
  for (const agent of ['', '/', 'a/', '/a', 'a//b', 7, {}, ['a'], true]) {
    const request = { message: message({ agent }) };
    assert.throws(() => agentPathOf(request), { name: NoAgentFits.name, message: /^an agent must be named by/ }, String(agent));
    assert.ok(namesAgent(request));
  }
  assert.equal(namesAgent({ message: message({ agent: null }) }), false);
});

test('a delegated call has only the rest of the path, in the same place where the client wrote the path', () => {
  const cases: [Metadata | undefined, Metadata | undefined, Metadata | undefined, Metadata | undefined][] = [
    [{ agent: 'a', x: 1 }, undefined, { x: 1 }, undefined],
    [{ agent: 'a' }, { agent: 'b', y: 2 }, undefined, { y: 2 }],
    [{ agent: 'a/b/c' }, { agent: 'd' }, { agent: 'b/c' }, undefined],
    [undefined, { agent: 'a/b', y: 2 }, undefined, { agent: 'b', y: 2 }],
    [undefined, { agent: 'a' }, undefined, undefined],
    // The answer to an agent's question may name any agent. The agent that asked continues anyway.
    [{ agent: 'a//b' }, { agent: 7 }, undefined, undefined],
    [{ x: 1 }, { y: 2 }, { x: 1 }, { y: 2 }],
    [undefined, undefined, undefined, undefined],
  ];
  for (const [ofMessage, ofRequest, sentInMessage, sentInRequest] of cases) {
    const sent = delegatedRequest({ message: message(ofMessage), ...(ofRequest && { metadata: ofRequest }) });
    assert.deepEqual(sent, { message: message(sentInMessage), ...(sentInRequest && { metadata: sentInRequest }) });
  }
});
