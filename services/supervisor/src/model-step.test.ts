import assert from 'node:assert/strict';
import { test } from 'node:test';
import { decodeInputRecord } from '@hopline/events';
import type { AgentRegistration } from '@hopline/log';
import { AGENT_TOOLS_MAX, agentTools, FINISH_TOOL, TOOLS_UNITS_MAX } from './agent-tools.ts';
import { ARGS_DEPTH_MAX, chooseCalls, modelStepOf, STEP_AGENT_CALLS_MAX } from './model-step.ts';

const skill = (id: string) => ({ id, name: id.toUpperCase(), description: '', tags: [] });
const agent = (name: string, ...skills: string[]): AgentRegistration => ({
  name,
  description: `Knows ${name}.`,
  url: '',
  skills: skills.map(skill),
  heartbeat: 0,
});
const chosen = (calls: [name: string, args: Record<string, unknown>][], left = 100) =>
  chooseCalls(
    { text: '', calls: calls.map(([name, args], index) => ({ id: `c${index}`, name, args })) },
    [agent('argocd', 'version'), agent('files')],
    index => `call-${index}`,
    left,
  );

test('agents are tools that take a request in words and one of their skills', () => {
  const [argocd, files] = agentTools([agent('argocd', 'version', 'sync'), agent('files')]);
  assert.deepEqual([argocd?.name, argocd?.description], ['argocd', 'Knows argocd.\n- version: VERSION\n- sync: SYNC']);
  const { properties, required } = argocd!.parameters as { properties: { skill: { enum: string[] } }; required: string[] };
  assert.deepEqual([properties.skill.enum, required], [['version', 'sync'], ['request']]);
  assert.ok(!('skill' in (files!.parameters.properties as object)));
  const many = Array.from({ length: AGENT_TOOLS_MAX + 1 }, (_, index) => agent(`a${index}`));
  assert.equal(agentTools(many).length, AGENT_TOOLS_MAX);
  const talkative = agentTools([agent('x', ...Array.from({ length: 128 }, (_, index) => `${index}${'s'.repeat(60)}`))]);
  assert.ok(talkative[0]!.description.length <= 4_096);
});

test('from a thousand agents a model is offered only those that share words with the request, up to a bound of its prompt', () => {
  const many = Array.from({ length: 1_000 }, (_, index) =>
    agent(`a${index}`, ...Array.from({ length: 64 }, (_, n) => `skill-${index}-${n}`)),
  );
  many[900] = agent('weather', 'rainfall');
  many[950] = { ...agent('any'), default: true };
  const tools = agentTools(many, 'How much RAINFALL is expected?');
  assert.equal(tools.length, AGENT_TOOLS_MAX);
  const names = tools.map(({ name }) => name);
  assert.ok(names.includes('weather') && names.includes('any'));
  assert.ok(JSON.stringify(tools).length < 3 * TOOLS_UNITS_MAX, `${JSON.stringify(tools).length}`);
  const few = agentTools(many.slice(0, 10)).map(({ description }) => description.length);
  assert.ok(Math.max(...few) > TOOLS_UNITS_MAX / AGENT_TOOLS_MAX, 'few agents may have longer descriptions');
});

test('a model’s call leads to an agent, to an error that the model reads, or to the end', () => {
  const calls = chosen([
    ['argocd', { request: 'go', skill: 'version' }],
    ['files', { request: 'go', skill: 'made up' }],
    ['telepathy', { request: 'go' }],
    ['files', { request: '' }],
    ['files', {}],
    [FINISH_TOOL, {}],
  ]);
  assert.deepEqual(
    calls.map(call => ('call' in call ? [call.call, call.agent, call.skill] : 'refused' in call ? 'refused' : 'finish')),
    [['call-1', 'argocd', 'version'], ['call-2', 'files', undefined], 'refused', 'refused', 'refused', 'finish'],
  );
});

test('the calls of a step and of a task are bounded; the model gets an error for each further call', () => {
  const many = Array.from({ length: STEP_AGENT_CALLS_MAX + 1 }, (): [string, Record<string, unknown>] => [
    'files',
    { request: 'go' },
  ]);
  const made = (left: number) => chosen(many, left).filter(call => 'call' in call).length;
  assert.deepEqual([made(100), made(3), made(0)], [STEP_AGENT_CALLS_MAX, 3, 0]);
  const reasonOf = (left: number) => chosen(many, left).at(-1);
  assert.match(JSON.stringify(reasonOf(100)), /one step allows 16 calls\. Make it again in your next step/);
  assert.match(JSON.stringify(reasonOf(3)), /one message of the user allows 64 calls, and no further ones/);
});

test('relays can read the record of a step, however deeply the arguments of its calls nest', () => {
  const nested = (levels: number): unknown => JSON.parse(`${'['.repeat(levels)}${']'.repeat(levels)}`);
  // The arguments themselves count as the first level.
  const callsOf = (depth: number) =>
    chosen(['argocd', FINISH_TOOL, 'telepathy'].map(name => [name, { request: 'go', more: nested(depth - 1) }]));
  const from = { id: 'supervisor', agent: 'supervisor', turn: 1, attempt: 1 };
  for (const depth of [ARGS_DEPTH_MAX, ARGS_DEPTH_MAX + 1, 10_000]) {
    const inputs = [{ kind: 'step', step: '1', payload: { turn: 1, text: '', calls: callsOf(depth), read: [] } }];
    assert.equal(typeof decodeInputRecord({ v: 1, at: 1, from, n: 1, inputs }), 'object', `${depth} levels`);
  }
  assert.ok('call' in callsOf(ARGS_DEPTH_MAX)[0]!);
  const [refused] = callsOf(ARGS_DEPTH_MAX + 1);
  assert.deepEqual(refused, { id: 'c0', name: 'argocd', args: {}, refused: 'The arguments are nested too deeply.' });
});

test('a record without a model’s step is not read as one', () => {
  assert.equal(modelStepOf(null), undefined);
  assert.equal(modelStepOf(undefined), undefined);
  assert.equal(modelStepOf({ text: 1, calls: [] }), undefined);
  assert.ok(modelStepOf({ turn: 1, text: '', calls: [], read: [] }));
});
