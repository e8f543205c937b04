import assert from 'node:assert/strict';
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { openJetStreamLog } from '@hopline/log-jetstream';
import { DASHBOARDS } from '../../infra/observe/dashboards/dashboards.ts';
import { natsMetrics } from '../../infra/observe/nats-metrics.ts';
import { countingTokens, startCountingAgent } from '../support/agents/counting-agent.ts';
import { ModelServer } from '../support/agents/model-server.ts';
import { collect, rpc } from '../support/cluster/a2a-stream.ts';
import { Cluster } from '../support/cluster/cluster.ts';
import { freePort, startNats } from '../support/nats/nats-server.ts';
import { startWebhook } from '../support/webhooks/webhook.ts';
import { finalStateOf, putWebhookConfig, startTask } from '../support/webhooks/webhook-delivery.ts';

const PROMETHEUS = process.env.PROMETHEUS ?? 'prometheus';
const isMissing = spawnSync(PROMETHEUS, ['--version']).error !== undefined;
const RULES = fileURLToPath(new URL('../../infra/helm/hopline/rules/*.yaml', import.meta.url));
const WAIT_MS_MAX = 120_000;

/** Panels of what this load does not have: no MCP server runs here. */
const WITHOUT_DATA = ['Hopline / Agents, Tools'];

type Answer = { data: { result: { value: [number, string] }[] } };

test('every query of every dashboard returns data on a cluster under mixed load, and no alert fires', {
  skip: isMissing && 'no prometheus on PATH (Debian: apt install prometheus)',
}, async t => {
  await using stack = new AsyncDisposableStack();
  const folder = mkdtempSync(join(tmpdir(), 'hopline-prometheus-'));
  stack.defer(() => rmSync(folder, { recursive: true, force: true }));
  const monitorPort = await freePort();
  const nats = await startNats({ config: `http: "127.0.0.1:${monitorPort}"` });
  stack.defer(() => nats.stop());
  const exporter = createServer((_request, response) => {
    natsMetrics(`http://127.0.0.1:${monitorPort}`).then(
      text => response.end(text),
      () => response.writeHead(503).end(),
    );
  }).listen(0, '127.0.0.1');
  await once(exporter, 'listening');
  stack.defer(() => void exporter.close());
  const counting = await startCountingAgent(countingTokens(60), 5);
  stack.defer(() => counting.close());
  const model = stack.use(await ModelServer.start(() => [{ tokens: ['a', 'b', 'c'], everyMs: 5 }]));
  const webhook = stack.use(await startWebhook());
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
      },
    }),
  );
  const log = await openJetStreamLog({ servers: nats.url, name: 'test' });
  stack.defer(() => log.close());
  const url = await startPrometheus(stack, folder, cluster, (exporter.address() as AddressInfo).port);
  const query = async (expr: string) => {
    const response = await fetch(`${url}/api/v1/query?query=${encodeURIComponent(expr)}`);
    assert.equal(response.status, 200, `${expr}: ${await response.clone().text()}`);
    return ((await response.json()) as Answer).data.result;
  };
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

async function startPrometheus(stack: AsyncDisposableStack, folder: string, cluster: Cluster, natsPort: number): Promise<string> {
  const port = await freePort();
  const targets = cluster.services.map(({ url, spec }) => ({
    targets: [new URL(url).host],
    labels: { instance: spec.instance },
  }));
  const config = {
    global: { scrape_interval: '1s', evaluation_interval: '1s' },
    rule_files: [RULES],
    scrape_configs: [
      { job_name: 'hopline', static_configs: targets },
      { job_name: 'nats', static_configs: [{ targets: [`127.0.0.1:${natsPort}`] }] },
    ],
  };
  const file = join(folder, 'prometheus.json');
  writeFileSync(file, JSON.stringify(config));
  const args = [`--config.file=${file}`, `--storage.tsdb.path=${join(folder, 'data')}`, `--web.listen-address=127.0.0.1:${port}`];
  const child: ChildProcess = spawn(PROMETHEUS, args, { stdio: 'ignore' });
  const exited = once(child, 'exit');
  stack.defer(async () => {
    child.kill();
    await exited;
  });
  const url = `http://127.0.0.1:${port}`;
  for (const endsAt = Date.now() + WAIT_MS_MAX; Date.now() < endsAt && child.exitCode === null; ) {
    if (
      await fetch(`${url}/-/ready`).then(
        ({ ok }) => ok,
        () => false,
      )
    )
      return url;
    await sleep(200);
  }
  throw new Error('Prometheus did not start');
}

/** A query as Prometheus takes it: Grafana replaces its variables. */
function plain(expr: string): string {
  const ranges = expr.replaceAll('$__rate_interval', '1m').replaceAll('$__range', '5m');
  return ranges.replaceAll('"$job"', '".*"').replaceAll('"$agent"', '".*"');
}
