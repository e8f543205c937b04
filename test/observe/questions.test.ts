import assert from 'node:assert/strict';
import { hash } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { until } from '../kit/until.ts';
import { countingTokens, startCountingAgent } from '../support/agents/counting-agent.ts';
import { collect, messageParams, rpc } from '../support/cluster/a2a-stream.ts';
import { Cluster } from '../support/cluster/cluster.ts';
import { startMonitoredNats, startPrometheus, withoutPrometheus } from './prometheus-server.ts';

const MESSAGES_BURST = 6;
const LARGE = 'x'.repeat(200_000);

/** Queries of a question in the table of the runbook. */
function queriesOf(question: string): string[] {
  const runbook = readFileSync(new URL('../../infra/RUNBOOK.md', import.meta.url), 'utf8');
  const row = runbook.split('\n').find(line => line.startsWith(`| ${question} |`));
  assert.ok(row, question);
  return [...row.split('|')[2]!.matchAll(/`([^`]+)`/g)].map(([, query]) => query!);
}

test('the queries of the runbook find who is the load, who gets 429, whose tasks fill the log and which shard is hot; exemplars lead to tasks', {
  skip: withoutPrometheus,
}, async () => {
  await using stack = new AsyncDisposableStack();
  const { nats, exporterPort } = await startMonitoredNats(stack);
  const counting = await startCountingAgent(countingTokens(20), 5);
  stack.defer(() => counting.close());
  const folder = mkdtempSync(join(tmpdir(), 'hopline-questions-'));
  stack.defer(() => rmSync(folder, { recursive: true }));
  const keys = join(folder, 'keys.json');
  const keyOf = (tenant: string) => `key-of-${tenant}-which-is-long-enough`;
  const entries = ['acme', 'globex'].map(tenant => ({
    key_sha256: hash('sha256', keyOf(tenant)),
    subject: `user@${tenant}`,
    tenant,
  }));
  writeFileSync(keys, JSON.stringify(entries));
  const cluster = stack.use(
    await Cluster.start({
      nats,
      agents: [{ name: 'counter', adapter: 'a2a', url: counting.url, default: true }],
      env: {
        HOPLINE_AUTH_API_KEYS_FILE: keys,
        HOPLINE_OWNER_MESSAGES_PER_SECOND: '1',
        HOPLINE_OWNER_MESSAGES_BURST: `${MESSAGES_BURST}`,
        HOPLINE_TENANT_LIMIT_FACTOR: '1',
      },
    }),
  );
  const { query, exemplars } = await startPrometheus(stack, { cluster, exporterPort });
  const trace = crypto.randomUUID().replaceAll('-', '');
  const headers = (tenant: string) => ({ 'x-api-key': keyOf(tenant), traceparent: `00-${trace}-00f067aa0ba902b7-01` });
  const ask = (tenant: string, text: string) => collect(cluster.url, { params: messageParams(text), headers: headers(tenant) });
  // increase() counts from the first sample of a series, so the load begins when each series exists.
  for (const tenant of ['acme', 'globex']) await ask(tenant, 'hello');
  await until(async () => (await query('hopline_tenant_stored_bytes_total')).length === 2);
  const refused = async () => {
    const response = await rpc(cluster.url, { params: messageParams('x'), headers: headers('acme') });
    await response.body?.cancel();
    return response.status === 429;
  };
  await until(refused);
  await until(async () => (await query('hopline_tenant_requests_refused_total')).length === 1);
  let isOver = false;
  const loading = (async () => {
    while (!isOver) if (await refused()) await new Promise(resolve => setTimeout(resolve, 100));
  })();
  stack.defer(async () => {
    isOver = true;
    await loading;
  });
  await ask('globex', LARGE);
  const first = async (question: string, index = 0) => {
    const result = await query(queriesOf(question)[index]!);
    return result.toSorted((a, b) => Number(b.value[1]) - Number(a.value[1]))[0]?.metric ?? {};
  };
  for (const index of [0, 1, 2]) await until(async () => (await first('Who is the load?', index)).tenant === 'acme');
  await until(async () => (await first('Who gets 429?')).reason === 'messages');
  const { tenant, caller } = await first('Who gets 429?');
  assert.deepEqual([tenant, /^[0-9a-f]{12}$/.test(caller!)], ['acme', true]);
  await until(async () => (await first('Whose tasks fill the log?')).tenant === 'globex');
  const hot = await first('Which shard is hot?');
  assert.match(hot.shard!, /^\d+$/);

  for (const histogram of [
    'hopline_time_to_first_token_seconds',
    'hopline_chunk_duration_seconds',
    'hopline_hop_duration_seconds',
    'hopline_request_duration_seconds',
    'hopline_append_duration_seconds',
    'hopline_turn_duration_seconds',
  ]) {
    await until(async () => (await exemplars(`${histogram}_bucket`)).length > 0);
    const traces = new Set((await exemplars(`${histogram}_bucket`)).map(({ labels }) => labels.trace_id));
    assert.deepEqual([...traces], [trace], histogram);
  }
});
