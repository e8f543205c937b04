import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { openJetStreamLog } from '@hopline/log-jetstream';
import { DASHBOARDS } from '../../infra/observe/dashboards/dashboards.ts';
import { countingTokens, startCountingAgent } from '../support/agents/counting-agent.ts';
import { ModelServer } from '../support/agents/model-server.ts';
import { collect, rpc } from '../support/cluster/a2a-stream.ts';
import { Cluster } from '../support/cluster/cluster.ts';
import { startWebhook } from '../support/webhooks/webhook.ts';
import { finalStateOf, putWebhookConfig, startTask } from '../support/webhooks/webhook-delivery.ts';
import { startMonitoredNats, startPrometheus, withoutPrometheus } from './prometheus-server.ts';

const WAIT_MS_MAX = 120_000;

/** Panels without data under this load, which runs no MCP server, kills no worker, leaves no task open and reaches no limit. */
const WITHOUT_DATA = [
  'Hopline / Agents, Tools',
  'Hopline / Agents, Wait for redelivery',
  'Hopline / NATS, Oldest open task',
  'Hopline / Tenants, Refused, by limit',
  'Hopline / Tenants, Refused callers',
];

test('every query of every dashboard returns data on a cluster under mixed load, and no alert fires', {
  skip: withoutPrometheus,
}, async t => {
  await using stack = new AsyncDisposableStack();
  const { nats, exporterPort } = await startMonitoredNats(stack);
  const counting = await startCountingAgent(countingTokens(60), 5);
  stack.defer(() => counting.close());
  const model = stack.use(await ModelServer.start(() => [{ tokens: ['a', 'b', 'c'], everyMs: 5 }]));
  const webhook = stack.use(await startWebhook());
  const folder = mkdtempSync(join(tmpdir(), 'hopline-prices-'));
  stack.defer(() => rmSync(folder, { recursive: true }));
  const prices = join(folder, 'prices.json');
  writeFileSync(prices, JSON.stringify({ models: { 'stand-in': { input: 1, output: 4 } } }));
  const cluster = stack.use(
    await Cluster.start({
      nats,
      notifiers: 1,
      agents: [
        { name: 'counter', adapter: 'a2a', url: counting.url, default: true },
        { name: 'assistant', adapter: 'model', model: 'stand-in' },
      ],
      env: {
        HOPLINE_PUSH: 'true',
        HOPLINE_WEBHOOK_ALLOW: '127.0.0.1',
        HOPLINE_WEBHOOK_HTTP: 'true',
        OPENAI_BASE_URL: `${model.url}/v1`,
        OPENAI_API_KEY: 'k',
        HOPLINE_MODEL_PRICES_FILE: prices,
      },
    }),
  );
  const log = await openJetStreamLog({ servers: nats.url, name: 'test' });
  stack.defer(() => log.close());
  const { query } = await startPrometheus(stack, { cluster, exporterPort });
  const load = async () => {
    const byName = (agent: string) => ({ method: 'message/stream', params: { ...questionTo(agent) } });
    await Promise.all([
      collect(cluster.url, byName('counter')),
      collect(cluster.url, byName('assistant')),
      rpc(cluster.url, { method: 'tasks/fly' }),
    ]);
    const taskId = crypto.randomUUID();
    await putWebhookConfig(log, { taskId, url: webhook.url });
    await startTask(cluster.url, taskId);
    await finalStateOf(log, taskId);
  };
  const shown = DASHBOARDS.flatMap(({ title, rows }) =>
    rows.flatMap(({ panels }) =>
      panels.flatMap(panel => panel.queries.map(({ expr }) => ({ name: `${title}, ${panel.title}`, expr: plain(expr) }))),
    ),
  ).filter(({ name }) => !WITHOUT_DATA.includes(name));
  let empty = shown;
  for (const endsAt = Date.now() + WAIT_MS_MAX; empty.length > 0 && Date.now() < endsAt; ) {
    await load();
    await sleep(1_000);
    const results = await Promise.all(empty.map(async one => ({ one, result: await query(one.expr) })));
    empty = results.filter(({ result }) => result.length === 0).map(({ one }) => one);
  }
  assert.deepEqual(empty, []);
  const firing = await query('ALERTS{alertstate="firing"}');
  t.diagnostic(`${shown.length} queries`);
  assert.deepEqual(firing, []);
});

function questionTo(agent: string) {
  return {
    message: { kind: 'message', role: 'user', messageId: crypto.randomUUID(), parts: [{ kind: 'text', text: 'go' }] },
    metadata: { agent },
  };
}

/** A query in the form that Prometheus accepts, with Grafana's variables replaced. */
function plain(expr: string): string {
  const ranges = expr.replaceAll('$__rate_interval', '1m').replaceAll('$__range', '5m');
  return ranges.replaceAll('"$job"', '".*"').replaceAll('"$agent"', '".*"');
}
