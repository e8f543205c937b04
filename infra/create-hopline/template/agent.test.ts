import assert from 'node:assert/strict';
import { test } from 'node:test';
import { playTurn } from '@hopline/agent/test-kit';
import agent from './agent.ts';

test('NAME forecasts seven days and makes a table', async () => {
  const { text, artifacts, end } = await playTurn(agent, 'Paris');
  assert.equal(text.split('\n').length, 8);
  assert.match(text, /^Monday will have 23 degrees in Paris\.$/m);
  assert.equal(artifacts[0]?.name, 'forecast.csv');
  assert.equal(end.state, 'TASK_STATE_COMPLETED');
});
