import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import type { TaskTrace } from '@hopline/task-audit';
import { ModelServer } from '../support/agents/model-server.ts';
import { collect } from '../support/cluster/a2a-stream.ts';
import { Cluster } from '../support/cluster/cluster.ts';

test('the task shows what each request to a model used and cost, of the supervisor and of an agent', {
  timeout: 120_000,
}, async t => {
  const folder = mkdtempSync(join(tmpdir(), 'hopline-prices-'));
  t.after(() => rmSync(folder, { recursive: true }));
  const prices = join(folder, 'prices.json');
  writeFileSync(prices, JSON.stringify({ models: { writer: { input: 2, cachedInput: 0.5, output: 10 } } }));
  await using server = await ModelServer.start(({ model, messages }) =>
    model === 'planner' && !messages.some(({ role }) => role === 'tool')
      ? [{ call: 'writer', args: { request: 'write' } }]
      : [{ text: 'done' }],
  );
  await using cluster = await Cluster.start({
    agents: [{ name: 'writer', adapter: 'model', model: 'writer', baseUrl: server.url }],
    env: {
      HOPLINE_PLANNER: 'model',
      HOPLINE_MODEL: 'planner',
      OPENAI_BASE_URL: server.url,
      HOPLINE_MODEL_PRICES_FILE: prices,
    },
  });
  const [first] = await collect(cluster.url, { text: 'write' });
  const { id } = first!.result as { id: string };
  const { models = [], producers } = (await (await fetch(`${cluster.url}/tasks/${id}/audit`)).json()) as TaskTrace;
  const usage = { inputTokens: 11, outputTokens: 1, cachedTokens: 4, reasoningTokens: 0 };
  const [agent, supervisor] = models;
  assert.deepEqual(
    [models.length, agent?.agent, agent?.model, supervisor?.agent, supervisor?.model],
    [2, 'writer', 'writer', 'supervisor', 'planner'],
  );
  const { ms: _ms, ...priced } = agent!;
  // (7 * 2 + 4 * 0.5 + 1 * 10) / 1,000,000
  assert.deepEqual(priced, { agent: 'writer', model: 'writer', requests: 1, ...usage, cost: 0.000026 });
  assert.deepEqual(
    [supervisor?.cost, supervisor?.requests],
    [undefined, server.requests.filter(({ model }) => model === 'planner').length],
  );
  const [call] = producers.find(one => one.agent === 'writer')!.models!;
  assert.ok(call!.fromMs > 0 && call!.ms >= 0 && call!.cost === 0.000026, JSON.stringify(call));
});
