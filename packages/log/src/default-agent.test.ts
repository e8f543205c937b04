import assert from 'node:assert/strict';
import { test } from 'node:test';
import { defaultAgentOf } from './default-agent.ts';
import type { AgentRegistration } from './log.ts';

const skill = { id: 's', name: 's', description: 's', tags: [] };
const agent = (name: string, more: Partial<AgentRegistration> = {}): AgentRegistration => ({
  name,
  description: name,
  url: '',
  skills: [skill],
  heartbeat: 1,
  ...more,
});

test('the default agent is the configured one, otherwise the first marked one, the only agent, or the only one without skills', () => {
  const bare = agent('bare', { skills: [] });
  const marked = ['a', 'b'].map(name => agent(name, { default: true }));
  const all = [...marked, bare, agent('z')];
  assert.equal(defaultAgentOf(all, 'z')?.name, 'z');
  assert.equal(defaultAgentOf(all, 'gone'), undefined, 'no other agent takes the place of the configured one');
  assert.equal(defaultAgentOf(all, undefined)?.name, 'a');
  assert.equal(defaultAgentOf([agent('z'), bare], undefined)?.name, 'bare');
  assert.equal(defaultAgentOf([bare, agent('c', { skills: [] })], undefined), undefined);
  assert.equal(defaultAgentOf([agent('y'), agent('z')], undefined), undefined);
  assert.equal(defaultAgentOf([agent('z')], 'gone'), undefined, 'not even the only one');
  assert.equal(defaultAgentOf([agent('z')], undefined)?.name, 'z');
  assert.equal(defaultAgentOf([], undefined), undefined);
});

test('an agent that is away remains the default if it is configured or marked, and is otherwise ignored if others are live', () => {
  const away = { ...agent('away', { skills: [] }), isLive: false };
  const live = { ...agent('live', { skills: [] }), isLive: true };
  assert.equal(defaultAgentOf([away, live], undefined)?.name, 'live');
  assert.equal(defaultAgentOf([away, live], 'away')?.name, 'away');
  assert.equal(defaultAgentOf([{ ...away, default: true }, live], undefined)?.name, 'away');
  assert.equal(defaultAgentOf([away], undefined)?.name, 'away');
});
