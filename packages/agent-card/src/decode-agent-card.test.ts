import assert from 'node:assert/strict';
import { test } from 'node:test';
import { A2AError } from '@hopline/a2a';
import { agentCard } from './agent-card.ts';
import { decodeAgentCard } from './decode-agent-card.ts';

const skill = { id: 'version', name: 'Version', description: 'Shows the version', tags: ['argocd'] };
const settings = { name: 'n', description: 'd', version: '1.2.3', url: 'http://h:1/', skills: [skill], capabilities: {} };

test('cards of 1.0, 0.3 and 0.2 agents are decoded [S4-3]', () => {
  const at = 'http://agent.example:9/.well-known/agent.json';
  const base = { name: 'a', description: 'b', skills: [{ ...skill, examples: ['x'], novelty: 1 }, 'junk'] };
  const read = {
    name: 'a',
    description: 'b',
    streaming: true,
    pushNotifications: false,
    skills: [{ ...skill, examples: ['x'] }],
  };
  const v10 = {
    ...base,
    supportedInterfaces: [
      { url: 'http://g', protocolBinding: 'GRPC', protocolVersion: '1.0' },
      { url: 'http://o', protocolBinding: 'JSONRPC', protocolVersion: '0.3' },
      { url: 'http://j', protocolBinding: 'JSONRPC', protocolVersion: '1.0', tenant: 'acme' },
    ],
  };
  assert.deepEqual(decodeAgentCard(v10, at), { ...read, dialect: '1.0', url: 'http://j/', tenant: 'acme' });
  const v03 = {
    ...base,
    protocolVersion: '0.3.0',
    url: 'http://rest',
    preferredTransport: 'HTTP+JSON',
    additionalInterfaces: [{ url: 'http://rpc', transport: 'JSONRPC' }],
    capabilities: { streaming: false, pushNotifications: true },
  };
  assert.deepEqual(decodeAgentCard(v03, at), {
    ...read,
    dialect: '0.3',
    url: 'http://rpc/',
    streaming: false,
    pushNotifications: true,
  });
  const v02 = { ...base, protocolVersion: '0.2.5', url: '/rpc', capabilities: {} };
  assert.deepEqual(decodeAgentCard(v02, at), { ...read, dialect: '0.3', url: 'http://agent.example:9/rpc' });
  assert.deepEqual(decodeAgentCard(agentCard(settings), at).dialect, '1.0');
});

test('a card without a supported interface is refused', () => {
  const cards = [
    null,
    [],
    {},
    { url: 7 },
    { url: 'http://x', preferredTransport: 'GRPC' },
    { supportedInterfaces: [{ url: 'u', protocolVersion: '3.0' }] },
  ];
  for (const card of cards) {
    assert.throws(
      () => decodeAgentCard(card, 'http://h/'),
      (error: unknown) => error instanceof A2AError && error.code === 'INVALID_AGENT_RESPONSE',
    );
  }
});
