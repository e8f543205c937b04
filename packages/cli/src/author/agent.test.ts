import assert from 'node:assert/strict';
import { test } from 'node:test';
import { typeScriptFault } from './agent.ts';

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
