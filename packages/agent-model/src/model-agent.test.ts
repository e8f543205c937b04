import assert from 'node:assert/strict';
import { test } from 'node:test';
import { inspect } from 'node:util';
import { bareTurn } from '../../../test/kit/bare-turn.ts';
import { collect } from '../../../test/kit/collect.ts';
import { createModelAgent } from './model-agent.ts';

test('the author sees why a provider refuses a request; clients do not', async () => {
  const body = JSON.stringify({ error: { message: 'there is no model of the name smal' } });
  const headers = { 'content-type': 'application/json' };
  const fetch = async () => new Response(body, { status: 404, headers });
  const agent = createModelAgent({ model: 'smal', baseUrl: 'http://127.0.0.1:9', fetch });
  const shown: unknown[] = [];
  const events = await collect(agent.run(bareTurn({ showError: error => shown.push(error) })));
  const reason = 'the model provider refused the request (HTTP 404)';
  assert.deepEqual(events, [{ type: 'failed', reason, retryable: false, cause: 'refused' }]);
  assert.match(inspect(shown), /there is no model of the name smal/);
});
