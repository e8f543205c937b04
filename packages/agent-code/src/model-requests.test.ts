import assert from 'node:assert/strict';
import { test } from 'node:test';
import { startTelemetry } from '@hopline/telemetry';
import { HostedTurn } from './hosted-turn.ts';
import { MODEL_NAMES_MAX, MODEL_REQUESTS_MAX, ModelRequests } from './model-requests.ts';

test('metrics name the first models of a host, and count the others together', async t => {
  const telemetry = await startTelemetry({ service: 'sub-agent', version: '1', instance: 'i', env: {} });
  t.after(() => telemetry.shutdown());
  const requests = new ModelRequests();
  for (let n = 1; n <= MODEL_NAMES_MAX + 2; n += 1)
    requests.count({ model: `model-${n}`, at: 0, ms: 1, usage: {} }, { work: undefined, trace: {} });
  const counts = [...(await telemetry.metricsText()).matchAll(/duration_seconds_count\{.*gen_ai_request_model="(.*?)"\} (\d+)/g)];
  assert.equal(counts.length, MODEL_NAMES_MAX + 1);
  assert.deepEqual(counts.at(-1)?.slice(1), ['other', '2']);
});

test('the requests of one turn are counted up to their bound', () => {
  const turn = new HostedTurn(() => {});
  for (let n = 1; n <= MODEL_REQUESTS_MAX; n += 1) assert.ok(turn.modelRequestEnded());
  assert.equal(turn.modelRequestEnded(), false);
});
