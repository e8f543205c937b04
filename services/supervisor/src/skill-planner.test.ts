import assert from 'node:assert/strict';
import { test } from 'node:test';
import { titleCase } from '@hopline/events';
import type { AgentRegistration } from '@hopline/log';
import { collect } from '../../../test/kit/collect.ts';
import { CHOICES_MAX, NoAgentFits } from './planner.ts';
import { PLAN_AGENTS_MAX, SkillPlanner } from './skill-planner.ts';

const entry = (name: string, ...tags: string[]): AgentRegistration => ({
  name,
  description: name,
  url: 'http://127.0.0.1/',
  heartbeat: 1,
  skills: [{ id: `${name}_tool`, name: `${name} skill`, description: '', tags }],
});
const agents = [entry('argocd', 'deploy'), entry('weather', 'rain'), entry('files')];
const withoutSkills = (name: string): AgentRegistration => ({ ...entry(name), skills: [] });

async function plan(text: string, metadata = {}, available = agents, defaultAgent?: string) {
  const message = { messageId: 'm', role: 'ROLE_USER' as const, parts: [{ text }] };
  const made = await new SkillPlanner(defaultAgent).plan({
    message,
    metadata,
    history: [],
    agents: available,
    signal: new AbortController().signal,
  });
  const tokens = await collect(made.text);
  return { agents: made.agents, tokens };
}

test('skills decide by tag, by id, or by a name of several words; several agents may match [S4-3]', async () => {
  assert.deepEqual((await plan('will it Rain?')).agents, ['weather']);
  assert.deepEqual((await plan('files_tool {"path":"."}')).agents, ['files']);
  assert.deepEqual((await plan('use the argocd skill, please')).agents, ['argocd']);
  assert.deepEqual((await plan('deploy if there is no rain')).agents, ['argocd', 'weather']);
});

test('a word that names a skill of each of a thousand agents calls PLAN_AGENTS_MAX of them', async () => {
  const many = Array.from({ length: 1_000 }, (_, index) => entry(`a${index}`, 'data'));
  assert.equal((await plan('show the data', {}, many)).agents.length, PLAN_AGENTS_MAX);
});

test('a message that fits no skill goes to the default agent: configured, marked by its entry, or the only one without skills', async () => {
  const chosen = async (available: AgentRegistration[], named?: string) => (await plan('hello', {}, available, named)).agents;
  const marked = { ...entry('guide'), default: true as const };
  assert.deepEqual(await chosen([...agents, marked], 'weather'), ['weather']);
  assert.deepEqual(await chosen([...agents, marked, withoutSkills('any')]), ['guide']);
  assert.deepEqual(await chosen([...agents, withoutSkills('any')]), ['any']);
  assert.deepEqual((await plan('will it rain?', {}, [...agents, marked], 'argocd')).agents, ['weather'], 'skills come first');
});

test('without a default agent the message fails with the agents that can be chosen, in words and as data', async () => {
  const choices = ['argocd', 'files', 'weather'];
  const sentence = 'no agent fits this message; choose one of: argocd, files, weather';
  const sorted = agents.toSorted((a, b) => a.name.localeCompare(b.name));
  await assert.rejects(plan('hello', {}, sorted), { name: NoAgentFits.name, message: sentence, choices });
  const two = [entry('argocd', 'deploy'), withoutSkills('b'), withoutSkills('c')];
  await assert.rejects(plan('hello', {}, two), { choices: ['argocd', 'b', 'c'] });
  await assert.rejects(plan('hello', {}, sorted, 'guide'), {
    message: 'the default agent "guide" is not available; choose one of: argocd, files, weather',
    choices,
  });
});

test('naming an unavailable agent fails with the available ones, and a long list is cut', async () => {
  await assert.rejects(plan('x', { agent: 'missing/lower' }), {
    message: 'the agent "missing" is not available; choose one of: argocd, weather, files',
    choices: ['argocd', 'weather', 'files'],
  });
  await assert.rejects(plan('x', { agent: 'No Name' }), { message: /^the named agent is not available; choose one of: / });
  const many = Array.from({ length: CHOICES_MAX + 1 }, (_, index) => entry(`a${index}`));
  await assert.rejects(plan('hello', {}, many), (error: NoAgentFits) => {
    assert.match(error.message, new RegExp(`a${CHOICES_MAX - 1} and 1 more$`));
    return error.choices.length === CHOICES_MAX;
  });
});

test('a part of a word does not match', async () => {
  await assert.rejects(plan('a rainbow'), NoAgentFits);
});

test('metadata.agent names one agent, and a single agent takes everything', async () => {
  assert.deepEqual((await plan('will it rain?', { agent: 'files' })).agents, ['files']);
  assert.deepEqual((await plan('will it rain?', { agent: 'files/lower' })).agents, ['files']);
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
