import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { NOT_RECORDED, type TaskTrace } from '@hopline/task-audit';
import { HOP_NAMES } from '../../packages/telemetry/src/hops.ts';
import { answer, type RemoteAgent, type Step, startRemoteAgent } from '../support/agents/remote-agent.ts';
import { collect, frames, messageParams, rpc, shapeOf } from '../support/cluster/a2a-stream.ts';
import { Cluster } from '../support/cluster/cluster.ts';
import { drawTree, type ExportedSpan, OtlpReceiver } from '../support/telemetry/otlp-receiver.ts';
import { startWebhook } from '../support/webhooks/webhook.ts';

/** Spans and metrics of a real cluster, as a collector and Prometheus receive them. */

const DEMO = `${fileURLToPath(new URL('../../', import.meta.url))}infra/local/demo`;
const TOKENS = ['Here', ' is', ' the', ' version', ' v3.1.8', ' ✅ done'];
const SECRET = 'PLANTED-secret-of-the-test';
const SPANS_MAX = 12;

const collector = new OtlpReceiver();
let remote: RemoteAgent;
let cluster: Cluster;

async function* script({ text, turn }: { text: string; turn: number }): AsyncGenerator<Step> {
  if (text.includes('ask') && turn === 1) {
    yield { token: 'before' };
    yield { inputRequired: 'Which one?' };
    return;
  }
  if (text.includes('fail')) {
    yield { token: 'so far' };
    yield { fail: true, text: 'broken' };
    return;
  }
  if (text.includes('tool')) {
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
    notifiers: 1,
    agents: [{ name: 'player', adapter: 'a2a', url: remote.url, skills }, ...agents],
    agentsFolder: DEMO,
    env: {
      OTEL_EXPORTER_OTLP_ENDPOINT: endpoint,
      OTEL_METRICS_EXPORTER: 'prometheus,otlp',
      OTEL_METRIC_EXPORT_INTERVAL: '1000',
      HOPLINE_PUSH: 'true',
      HOPLINE_WEBHOOK_ALLOW: '127.0.0.1',
      HOPLINE_WEBHOOK_HTTP: 'true',
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

/** Waits until the trace of a task has the span that ends last, and returns all of its spans. */
async function traceOf(taskId: string, isLast: (span: ExportedSpan) => boolean): Promise<ExportedSpan[]> {
  await collector.until(`the trace of ${taskId}`, () => collector.ofTask(taskId).find(isLast));
  // Processes export on their own: the rest arrives within their export delay.
  let before = -1;
  while (collector.ofTask(taskId).length !== before) {
    before = collector.ofTask(taskId).length;
    await new Promise(resolve => setTimeout(resolve, 1_500));
  }
  return collector.ofTask(taskId);
}

const isViewerEnd = ({ name, attributes }: ExportedSpan) =>
  name === 'deliver_events' && attributes['hopline.outcome'] !== undefined;
const named = (spans: ExportedSpan[], name: string) => spans.filter(span => span.name === name);
const only = (spans: ExportedSpan[], name: string): ExportedSpan => {
  const found = named(spans, name);
  assert.equal(found.length, 1, `${name} in\n${drawTree(spans)}`);
  return found[0]!;
};
const isConnected = (spans: ExportedSpan[]) => !drawTree(spans).includes('parent missing');

/** Checks that hold for every trace. */
function assertHonest(spans: ExportedSpan[]): void {
  assert.ok(isConnected(spans), drawTree(spans));
  for (const span of spans) {
    assert.match(span.service, /^hopline-(ingress|relay|supervisor|sub-agent|notifier)$/);
    assert.equal(span.resource['service.namespace'], 'hopline');
    assert.ok(span.attributes['a2a.task.id'] !== undefined || /^(chat|execute_tool) /.test(span.name), span.name);
    for (const { spanId } of span.links) assert.notEqual(spanId, span.parentId, `${span.name} links to its parent`);
    assert.ok(span.endMs >= span.startMs, span.name);
  }
}

test('the question of S0 with a webhook is one connected tree of few spans, one per hop in their order [S0-1 S0-34 S1-18 S4-9]', {
  timeout: 120_000,
}, async () => {
  await using webhook = await startWebhook();
  const pushNotificationConfig = { url: `${webhook.url}/hook`, token: SECRET };
  const list = await collect(cluster.url, {
    params: {
      ...messageParams('play the version'),
      configuration: { pushNotificationConfig },
      metadata: { correlationId: 'order-42' },
    },
  });
  const taskId = taskOf(list);
  await webhook.until(() => webhook.notifications.some(({ body }) => JSON.stringify(body).includes('completed')));
  const spans = await traceOf(taskId, ({ name }) => name === 'send_push_notification');
  assertHonest(spans);
  assert.equal(
    drawTree(spans),
    [
      'send_streaming_message [server]',
      '  deliver_events [internal]',
      '  receive a2a.raw.{shard}.{taskId}.{writer} [client]',
      '    process a2a.raw.{shard}.{taskId}.{writer} [consumer]',
      '    receive a2a.work.{role}.{taskId} [client]',
      '      process a2a.work.{role}.{taskId} [consumer]',
      '      receive a2a.work.{role}.{taskId} [client]',
      '        invoke_agent player [client]',
      '    send_push_notification [client]',
    ].join('\n'),
  );
  assert.ok(spans.length <= SPANS_MAX);
  const { attributes: server } = only(spans, 'send_streaming_message');
  assert.equal(server['a2a.task.id'], taskId);
  assert.ok(server['gen_ai.conversation.id']);
  assert.equal(server['hopline.binding'], 'jsonrpc');
  assert.ok(server['a2a.message.id']);
  for (const name of [
    'send_streaming_message',
    'process a2a.raw.{shard}.{taskId}.{writer}',
    'process a2a.work.{role}.{taskId}',
    'invoke_agent player',
  ])
    assert.equal(only(spans, name).attributes['hopline.correlation.id'], 'order-42', name);
  const { attributes: viewer } = only(spans, 'deliver_events');
  assert.deepEqual([viewer['a2a.task.state'], viewer['hopline.outcome']], ['completed', 'ended']);
  assert.ok(Number(viewer['hopline.bytes_out']) > 0);
  const { attributes: relay } = only(spans, 'process a2a.raw.{shard}.{taskId}.{writer}');
  assert.deepEqual(
    [relay['messaging.system.name'], relay['messaging.operation.type'], relay['a2a.task.state']],
    ['nats', 'process', 'completed'],
  );
  assert.match(String(relay['messaging.destination.name']), /^a2a\.raw\.[0-9a-f]{2}\./);
  assert.match(String(relay['messaging.consumer.group.name']), /^relay-shard-\d+$/);
  const { attributes: push } = only(spans, 'send_push_notification');
  assert.equal(push['hopline.delivered'], webhook.notifications.length);
  assert.equal(push['server.address'], '127.0.0.1');
  assert.match(String(webhook.notifications[0]?.headers.traceparent), new RegExp(`^00-${spans[0]!.traceId}-`));
  // The remote agent is in the trace, and its own task id is on no span of ours.
  const { headers, taskId: childTask } = remote.requests.findLast(({ method }) => method === 'stream' || method === 'send')!;
  assert.match(String(headers.traceparent), new RegExp(`^00-${spans[0]!.traceId}-`));
  assert.ok(!JSON.stringify(spans).includes(childTask));
});

test('chunks are the same number in the log, in spans and in metrics [S2-41]', { timeout: 120_000 }, async () => {
  const before = await metric('hopline_chunks_total', 'relays');
  const taskId = taskOf(await collect(cluster.url, { text: 'play a burst' }));
  const spans = await traceOf(taskId, isViewerEnd);
  const ofRelay = named(spans, 'process a2a.raw.{shard}.{taskId}.{writer}');
  const inSpans = ofRelay.reduce((sum, { attributes }) => sum + Number(attributes['hopline.chunks'] ?? 0), 0);
  const report = (await (await fetch(`${cluster.url}/tasks/${taskId}/audit`)).json()) as { audit: { chunks: number } };
  assert.equal(inSpans, (await metric('hopline_chunks_total', 'relays')) - before);
  assert.equal(inSpans, report.audit.chunks);
  assert.ok(inSpans > 1);
});

test('a tool call is a span, and its server gets the trace', { timeout: 120_000 }, async () => {
  const taskId = taskOf(await collect(cluster.url, { text: 'list_directory {"path":"packages"}' }));
  const spans = await traceOf(taskId, isViewerEnd);
  assertHonest(spans);
  const tool = only(spans, 'execute_tool list_directory');
  assert.equal(tool.kind, 'client');
  assert.equal(tool.attributes['gen_ai.tool.name'], 'list_directory');
  assert.equal(tool.attributes['gen_ai.operation.name'], 'execute_tool');
});

test('the second turn of an interrupted task is below its own request, with a link to the first one', {
  timeout: 120_000,
}, async () => {
  const first = await collect(cluster.url, { text: 'play ask' });
  assert.equal(shapeOf(first.at(-1)!), 'status:input_required');
  const taskId = taskOf(first);
  const before = await traceOf(taskId, isViewerEnd);
  assertHonest(before);
  // The segments end at the interrupt: a turn that waits for hours has no open span.
  assert.equal(only(before, 'process a2a.raw.{shard}.{taskId}.{writer}').attributes['a2a.task.state'], 'input-required');
  const second = await collect(cluster.url, { params: messageParams('the second', { taskId }) });
  assert.equal(shapeOf(second.at(-1)!), 'status:completed');
  const own = await collector.until('the second turn', spans =>
    spans.find(span => isViewerEnd(span) && span.attributes['a2a.task.id'] === taskId && span.traceId !== before[0]!.traceId),
  );
  await traceOf(taskId, ({ traceId, name }) => traceId === own.traceId && name === 'process a2a.work.{role}.{taskId}');
  const turn = collector.ofTrace(own.traceId);
  assertHonest(turn);
  assert.equal(named(turn, 'send_streaming_message').length, 1);
  for (const name of ['process a2a.work.{role}.{taskId}', 'invoke_agent player']) only(turn, name);
  const links = turn.flatMap(span => span.links);
  assert.ok(
    links.some(({ traceId }) => traceId === before[0]!.traceId),
    'a link to the first turn',
  );
  assert.equal(only(turn, 'process a2a.raw.{shard}.{taskId}.{writer}').attributes['hopline.cause'], 'continuation');
});

test('a client that left is marked, and its resume on another ingress links to the trace of the task', {
  timeout: 120_000,
}, async () => {
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
  const gone = await collector.until('the stream that the client left', spans =>
    spans.find(({ attributes }) => attributes['a2a.task.id'] === taskId && attributes['hopline.outcome'] === 'client_gone'),
  );
  assert.equal(gone.name, 'deliver_events');
  assert.equal(gone.isError, false);
  const resumed = await collector.until('the resume', spans =>
    spans.find(({ name, attributes }) => name === 'subscribe_to_task' && attributes['a2a.task.id'] === taskId),
  );
  assert.ok(resumed.links.some(({ traceId }) => traceId === gone.traceId));
  assert.ok(resumed.attributes['gen_ai.conversation.id']);
  assert.equal(await metric('hopline_resumes_total', 'ingresses'), resumes + 1);
});

test('cancel, get, list, and an unknown method are spans with the task and the outcome, and are counted', {
  timeout: 120_000,
}, async () => {
  let taskId = '';
  const stream = frames(cluster.url, { text: 'play long' });
  for await (const frame of stream) {
    if ('task' in frame.event) taskId = frame.event.task.id;
    if (shapeOf(frame).startsWith('artifact:streaming_result')) break;
  }
  await rpc(cluster.url, { method: 'tasks/cancel', params: { id: taskId } });
  await rpc(cluster.url, { method: 'tasks/get', params: { id: taskId } });
  await rpc(cluster.url, { method: 'ListTasks', params: {}, dialect: '1.0' });
  await rpc(cluster.url, { method: 'tasks/nonsense', params: {} });
  await fetch(cluster.url, { method: 'POST', headers: { 'content-type': 'application/json' }, body: '{' });
  const cancel = await collector.until('cancel', spans => spans.find(({ name }) => name === 'cancel_task'));
  assert.equal(cancel.attributes['a2a.task.id'], taskId);
  const get = await collector.until('get', spans => spans.find(({ name }) => name === 'get_task'));
  assert.deepEqual(
    [get.attributes['a2a.task.id'], get.attributes['a2a.task.state'], get.attributes['hopline.outcome']],
    [taskId, 'canceled', 'ok'],
  );
  const unknown = await collector.until('unknown methods', spans => {
    const found = named(spans, 'unknown_method');
    return found.length >= 2 ? found : undefined;
  });
  assert.deepEqual(unknown.map(({ attributes }) => attributes['error.type']).sort(), ['METHOD_NOT_FOUND', 'PARSE_ERROR']);
  const text = await (await fetch(`${cluster.url}/metrics`)).text();
  assert.match(text, /^hopline_requests_total\{service="ingress",binding="jsonrpc",operation="cancel",outcome="ok"\} 1$/m);
  assert.match(text, /^hopline_requests_total\{service="ingress",binding="grpc",operation="get",outcome="server_error"\} 0$/m);
  assert.match(text, /^hopline_request_errors_total\{service="ingress",reason="METHOD_NOT_FOUND"\} 1$/m);
  const trace = await traceOf(
    taskId,
    ({ name, attributes }) => name.startsWith('process a2a.raw') && attributes['hopline.outcome'] === 'canceled',
  );
  assertHonest(trace);
});

test('an agent that fails leaves an error with its cause on its span, and its state on the others', {
  timeout: 120_000,
}, async () => {
  const before = await metric('hopline_tasks_ended_total', 'relays', 'state="failed"');
  const taskId = taskOf(await collect(cluster.url, { text: 'play fail' }));
  const spans = await traceOf(taskId, isViewerEnd);
  assertHonest(spans);
  const agent = only(spans, 'invoke_agent player');
  assert.deepEqual([agent.isError, agent.attributes['hopline.outcome']], [true, 'failed']);
  assert.equal(only(spans, 'deliver_events').attributes['a2a.task.state'], 'failed');
  assert.equal(await metric('hopline_tasks_ended_total', 'relays', 'state="failed"'), before + 1);
});

/** Six kinds of task, and the agent whose text is measured. */
const KINDS: [string, string, string][] = [
  ['a remote agent', 'play the version', 'player'],
  ['a burst of 550 tokens', 'play a burst', 'player'],
  ['a slow stream of 400 tokens', 'play long', 'player'],
  ['a remote agent with a tool', 'play with a tool', 'player'],
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
        const turn = TURN_HOPS.reduce((sum, hop) => sum + took(hop), 0) + (text.includes('tool') ? took('tool') : 0);
        assert.ok(turn < took('first token'), `${turn} s of ${took('first token')} s`);
        if (list.filter(frame => shapeOf(frame).startsWith('artifact:streaming_result')).length === 1)
          assertNear(turn + chunks, took('first token'), 'first token');
        const inLog = hopsOf(await report(taskOf(list)), agent);
        for (const hop of RECORDED_HOPS) assertSame(inLog.get(hop) ?? 0, took(hop), hop);
      }),
  );
}

/** A process that loses its processor between two looks at the clock measures that, too. */
async function inOneOf(tries: number, measured: () => Promise<void>): Promise<void> {
  for (let left = tries - 1; ; left -= 1) {
    try {
      return await measured();
    } catch (error) {
      if (left === 0) throw error;
    }
  }
}

/** Every hop but those that lie behind the log. */
const RECORDED_HOPS = HOP_NAMES.filter(hop => !NOT_RECORDED.some(name => name === hop));

const report = async (taskId: string) => (await (await fetch(`${cluster.url}/tasks/${taskId}/audit`)).json()) as TaskTrace;

/** Seconds of each hop of an agent's texts, as the log has them. */
function hopsOf({ hops: ofTurns, events, producers }: TaskTrace, agent: string): Map<string, number> {
  const sums = new Map<string, number>();
  const add = (hop: string, ms: number) => sums.set(hop, (sums.get(hop) ?? 0) + ms / 1_000);
  for (const { hop, ms, agent: own } of ofTurns) if (['accept', 'work_queue'].includes(hop) || own === agent) add(hop, ms);
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
  // Sums of seconds in floating point.
  assert.ok(
    difference <= Math.max(0.005, inMetrics * 0.05) + 1e-9,
    `${hop}: ${inLog} s in the log, ${inMetrics} s in the metrics`,
  );
}

/** Rounding to milliseconds at each border costs at most this, seconds. */
const ROUNDING_S = 0.01;

function assertNear(sum: number, whole: number, what: string): void {
  assert.ok(Math.abs(sum - whole) <= Math.max(ROUNDING_S, whole * 0.05), `${sum} s against ${whole} s: ${what}`);
}

/** Seconds spent so far in each hop of an agent's texts, in `chunk` (end to end) and until `first token`. */
async function hops(agent: string): Promise<Map<string, number>> {
  const name = 'hopline_hop_duration_seconds_sum';
  const found = new Map<string, number>();
  for (const hop of [...TURN_HOPS, 'tool', ...CHUNK_HOPS]) {
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

test('a relay that is killed in mid-stream leaves a connected trace, with the takeover and its cause', {
  timeout: 180_000,
}, async () => {
  let taskId = '';
  for await (const frame of frames(cluster.url, { text: 'play long' })) {
    if ('task' in frame.event) taskId = frame.event.task.id;
    if (!shapeOf(frame).startsWith('artifact:streaming_result+')) continue;
    const taken = await collector.until('the receipt of the relay', () =>
      collector.ofTask(taskId).find(({ name }) => name.startsWith('receive a2a.raw')),
    );
    const relay = cluster.relays.find(({ spec }) => spec.instance === taken.resource['service.instance.id']);
    if (relay !== undefined && !relay.hasEnded) await relay.kill('SIGKILL');
  }
  const spans = await traceOf(taskId, isViewerEnd);
  assertHonest(spans);
  const takeover = spans.find(({ attributes }) => attributes['hopline.cause'] === 'takeover');
  assert.ok(takeover !== undefined, drawTree(spans));
  const inLog = (await report(taskId)).relays;
  assert.ok(new Set(inLog.map(({ relay }) => relay)).size >= 2, JSON.stringify(inLog));
  assert.equal(inLog[1]?.takeover?.cause, 'lost', 'the log has the takeover and its cause');
  const relays = new Set(
    spans.filter(({ service }) => service === 'hopline-relay').map(({ resource }) => resource['service.instance.id']),
  );
  assert.equal(relays.size, 2, drawTree(spans));
  await Promise.all(cluster.relays.filter(relay => relay.hasEnded).map(relay => relay.start()));
});

test('a relay that stops in order leaves a connected trace', { timeout: 180_000 }, async () => {
  let taskId = '';
  let isStopped = false;
  let restarted = Promise.resolve();
  for await (const frame of frames(cluster.url, { text: 'play long' })) {
    if ('task' in frame.event) taskId = frame.event.task.id;
    if (isStopped || !shapeOf(frame).startsWith('artifact:streaming_result+')) continue;
    isStopped = true;
    const taken = await collector.until('the receipt of the relay', () =>
      collector.ofTask(taskId).find(({ name }) => name.startsWith('receive a2a.raw')),
    );
    const relay = cluster.relays.find(({ spec }) => spec.instance === taken.resource['service.instance.id'])!;
    await relay.kill('SIGTERM');
    restarted = relay.start();
  }
  await restarted;
  const spans = await traceOf(taskId, isViewerEnd);
  assertHonest(spans);
  const outcomes = named(spans, 'process a2a.raw.{shard}.{taskId}.{writer}').map(
    ({ attributes }) => attributes['hopline.outcome'],
  );
  // The relay that starts again may take its shard back in mid-stream.
  assert.equal(outcomes.filter(outcome => outcome === 'completed').length, 1);
  assert.ok(outcomes.length >= 2 && outcomes.every(outcome => outcome === 'completed' || outcome === 'stopped'), `${outcomes}`);
});

test('a sub-agent that is killed leaves a connected trace: the second attempt links to the first', {
  timeout: 180_000,
}, async () => {
  const player = cluster.agents.find(({ spec }) => spec.instance === 'sub-agent-player')!;
  let isKilled = false;
  let taskId = '';
  for await (const frame of frames(cluster.url, { text: 'play long' })) {
    if ('task' in frame.event) taskId = frame.event.task.id;
    if (isKilled || !shapeOf(frame).startsWith('artifact:streaming_result+')) continue;
    isKilled = true;
    await collector.until('the receipt of the agent', () =>
      collector
        .ofTask(taskId)
        .find(({ name, service }) => name.startsWith('receive a2a.work') && service === 'hopline-sub-agent'),
    );
    await player.kill('SIGKILL');
    await player.start();
  }
  const spans = await traceOf(taskId, isViewerEnd);
  assertHonest(spans);
  const receipts = spans.filter(({ name, service }) => name.startsWith('receive a2a.work') && service === 'hopline-sub-agent');
  assert.equal(receipts.length, 2, drawTree(spans));
  const [one, two] = receipts;
  assert.equal(two!.attributes['hopline.cause'], 'redelivery');
  const attempts = (await report(taskId)).producers.filter(({ agent }) => agent === 'player');
  assert.deepEqual(
    attempts.map(({ attempt, cause }) => [attempt, cause]),
    [
      [1, undefined],
      [2, 'redelivery'],
    ],
  );
  assert.deepEqual(two!.links, [{ traceId: one!.traceId, spanId: one!.spanId }]);
  assert.equal(two!.parentId, one!.parentId);
});

test('a collector that refuses costs no task anything: one warning names the cause and how many spans were lost', {
  timeout: 120_000,
}, async () => {
  collector.behaviour = 'refuse';
  try {
    for (let n = 0; n < 3; n++)
      assert.equal(shapeOf((await collect(cluster.url, { text: 'play it' })).at(-1)!), 'status:completed');
    const until = performance.now() + 30_000;
    while ((await metric('hopline_spans_lost_total', 'relays', 'reason="export_failed"')) === 0 && performance.now() < until)
      await new Promise(resolve => setTimeout(resolve, 200));
    assert.ok((await metric('hopline_spans_lost_total', 'relays', 'reason="export_failed"')) > 0);
  } finally {
    collector.behaviour = 'accept';
  }
  const warningsOf = ({ output }: { output: string }) => output.split('\n').filter(line => line.includes('"http_400"'));
  // A warning waits for further losses.
  const until = performance.now() + 30_000;
  while (cluster.services.flatMap(warningsOf).length === 0 && performance.now() < until)
    await new Promise(resolve => setTimeout(resolve, 200));
  const warnings = cluster.services.map(warningsOf);
  assert.ok(
    warnings.every(lines => lines.length <= 1),
    JSON.stringify(warnings),
  );
  const read = warnings.flat().map(line => JSON.parse(line) as { msg: string; spans_lost: number });
  assert.ok(
    read.some(({ msg, spans_lost }) => msg === 'telemetry export failed' && spans_lost > 0),
    JSON.stringify(read),
  );
});

test('no signal holds text of the task or a credential [S4-43]', { timeout: 60_000 }, async () => {
  const id = randomUUID();
  await collect(cluster.url, { text: `play ${SECRET} ${id}`, headers: { authorization: `Bearer ${SECRET}` } });
  await collector.until('the task', spans => spans.find(isViewerEnd));
  const all = Buffer.concat(collector.bodies).toString('latin1');
  for (const planted of [SECRET, id, ' v3.1.8', 'Which one?', 'broken']) assert.ok(!all.includes(planted), planted);
  assert.ok(collector.paths.has('/v1/traces') && collector.paths.has('/v1/metrics'));
});
