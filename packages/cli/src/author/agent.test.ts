import assert from 'node:assert/strict';
import { test } from 'node:test';
import { typeScriptFault, variablesOf } from './agent.ts';

test('running TypeScript on a Node that cannot read it prints one sentence, which names both versions', () => {
  const old = { version: 'v20.19.0', features: {} };
  for (const file of ['a/agent.ts', 'agent.mts', 'agent.cts'])
    assert.match(
      typeScriptFault(file, old) ?? '',
      /^agent\.[cm]?ts is TypeScript, which needs Node 22\.18 or newer; this is v20\.19\.0\. /,
    );
  // Node 22.6 to 22.17 without the option for types.
  assert.ok(typeScriptFault('agent.ts', { version: 'v22.12.0', features: { typescript: false } }));
  for (const file of ['agent.js', 'agent.mjs', 'agentts']) assert.equal(typeScriptFault(file, old), undefined);
  assert.equal(typeScriptFault('agent.ts', { version: 'v22.18.0', features: { typescript: 'strip' } }), undefined);
});

test('the code of the author gets the variables of the shell, without logins and settings of the cluster', () => {
  const environment = { WEATHER_KEY: 'k', NATS_PASSWORD: 'p', HOPLINE_HOME: '/h', 'BASH_FUNC_x%%': '()', GONE: undefined };
  assert.deepEqual(variablesOf(environment), ['WEATHER_KEY']);
  const many = Object.fromEntries(Array.from({ length: 1_025 }, (_, n) => [`V${n}`, 'v']));
  assert.equal(variablesOf(many).length, 1_024, 'as many as an entry may name');
});
