import assert from 'node:assert/strict';
import { test } from 'node:test';
import { agentCard } from './agent-card.ts';
import { AGENTS_EXTENSION_URI, extendedAgentCard } from './extended-card.ts';
import { resumeExtension } from './resume-extension.ts';

const skill = (id: string) => ({ id, name: id, description: id, tags: ['t'], examples: [`do ${id}`] });

test('the extended card adds the agents, their health and their skills, and changes nothing else [S4-1]', () => {
  const capabilities = { streaming: true, extendedAgentCard: true, extensions: [resumeExtension] };
  const card = agentCard({ name: 'n', description: 'd', version: '1', url: 'http://h/', skills: [], capabilities });
  const agents = [
    { name: 'a', description: 'A', skills: [skill('one')], isLive: true },
    { name: 'b', description: 'B', skills: [skill('two')], isLive: false },
  ];
  const extended = extendedAgentCard(card, agents);
  assert.deepEqual(extended.skills, [skill('one')]);
  const [resume, names] = extended.capabilities.extensions ?? [];
  assert.deepEqual(resume, resumeExtension);
  assert.equal(names?.uri, AGENTS_EXTENSION_URI);
  assert.deepEqual(names?.params, {
    agents: [
      { name: 'a', description: 'A', health: 'live', skills: ['one'] },
      { name: 'b', description: 'B', health: 'silent', skills: ['two'] },
    ],
  });
  assert.deepEqual({ ...extended, skills: card.skills, capabilities: card.capabilities }, card);
  assert.deepEqual(card.capabilities.extensions, [resumeExtension]);
});
