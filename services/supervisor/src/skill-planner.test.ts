import assert from 'node:assert/strict';
import { test } from 'node:test';
import { titleCase } from '@hopline/events';
import type { AgentEntry } from '@hopline/log';
import { NoAgentFits } from './planner.ts';
import { SkillPlanner } from './skill-planner.ts';

const entry = (name: string, ...tags: string[]): AgentEntry => ({
  name,
  description: name,
  url: 'http://127.0.0.1/',
  heartbeat: 1,
  skills: [{ id: `${name}_tool`, name: `${name} skill`, description: '', tags }],
});
const agents = [entry('argocd', 'deploy'), entry('weather', 'rain'), entry('files')];

async function plan(text: string, metadata = {}, available = agents) {
  const message = { messageId: 'm', role: 'ROLE_USER' as const, parts: [{ text }] };
  const made = await new SkillPlanner().plan({
    message,
    metadata,
    history: [],
    agents: available,
    signal: new AbortController().signal,
  });
  const tokens: string[] = [];
  for await (const token of made.text) tokens.push(token);
  return { agents: made.agents, tokens };
}

test('skills decide: by tag, by id, by name of several words; several agents when several fit [S4-3]', async () => {
  assert.deepEqual((await plan('will it Rain?')).agents, ['weather']);
  assert.deepEqual((await plan('files_tool {"path":"."}')).agents, ['files']);
  assert.deepEqual((await plan('use the argocd skill, please')).agents, ['argocd']);
  assert.deepEqual((await plan('deploy if there is no rain')).agents, ['argocd', 'weather']);
});

test('a part of a word is no word', async () => {
  await assert.rejects(plan('a rainbow'), NoAgentFits);
});

test('metadata.agent names one, and one agent alone takes everything', async () => {
  assert.deepEqual((await plan('will it rain?', { agent: 'files' })).agents, ['files']);
  assert.deepEqual((await plan('anything', {}, [agents[0]!])).agents, ['argocd']);
  await assert.rejects(plan('x', { agent: 'missing' }), NoAgentFits);
  await assert.rejects(plan('x', {}, []), NoAgentFits);
});

test('the plan comes in tokens of 1 to 10 characters [S0-11]', async () => {
  const { tokens } = await plan('rain and deploy');
  assert.ok(tokens.every(token => token.length >= 1 && token.length <= 10));
  assert.match(tokens.join(''), /^\*\*🎯 Execution Plan\*\*\n1\. Argocd \(argocd skill\)\n2\. Weather/);
});

test('names are title-cased for display [S2-5]', () => {
  assert.equal(titleCase('version_service__version'), 'Version_Service__Version');
  assert.equal(titleCase('argocd'), 'Argocd');
  assert.equal(titleCase('weather-eu'), 'Weather-Eu');
});
