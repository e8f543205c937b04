import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { after, before, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { NOT_RECORDED, type TaskTrace } from '@hopline/task-audit';
import { HOP_NAMES } from '../../packages/telemetry/src/hops.ts';
import { answer, type RemoteAgent, type Step, startRemoteAgent } from '../support/agents/remote-agent.ts';
import { collect, frames, rpc, shapeOf } from '../support/cluster/a2a-stream.ts';
import { Cluster } from '../support/cluster/cluster.ts';
import type { ExportedSpan } from '../support/telemetry/exported-spans.ts';
import { OtlpReceiver } from '../support/telemetry/otlp-receiver.ts';
import { traceOf } from '../support/telemetry/trace-world.ts';

/**
 * Hops and counts of a real cluster must be the same in metrics, in spans and in the log. The trees of spans are tested in
 * trace-trees.test.ts.
 */

const DEMO = `${fileURLToPath(new URL('../../', import.meta.url))}infra/local/demo`;
const TOKENS = ['Here', ' is', ' the', ' version', ' v3.1.8', ' ✅ done'];
const SECRET = 'PLANTED-secret-of-the-test';

const collector = new OtlpReceiver();
let remote: RemoteAgent;
let cluster: Cluster;

async function* script({ text }: { text: string }): AsyncGenerator<Step> {
  if (text.includes('fail')) {
    yield { token: 'so far' };
    yield { fail: true, text: 'broken' };
    return;
  }
  if (text.includes('call')) {
    yield { notice: 'start', tool: 'version_service__version' };
    yield { pause: 60 };
    yield { notice: 'end', tool: 'version_service__version' };
  }
  const count = text.includes('long') ? 400 : text.includes('burst') ? 550 : 0;
  if (count === 0) yield* answer(TOKENS);
  for (let n = 1; n <= count; n++) {
    yield { token: `${n} ` };
    if (text.includes('long')) yield { pause: 25 };
  }
  if (count > 0) yield { complete: true };
}

before(async () => {
  const endpoint = await collector.start();
  remote = await startRemoteAgent({ dialect: '0.3', script });
  const { agents } = JSON.parse(readFileSync(`${DEMO}/agents.json`, 'utf8')) as { agents: Record<string, unknown>[] };
  const skills = [{ id: 'play', name: 'play', description: 'play', tags: ['play'] }];
  cluster = await Cluster.start({
    ingresses: 2,
    relays: 2,
    agents: [{ name: 'player', adapter: 'a2a', url: remote.url, skills }, ...agents],
    agentsFolder: DEMO,
    env: {
      OTEL_EXPORTER_OTLP_ENDPOINT: endpoint,
      OTEL_METRICS_EXPORTER: 'prometheus,otlp',
      OTEL_METRIC_EXPORT_INTERVAL: '5000',
    },
  });
});

after(async () => {
  await cluster?.[Symbol.asyncDispose]();
  await remote?.close();
  await collector.stop();
});

const taskOf = (list: { event: object }[]): string => {
  const first = list[0]?.event as { task?: { id: string } };
  assert.ok(first.task !== undefined);
  return first.task.id;
};

const isViewerEnd = ({ name, attributes }: ExportedSpan) =>
  name === 'deliver_events' && attributes['hopline.outcome'] !== undefined;
const named = (spans: readonly ExportedSpan[], name: string) => spans.filter(span => span.name === name);

test('the number of chunks is the same in the log, in spans and in metrics [S2-41]', { timeout: 120_000 }, async () => {
  const before = await metric('hopline_chunks_total', 'relays');
  const taskId = taskOf(await collect(cluster.url, { text: 'play a burst' }));
  const report = (await (await fetch(`${cluster.url}/tasks/${taskId}/audit`)).json()) as { audit: { chunks: number } };
  const chunksIn = (spans: readonly ExportedSpan[]) =>
    named(spans, 'process a2a.raw.{shard}.{taskId}.{writer}').reduce(
      (sum, { attributes }) => sum + Number(attributes['hopline.chunks'] ?? 0),
      0,
    );
  // Each process exports its spans by its own clock, and exports a hop that lasts long on a busy machine in segments.
  const isWhole = (hops: ExportedSpan[]) => chunksIn(hops) >= report.audit.chunks;
  const inSpans = chunksIn(await traceOf({ traces: collector }, taskId, isViewerEnd, isWhole));
  assert.equal(inSpans, report.audit.chunks);
  assert.equal(inSpans, (await metric('hopline_chunks_total', 'relays')) - before);
  assert.ok(inSpans > 1);
});

test('a resume is counted', { timeout: 120_000 }, async () => {
  let taskId = '';
  let cursor = '';
  for await (const frame of frames(cluster.ingresses[0]!.url, { text: 'play long' })) {
    if ('task' in frame.event) taskId = frame.event.task.id;
    cursor = frame.id;
    if (shapeOf(frame).startsWith('artifact:streaming_result+')) break;
  }
  const resumes = await metric('hopline_resumes_total', 'ingresses');
  const rest = await collect(cluster.ingresses[1]!.url, {
    method: 'tasks/resubscribe',
    params: { id: taskId },
    lastEventId: cursor,
  });
  assert.equal(shapeOf(rest.at(-1)!), 'status:completed');
  assert.equal(await metric('hopline_resumes_total', 'ingresses'), resumes + 1);
});

test('requests are counted by binding, operation and outcome, and an unknown method is a span with its error', {
  timeout: 120_000,
}, async () => {
  const before = await metric('hopline_tasks_ended_total', 'relays', 'state="failed"');
  const taskId = taskOf(await collect(cluster.url, { text: 'play fail' }));
  await rpc(cluster.url, { method: 'tasks/get', params: { id: taskId } });
  await rpc(cluster.url, { method: 'tasks/nonsense', params: {} });
  await fetch(cluster.url, { method: 'POST', headers: { 'content-type': 'application/json' }, body: '{' });
  const unknown = await collector.until('unknown methods', spans => {
    const found = named(spans, 'unknown_method');
    return found.length >= 2 ? found : undefined;
  });
  assert.deepEqual(unknown.map(({ attributes }) => attributes['error.type']).sort(), ['METHOD_NOT_FOUND', 'PARSE_ERROR']);
  const text = await (await fetch(`${cluster.url}/metrics`)).text();
  assert.match(text, /^hopline_requests_total\{service="ingress",binding="jsonrpc",operation="get",outcome="ok"\} 1$/m);
  assert.match(text, /^hopline_requests_total\{service="ingress",binding="grpc",operation="get",outcome="server_error"\} 0$/m);
  assert.match(text, /^hopline_request_errors_total\{service="ingress",reason="METHOD_NOT_FOUND"\} 1$/m);
  assert.equal(await metric('hopline_tasks_ended_total', 'relays', 'state="failed"'), before + 1);
});

/** Six kinds of task, each with the agent whose text is measured. The first token comes from the agent that answers first. */
const KINDS: [string, string, string][] = [
  ['a remote agent', 'play the version', 'player'],
  ['a burst of 550 tokens', 'play a burst', 'player'],
  ['a slow stream of 400 tokens', 'play long', 'player'],
  ['a remote agent with a tool', 'play a call', 'player'],
  ['an MCP server', 'list_directory {"path":"packages"}', 'files'],
  ['a module', 'hello', 'guide'],
];
const TURN_HOPS = ['accept', 'work_queue', 'plan', 'agent_queue', 'agent'];
const CHUNK_HOPS = ['publish', 'hold', 'wait_for_append', 'append', 'splice', 'socket'];

for (const [kind, text, agent] of KINDS) {
  test(
    `the hops of ${kind} add up to the time from end to end, and the log has them as the metrics [S2-41]`,
    {
      timeout: 120_000,
    },
    () =>
      inOneOf(5, async () => {
        const before = await hops(agent);
        const list = await collect(cluster.url, { text });
        assert.equal(shapeOf(list.at(-1)!), 'status:completed');
        const now = await hops(agent);
        const took = (name: string) => now.get(name)! - before.get(name)!;
        const chunks = CHUNK_HOPS.reduce((sum, hop) => sum + took(hop), 0);
        assertNear(chunks, took('chunk'), `${CHUNK_HOPS.map(hop => `${hop} ${took(hop)}`).join(', ')}`);
        // The first text of the agent: its turn, and the hops of its first chunk, which no metric separates from later ones.
        const turn = TURN_HOPS.reduce((sum, hop) => sum + took(hop), 0) + (text.includes('call') ? took('tool') : 0);
        assert.ok(turn < took('first token'), `${turn} s of ${took('first token')} s`);
        if (list.filter(frame => shapeOf(frame).startsWith('artifact:streaming_result')).length === 1)
          assertNear(turn + chunks, took('first token'), 'first token');
        const [turnPath] = (await report(taskOf(list))).turns;
        const pathMs = turnPath!.path.reduce((sum, part) => sum + part.toMs - part.fromMs, 0);
        assert.ok(pathMs >= 0.99 * (turnPath!.toMs - turnPath!.fromMs), JSON.stringify(turnPath));
        const inLog = hopsOf(await report(taskOf(list)), agent);
        for (const hop of RECORDED_HOPS.filter(name => name !== 'finish')) assertSame(inLog.get(hop) ?? 0, took(hop), hop);
        // The end may be in one record with the last token, whose time the record has. The rest of `finish` is then in `publish`.
        assert.ok(
          (inLog.get('finish') ?? 0) <= took('finish') + ROUNDING_S,
          `finish: ${inLog.get('finish')} s, ${took('finish')} s`,
        );
      }),
  );
}

/** Tries again, because a process that loses its CPU between two readings of the clock measures that time too. */
async function inOneOf(tries: number, measured: () => Promise<void>): Promise<void> {
  for (let left = tries - 1; ; left -= 1) {
    try {
      return await measured();
    } catch (error) {
      if (left === 0) throw error;
    }
  }
}

/** Hops that belong to no text of an agent. */
const OF_NO_AGENT = ['compose', 'takeover'];
/** Every other hop except those after the log. */
const RECORDED_HOPS = HOP_NAMES.filter(hop => !NOT_RECORDED.some(name => name === hop) && !OF_NO_AGENT.includes(hop));

const report = async (taskId: string) => (await (await fetch(`${cluster.url}/tasks/${taskId}/audit`)).json()) as TaskTrace;

/** Seconds of each hop of an agent's texts, as the log has them. */
function hopsOf({ hops: ofTurns, events, producers }: TaskTrace, agent: string): Map<string, number> {
  const sums = new Map<string, number>();
  const add = (hop: string, ms: number) => sums.set(hop, (sums.get(hop) ?? 0) + ms / 1_000);
  for (const { hop, ms, agent: own } of ofTurns) if (['accept', 'work_queue'].includes(hop) || own === agent) add(hop, ms);
  for (const { agent: own, firstTokenMs, lastTokenMs, endMs, tools } of producers) {
    if (own !== agent || firstTokenMs === undefined || lastTokenMs === undefined || endMs === undefined) continue;
    const inTools = (fromMs: number, toMs: number) =>
      tools.reduce((sum, tool) => sum + (tool.fromMs >= fromMs && tool.fromMs < toMs ? tool.ms : 0), 0);
    add('talk', lastTokenMs - firstTokenMs - inTools(firstTokenMs, lastTokenMs));
    add('finish', endMs - lastTokenMs - inTools(lastTokenMs, endMs));
  }
  for (const { chunk, producer } of events) {
    if (chunk === undefined || producers.find(({ id }) => id === producer)?.agent !== agent) continue;
    add('publish', chunk.publishMs);
    add('hold', chunk.heldMs);
    add('wait_for_append', chunk.waitMs);
    add('append', chunk.appendMs!);
  }
  return sums;
}

/** Log and metrics show the same figure, within 5 ms or 5 %. */
function assertSame(inLog: number, inMetrics: number, hop: string): void {
  const difference = Math.abs(inLog - inMetrics);
  // Tolerates rounding, because sums of seconds are in floating point.
  assert.ok(
    difference <= Math.max(0.005, inMetrics * 0.05) + 1e-9,
    `${hop}: ${inLog} s in the log, ${inMetrics} s in the metrics`,
  );
}

/** Rounding to milliseconds at each border costs at most this. */
const ROUNDING_S = 0.01;

function assertNear(sum: number, whole: number, what: string): void {
  assert.ok(Math.abs(sum - whole) <= Math.max(ROUNDING_S, whole * 0.05), `${sum} s against ${whole} s: ${what}`);
}

/** Seconds spent so far in each hop of an agent's texts, in `chunk` (end to end) and until `first token`. */
async function hops(agent: string): Promise<Map<string, number>> {
  const name = 'hopline_hop_duration_seconds_sum';
  const found = new Map<string, number>();
  for (const hop of [...TURN_HOPS, 'tool', 'talk', 'finish', 'redelivery', ...CHUNK_HOPS]) {
    const label = hop === 'accept' ? `hop="${hop}"` : `hop="${hop}",agent="${hop === 'work_queue' ? 'supervisor' : agent}"`;
    found.set(hop, await metric(name, 'services', label));
  }
  found.set('chunk', await metric('hopline_chunk_duration_seconds_sum', 'services', `agent="${agent}"`));
  found.set('first token', await metric('hopline_time_to_first_token_seconds_sum', 'services', `agent="${agent}"`));
  return found;
}

/** Sum of a metric over processes, of the series with some labels. */
async function metric(name: string, of: 'relays' | 'ingresses' | 'services', labels = ''): Promise<number> {
  const texts = await Promise.all(cluster[of].map(async ({ url }) => (await fetch(`${url}/metrics`)).text()));
  return texts
    .flatMap(text => text.split('\n'))
    .filter(line => line.startsWith(`${name}{`) && line.includes(labels))
    .reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(' '))), 0);
}

test('a collector that refuses does not affect tasks; one warning has the cause and the number of lost spans', {
  timeout: 180_000,
}, async () => {
  type Warning = { msg: string; spans_lost: number };
  const warnings = () => cluster.services.map(({ output }) => output.split('\n').filter(line => line.includes('"http_400"')));
  const isNamed = () =>
    warnings()
      .flat()
      .map(line => JSON.parse(line) as Warning)
      .some(({ msg, spans_lost }) => msg === 'telemetry export failed' && spans_lost > 0);
  const lost = () => metric('hopline_spans_lost_total', 'services', 'reason="export_failed"');
  const before = await lost();
  collector.behaviour = 'refuse';
  try {
    // A process that has warned of another fault is silent for a minute.
    for (const until = performance.now() + 90_000; !isNamed() && performance.now() < until; ) {
      assert.equal(shapeOf((await collect(cluster.url, { text: 'play it' })).at(-1)!), 'status:completed');
      // Spans are exported every five seconds. Without a pause, a hundred questions would be asked until then.
      await sleep(500);
    }
    assert.ok((await lost()) > before);
  } finally {
    collector.behaviour = 'accept';
  }
  assert.ok(isNamed(), JSON.stringify(warnings()));
  for (const lines of warnings()) assert.ok(lines.length <= 1, JSON.stringify(lines));
});

test('no signal holds text of the task or a credential [S4-43]', { timeout: 120_000 }, async () => {
  const id = randomUUID();
  await collect(cluster.url, { text: `play ${SECRET} ${id}`, headers: { authorization: `Bearer ${SECRET}` } });
  await collector.until('the task', spans => spans.find(isViewerEnd));
  const all = Buffer.concat(collector.bodies).toString('latin1');
  for (const planted of [SECRET, id, ' v3.1.8', 'broken']) assert.ok(!all.includes(planted), planted);
  assert.ok(collector.paths.has('/v1/traces') && collector.paths.has('/v1/metrics'));
});
