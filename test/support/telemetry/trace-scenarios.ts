import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import type { StreamResponse } from '@hopline/a2a';
import { GrpcClient } from '@hopline/a2a-grpc/test-client';
import { userMessage } from '../../kit/user-message.ts';
import { collect, type Frame, frames, messageParams, rpc, shapeOf } from '../cluster/a2a-stream.ts';
import type { ServiceProcess } from '../cluster/service-process.ts';
import { received, startWebhook } from '../webhooks/webhook.ts';
import { drawTree, type ExportedSpan, joinSegments } from './exported-spans.ts';
import { INNER, reportOf, type TraceWorld, traceOf } from './trace-world.ts';

/**
 * A scenario on a cluster, and the tree of spans that a backend must have afterwards. A receiver within the test and Jaeger must show the
 * same tree.
 */
type Scenario = (world: TraceWorld) => Promise<void>;

/** The maximum for the question of S0, including a webhook. */
const SPANS_MAX = 12;
const TOKEN = 'PLANTED-token-of-a-webhook';
/** Text of questions, answers and files, and a credential. None of it may be in a signal. */
export const PLANTED = [TOKEN, ' v3.1.8', 'Which one?', 'Which colour?', 'broken pieces', 'absent.txt', ' tools', 'pid '];
const RAW = 'a2a.raw.{shard}.{taskId}.{writer}';
const WORK = 'a2a.work.{role}.{taskId}';
const STREAMED = 'send_streaming_message [server]';
const indented = (lines: readonly string[]) => lines.map(line => `  ${line}`);

/** The names of the other spans that an agent's attempt causes, before and after its own span. */
type AgentSpans = { before?: string[]; after?: string[]; attempts?: number };

/** The spans of a turn whose supervisor calls one agent, below the request. */
function turnBelow(agent: string, { before = [], after = [], attempts = 1 }: AgentSpans = {}): string[] {
  const attempt = [`receive ${WORK} [client]`, ...indented([...before, `invoke_agent ${agent} [client]`, ...after])];
  const calls = Array.from({ length: attempts }, () => attempt).flat();
  const work = [`receive ${WORK} [client]`, ...indented([`process ${WORK} [consumer]`, ...calls])];
  return [`receive ${RAW} [client]`, ...indented([`process ${RAW} [consumer]`, ...work])];
}

/** The tree of a stream. */
const treeOf = (agent: string, more: AgentSpans = {}) =>
  [STREAMED, ...indented(['deliver_events [internal]', ...turnBelow(agent, more)])].join('\n');

const hasEnded = ({ attributes }: ExportedSpan) => attributes['hopline.outcome'] !== undefined;
const isViewerEnd = (span: ExportedSpan) => span.name === 'deliver_events' && hasEnded(span);
const isRelayEnd = (span: ExportedSpan) => span.name === `process ${RAW}` && hasEnded(span);
const named = (spans: readonly ExportedSpan[], name: string) => spans.filter(span => span.name === name);
const only = <Span extends ExportedSpan>(spans: readonly Span[], name: string): Span => {
  const found = spans.filter(span => span.name === name);
  assert.equal(found.length, 1, `${name} in\n${drawTree(spans)}`);
  return found[0]!;
};
/** The only link of spans of a turn. It leads to the turn's own span, so that viewers can show them below their agent. */
function assertLinked(spans: readonly ExportedSpan[], agent: string): void {
  const { traceId, spanId } = only(spans, `invoke_agent ${agent}`);
  const ofTurn = spans.filter(({ attributes }) => /^(chat|execute_tool)$/.test(String(attributes['gen_ai.operation.name'])));
  assert.ok(ofTurn.length > 0, drawTree(spans));
  for (const { name, links, attributes } of ofTurn) {
    assert.deepEqual(links, [{ traceId, spanId }], name);
    assert.equal(attributes['gen_ai.agent.name'], agent, name);
  }
}
const to = (agent: string, text: string, more: Record<string, unknown> = {}) => ({
  params: { ...messageParams(text, more), metadata: { agent } },
});

const taskOf = (list: readonly Pick<Frame, 'event'>[]): string => {
  const first = list[0]?.event;
  assert.ok(first !== undefined && 'task' in first);
  return first.task.id;
};

/** Checks that hold for every trace. */
function assertHonest(spans: readonly ExportedSpan[]): void {
  assert.ok(!drawTree(spans).includes('parent missing'), drawTree(spans));
  for (const span of spans) {
    assert.match(span.service, /^hopline-(ingress|relay|supervisor|sub-agent|notifier)$/);
    assert.match(String(span.resource['service.namespace']), /^(hopline|inner)$/);
    assert.ok(span.attributes['a2a.task.id'] !== undefined, span.name);
    for (const { spanId } of span.links) assert.notEqual(spanId, span.parentId, `${span.name} links to its parent`);
    assert.ok(span.endMs >= span.startMs, span.name);
  }
}

/** Starts a long answer, and kills a process after its first text, once the span of its receipt is exported. */
async function killInMidStream(
  { cluster, traces }: TraceWorld,
  options: { isReceipt: (span: ExportedSpan) => boolean; services: ServiceProcess[]; signal: NodeJS.Signals },
): Promise<{ taskId: string; killed: ServiceProcess; restarted: Promise<void> }> {
  const { isReceipt, services, signal } = options;
  let taskId = '';
  let killed: ServiceProcess | undefined;
  let restarted = Promise.resolve();
  for await (const frame of frames(cluster.url, to('player', 'play long'))) {
    if ('task' in frame.event) taskId = frame.event.task.id;
    if (killed !== undefined || !shapeOf(frame).startsWith('artifact:streaming_result+')) continue;
    const { resource } = await traces.until('the span of the receipt', () => traces.ofTask(taskId).find(isReceipt));
    killed = services.find(({ spec }) => spec.instance === resource['service.instance.id'])!;
    await killed.kill(signal);
    restarted = killed.start();
  }
  assert.ok(killed !== undefined, 'the answer ended before the process was killed');
  return { taskId, killed, restarted };
}

export const questionOfS0: Scenario = async world => {
  const { cluster, remote } = world;
  await using webhook = await startWebhook();
  const list = await collect(cluster.url, {
    params: {
      ...messageParams('play the version'),
      configuration: { pushNotificationConfig: { url: `${webhook.url}/hook`, token: TOKEN } },
      metadata: { correlationId: 'order-42' },
    },
  });
  const taskId = taskOf(list);
  await webhook.until(() => webhook.notifications.some(({ body }) => JSON.stringify(body).includes('completed')));
  const spans = await traceOf(world, taskId, ({ name }) => name === 'send_push_notification');
  assertHonest(spans);
  assert.equal(drawTree(spans), `${treeOf('player')}\n    send_push_notification [client]`);
  assert.ok(spans.length <= SPANS_MAX);
  const { attributes: server } = only(spans, 'send_streaming_message');
  assert.equal(server['a2a.task.id'], taskId);
  assert.ok(server['gen_ai.conversation.id']);
  assert.equal(server['hopline.binding'], 'jsonrpc');
  assert.ok(server['a2a.message.id']);
  for (const name of ['send_streaming_message', `process ${RAW}`, `process ${WORK}`, 'invoke_agent player'])
    assert.equal(only(spans, name).attributes['hopline.correlation.id'], 'order-42', name);
  const { attributes: viewer } = only(spans, 'deliver_events');
  assert.deepEqual([viewer['a2a.task.state'], viewer['hopline.outcome']], ['completed', 'ended']);
  // The root is exported before the task has a state (ADR 53).
  assert.equal(server['a2a.task.state'], undefined);
  assert.ok(Number(viewer['hopline.bytes_out']) > 0);
  const { attributes: relay } = only(spans, `process ${RAW}`);
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
  // The remote agent is in the trace, but its task id is on none of our spans.
  const { headers, taskId: childTask } = remote.requests.findLast(({ method }) => method === 'stream' || method === 'send')!;
  assert.match(String(headers.traceparent), new RegExp(`^00-${spans[0]!.traceId}-`));
  assert.ok(!JSON.stringify(spans).includes(childTask));
};

const toolCall: Scenario = async world => {
  const { cluster } = world;
  const taskId = taskOf(await collect(cluster.url, to('files', 'list_directory {"path":"packages"}')));
  const spans = await traceOf(world, taskId, isViewerEnd);
  assertHonest(spans);
  assert.equal(drawTree(spans), treeOf('files', { before: ['execute_tool list_directory [client]'] }));
  const { attributes } = only(spans, 'execute_tool list_directory');
  assert.equal(attributes['gen_ai.tool.name'], 'list_directory');
  assert.equal(attributes['gen_ai.operation.name'], 'execute_tool');
  assertLinked(spans, 'files');
};

const modelWithTools: Scenario = async world => {
  const { cluster, model } = world;
  const taskId = taskOf(await collect(cluster.url, to('coder', 'use both tools')));
  const spans = await traceOf(world, taskId, isViewerEnd);
  assertHonest(spans);
  const before = ['chat stand-in', 'chat stand-in', 'execute_tool noise', 'execute_tool ok'];
  assert.equal(drawTree(spans), treeOf('coder', { before: before.map(name => `${name} [client]`) }));
  const [plans, answers] = named(spans, 'chat stand-in') as [ExportedSpan, ExportedSpan];
  for (const { attributes } of [plans, answers])
    assert.deepEqual(
      ['gen_ai.operation.name', 'gen_ai.provider.name', 'gen_ai.request.model'].map(key => attributes[key]),
      ['chat', 'openai', 'stand-in'],
    );
  for (const tool of ['ok', 'noise']) {
    const { attributes, startMs, endMs, isError } = only(spans, `execute_tool ${tool}`);
    assert.deepEqual(
      ['gen_ai.operation.name', 'gen_ai.tool.name', 'gen_ai.tool.type'].map(key => attributes[key]),
      ['execute_tool', tool, 'function'],
    );
    assert.equal(isError, false);
    // Both run between the two requests: the first request asks for them, and the second contains their results.
    assert.ok(startMs >= plans.startMs && endMs <= answers.endMs, tool);
  }
  assertLinked(spans, 'coder');
  const { attributes: turn } = only(spans, 'invoke_agent coder');
  assert.deepEqual([turn['hopline.tool_calls'], turn['a2a.task.state']], [2, 'completed']);
  // The model's server joins the trace below the span of the whole turn.
  const { spanId, traceId } = spans.find(span => span.spanId === plans.parentId)!;
  for (const { headers } of model.requests.slice(-2))
    assert.match(String(headers.traceparent), new RegExp(`^00-${traceId}-(${plans.spanId}|${answers.spanId}|${spanId})-`));
};

/** Asks an agent that interrupts its turn, and answers: the trace of each turn. */
async function twoTurns(world: TraceWorld, agent: string, texts: [string, string]) {
  const { cluster, traces } = world;
  const first = await collect(cluster.url, to(agent, texts[0]));
  assert.equal(shapeOf(first.at(-1)!), 'status:input_required');
  const taskId = taskOf(first);
  const before = await traceOf(world, taskId, isViewerEnd);
  assertHonest(before);
  assert.equal(drawTree(before), treeOf(agent));
  // The segments end at the interrupt: a turn that waits for hours has no open span.
  for (const name of ['deliver_events', `process ${RAW}`])
    assert.equal(only(before, name).attributes['a2a.task.state'], 'input-required', name);
  const list = await collect(cluster.url, to(agent, texts[1], { taskId }));
  const isOfSecond = ({ attributes, traceId }: ExportedSpan) =>
    attributes['a2a.task.id'] === taskId && traceId !== before[0]!.traceId;
  const { traceId } = await traces.until('the second turn', spans =>
    spans.find(span => isOfSecond(span) && span.name === `process ${WORK}`),
  );
  await traceOf(world, taskId, span => span.traceId === traceId && isViewerEnd(span));
  const turn = joinSegments(traces.ofTrace(traceId));
  assertHonest(turn);
  assert.equal(drawTree(turn), treeOf(agent));
  assert.ok(
    turn.flatMap(({ links }) => links).some(link => link.traceId === before[0]!.traceId),
    'a link to the first turn',
  );
  assert.equal(only(turn, `process ${RAW}`).attributes['hopline.cause'], 'continuation');
  return { before, turn, list };
}

const secondTurn: Scenario = async world => {
  const { list } = await twoTurns(world, 'player', ['play ask', 'the second']);
  assert.equal(shapeOf(list.at(-1)!), 'status:completed');
};

const graphWithInterrupt: Scenario = async world => {
  const { before, turn, list } = await twoTurns(world, 'painter', ['paint', 'blue']);
  assert.equal(shapeOf(list.at(-1)!), 'status:input_required', 'the graph asks for the size');
  const nodes = (spans: ExportedSpan[]) =>
    only(spans, 'invoke_agent painter').events.map(({ name, attributes }) => [name, attributes['hopline.graph.node']]);
  // The node that asks has no step, because it has not ended, and the answer runs it again.
  assert.deepEqual(nodes(before), [['hopline.step', 'n1']]);
  assert.deepEqual(nodes(turn), []);
  for (const spans of [before, turn])
    assert.equal(only(spans, 'invoke_agent painter').attributes['hopline.outcome'], 'input-required');
};

const cutAndResumed: Scenario = async world => {
  const { cluster, traces } = world;
  let taskId = '';
  let cursor = '';
  for await (const frame of frames(cluster.ingresses[0]!.url, to('player', 'play long'))) {
    if ('task' in frame.event) taskId = frame.event.task.id;
    cursor = frame.id;
    if (shapeOf(frame).startsWith('artifact:streaming_result+')) break;
  }
  const gone = await traces.until('the stream that the client left', spans =>
    spans.find(({ attributes }) => attributes['a2a.task.id'] === taskId && attributes['hopline.outcome'] === 'client_gone'),
  );
  assert.equal(gone.name, 'deliver_events');
  assert.equal(gone.isError, false);
  // Both on the same and on another ingress.
  const rests = await Promise.all(
    cluster.ingresses.map(({ url }) =>
      collect(url, { method: 'tasks/resubscribe', params: { id: taskId }, lastEventId: cursor }),
    ),
  );
  for (const rest of rests) assert.equal(shapeOf(rest.at(-1)!), 'status:completed');
  const resumed = await traces.until('both resumes', spans => {
    const found = named(spans, 'subscribe_to_task').filter(({ attributes }) => attributes['a2a.task.id'] === taskId);
    return found.length === 2 ? found : undefined;
  });
  assert.equal(new Set(resumed.map(({ resource }) => resource['service.instance.id'])).size, 2);
  for (const { traceId, links, attributes } of resumed) {
    assert.ok(links.some(link => link.traceId === gone.traceId));
    assert.ok(attributes['gen_ai.conversation.id']);
    await traceOf(world, taskId, span => span.traceId === traceId && isViewerEnd(span));
    const joined = joinSegments(traces.ofTrace(traceId));
    assert.equal(drawTree(joined), 'subscribe_to_task [server]\n  deliver_events [internal]');
    assert.equal(only(joined, 'deliver_events').attributes['a2a.task.state'], 'completed');
  }
};

const sendThatDoesNotWait: Scenario = async world => {
  const params = { ...to('player', 'play it').params, configuration: { blocking: false } };
  const response = await rpc(world.cluster.url, { method: 'message/send', params });
  const { result } = (await response.json()) as { result: { id: string } };
  const spans = await traceOf(world, result.id, isRelayEnd);
  assertHonest(spans);
  assert.equal(
    drawTree(spans),
    ['send_message [server]', ...indented(['deliver_events [internal]', ...turnBelow('player')])].join('\n'),
  );
  assert.equal(only(spans, 'send_message').attributes['a2a.task.id'], result.id);
  assert.equal(only(spans, `process ${RAW}`).attributes['a2a.task.state'], 'completed');
};

const canceled: Scenario = async world => {
  const { cluster, traces } = world;
  let taskId = '';
  for await (const frame of frames(cluster.url, to('player', 'play long'))) {
    if ('task' in frame.event) taskId = frame.event.task.id;
    if (shapeOf(frame).startsWith('artifact:streaming_result')) break;
  }
  await rpc(cluster.url, { method: 'tasks/cancel', params: { id: taskId } });
  await rpc(cluster.url, { method: 'tasks/get', params: { id: taskId } });
  await rpc(cluster.url, { method: 'ListTasks', params: {}, dialect: '1.0' });
  const cancel = await traces.until('cancel', spans =>
    spans.find(({ name, attributes }) => name === 'cancel_task' && attributes['a2a.task.id'] === taskId),
  );
  assert.equal(cancel.attributes['hopline.binding'], 'jsonrpc');
  const get = await traces.until('get', spans =>
    spans.find(({ name, attributes }) => name === 'get_task' && attributes['a2a.task.id'] === taskId),
  );
  assert.deepEqual([get.attributes['a2a.task.state'], get.attributes['hopline.outcome']], ['canceled', 'ok']);
  await traces.until('list', spans => spans.find(({ name }) => name === 'list_tasks'));
  const spans = await traceOf(world, taskId, span => isRelayEnd(span) && span.attributes['hopline.outcome'] === 'canceled');
  assertHonest(spans);
  const relay = spans.find(isRelayEnd)!;
  assert.ok(
    relay.links.some(({ traceId }) => traceId === cancel.traceId),
    'a link to the cancel',
  );
};

const overGrpc: Scenario = async world => {
  const { cluster, traces } = world;
  const client = new GrpcClient(`127.0.0.1:${cluster.ingresses[0]!.spec.env.HOPLINE_GRPC_PORT}`);
  try {
    const message = userMessage('play the version');
    const events: StreamResponse[] = await client.stream('SendStreamingMessage', { message }).rest();
    const taskId = taskOf(events.map(event => ({ event })));
    const spans = await traceOf(world, taskId, isViewerEnd);
    assertHonest(spans);
    assert.equal(drawTree(spans), treeOf('player'));
    assert.equal(only(spans, 'send_streaming_message').attributes['hopline.binding'], 'grpc');
    assert.equal(only(spans, 'deliver_events').attributes['a2a.task.state'], 'completed');
    const [traceId, spanId] = [randomUUID().replaceAll('-', ''), 'b7ad6b7169203331'];
    await client.call('GetTask', { id: taskId }, { metadata: { traceparent: `00-${traceId}-${spanId}-01` } });
    const get = await traces.until('get over gRPC', () => traces.ofTrace(traceId)[0]);
    assert.deepEqual([get.name, get.kind, get.parentId], ['get_task', 'server', spanId]);
    assert.deepEqual([get.attributes['hopline.binding'], get.attributes['a2a.task.id']], ['grpc', taskId]);
  } finally {
    client.close();
  }
};

const nestedClusters: Scenario = async world => {
  const taskId = taskOf(await collect(world.cluster.url, to('region', 'play the version')));
  const spans = await traceOf(world, taskId, isViewerEnd);
  assertHonest(spans);
  const inner = treeOf('player').split('\n');
  assert.equal(drawTree(spans), treeOf('region', { before: ['execute_tool player [client]'], after: inner }));
  // The request of the inner cluster is below the receipt of the outer turn, and links to the turn.
  const turn = only(spans, 'invoke_agent region');
  const request = spans.find(
    ({ name, resource }) => name === 'send_streaming_message' && resource['service.namespace'] === INNER,
  );
  assert.deepEqual(request?.links, [{ traceId: turn.traceId, spanId: turn.spanId }]);
  assertLinked(spans, 'region');
  const namespaces = spans.map(({ name, resource }) => [name, resource['service.namespace']]);
  assert.deepEqual(
    namespaces.filter(([name]) => name === 'send_streaming_message').map(([, namespace]) => namespace),
    ['hopline', INNER],
  );
  assert.equal(namespaces.filter(([, namespace]) => namespace === INNER).length, inner.length);
  const tasks = new Set(spans.flatMap(({ attributes }) => attributes['a2a.task.id'] ?? []));
  assert.equal(tasks.size, 2, 'each cluster has its own task');
};

/** Words of a message for the agent `broken`, the cause that its span must show, and whether the call is retried. */
const FAILURES = {
  state: { cause: 'agent_failed', attempts: 1 },
  rpc: { cause: 'rpc_error', attempts: 1 },
  http: { cause: 'http_500', attempts: 2 },
  cut: { cause: 'stream_cut', attempts: 2 },
  garbage: { cause: 'not_json', attempts: 1 },
} as const;

const failingAgent: Scenario = async world => {
  for (const [word, { cause, attempts }] of Object.entries(FAILURES)) {
    const taskId = taskOf(await collect(world.cluster.url, to('broken', word)));
    const spans = await traceOf(world, taskId, isViewerEnd);
    assertHonest(spans);
    assert.equal(drawTree(spans), treeOf('broken', { attempts }), word);
    const calls = named(spans, 'invoke_agent broken').sort((a, b) => a.startMs - b.startMs);
    for (const { isError, attributes } of calls)
      assert.deepEqual([isError, attributes['error.type'], attributes['hopline.outcome']], [true, cause, 'failed'], word);
    for (const [index, { attributes }] of calls.entries()) assert.equal(attributes['hopline.attempt'], index + 1, word);
    assert.equal(calls.at(-1)!.attributes['a2a.task.state'], 'failed', word);
    for (const name of ['deliver_events', `process ${RAW}`, `process ${WORK}`])
      assert.equal(only(spans, name).attributes['a2a.task.state'], 'failed', `${word}: ${name}`);
  }
};

const failingTool: Scenario = async world => {
  const taskId = taskOf(await collect(world.cluster.url, to('files', 'read_text_file {"path":"packages/absent.txt"}')));
  const spans = await traceOf(world, taskId, isViewerEnd);
  assertHonest(spans);
  const tool = only(spans, 'execute_tool read_text_file');
  assert.deepEqual([tool.isError, tool.attributes['error.type']], [true, 'tool_failed']);
};

/**
 * Each receipt of a relay has the span of its work, which is exported when the relay hands over the task. Receipts of `lost` dead relays
 * are the exception.
 */
function hasWorkOfAllButLost(lost: number): (spans: readonly ExportedSpan[]) => boolean {
  return spans => named(spans, `process ${RAW}`).length === named(spans, `receive ${RAW}`).length - lost;
}

/**
 * Every relay after the first takes the task over, and its spans are below the previous relay's receipt. `lost` names relays that were
 * killed, so their work has no span.
 */
function assertTakeovers(spans: readonly ExportedSpan[], lost: number): void {
  const receipts = named(spans, `receive ${RAW}`);
  const work = named(spans, `process ${RAW}`);
  const tree = drawTree(spans);
  const ids = new Set(spans.map(({ spanId }) => spanId));
  assert.ok(receipts.length >= 2, tree);
  assert.equal(work.length, receipts.length - lost, tree);
  for (const [index, receipt] of receipts.entries()) {
    assert.deepEqual([receipt.kind, receipt.isError], ['client', false]);
    assert.equal(receipt.attributes['hopline.cause'], index === 0 ? undefined : 'takeover');
    const before = receipts.slice(0, index).map(({ spanId }) => spanId);
    assert.ok(index === 0 || before.includes(receipt.parentId!), tree);
    assert.ok(
      receipt.links.every(({ spanId }) => ids.has(spanId)),
      'a link leads to a span of the trace',
    );
  }
  for (const { kind, parentId, attributes } of work) {
    assert.equal(kind, 'consumer');
    assert.ok(
      receipts.some(({ spanId }) => spanId === parentId),
      tree,
    );
    assert.ok(Number(attributes['hopline.bytes_in']) > 0);
  }
  const ends = work.map(({ attributes }) => attributes['hopline.outcome']);
  // A relay that starts again may take back its shard in mid-stream.
  assert.ok(
    ends.every(end => end === 'completed' || end === 'stopped'),
    `${ends}`,
  );
  const completed = work.filter(({ attributes }) => attributes['hopline.outcome'] === 'completed');
  assert.equal(completed.length, 1, tree);
  assert.equal(completed[0]!.attributes['a2a.task.state'], 'completed');
  assert.ok(Number(completed[0]!.attributes['hopline.chunks']) > 0);
  assert.equal(only(spans, 'deliver_events').attributes['a2a.task.state'], 'completed');
  only(spans, 'invoke_agent player');
}

const killedRelay: Scenario = async world => {
  const { taskId, restarted } = await killInMidStream(world, {
    isReceipt: ({ name }) => name === `receive ${RAW}`,
    services: world.cluster.relays,
    signal: 'SIGKILL',
  });
  const spans = await traceOf(world, taskId, isViewerEnd, hasWorkOfAllButLost(1));
  assertHonest(spans);
  assertTakeovers(spans, 1);
  const inLog = (await reportOf(world, taskId)).relays;
  assert.ok(inLog.length >= 2, JSON.stringify(inLog));
  assert.equal(inLog[1]?.takeover?.cause, 'lost', 'the log has the takeover and its cause');
  await restarted;
};

const stoppedRelay: Scenario = async world => {
  const { taskId, restarted } = await killInMidStream(world, {
    isReceipt: ({ name }) => name === `receive ${RAW}`,
    services: world.cluster.relays,
    signal: 'SIGTERM',
  });
  await restarted;
  const spans = await traceOf(world, taskId, isViewerEnd, hasWorkOfAllButLost(0));
  assertHonest(spans);
  assertTakeovers(spans, 0);
  const inLog = (await reportOf(world, taskId)).relays;
  assert.equal(inLog[1]?.takeover?.cause, 'released', 'the log has the takeover and its cause');
};

/** Kills a worker: the span of its next attempt must be a sibling of the first one, with a link to it. */
async function killWorker(
  world: TraceWorld,
  service: 'supervisor' | 'sub-agent',
): Promise<{ taskId: string; spans: ExportedSpan[] }> {
  const isReceipt = (span: ExportedSpan) => span.name === `receive ${WORK}` && span.service === `hopline-${service}`;
  const services = service === 'supervisor' ? world.cluster.supervisors : world.cluster.agents;
  const { taskId } = await killInMidStream(world, { isReceipt, services, signal: 'SIGKILL' });
  const spans = await traceOf(world, taskId, isViewerEnd);
  assertHonest(spans);
  assert.equal(only(spans, 'deliver_events').attributes['a2a.task.state'], 'completed');
  const receipts = spans.filter(isReceipt);
  assert.equal(receipts.length, 2, drawTree(spans));
  const [one, two] = receipts;
  assert.deepEqual([two!.attributes['hopline.cause'], two!.attributes['hopline.attempt']], ['redelivery', 2]);
  assert.deepEqual(two!.links, [{ traceId: one!.traceId, spanId: one!.spanId }]);
  assert.equal(two!.parentId, one!.parentId);
  return { taskId, spans };
}

const killedAgent: Scenario = async world => {
  const { taskId } = await killWorker(world, 'sub-agent');
  const attempts = (await reportOf(world, taskId)).producers.filter(({ agent }) => agent === 'player');
  assert.deepEqual(
    attempts.map(({ attempt, cause }) => [attempt, cause]),
    [
      [1, undefined],
      [2, 'redelivery'],
    ],
  );
};

const killedSupervisor: Scenario = async world => {
  const { spans } = await killWorker(world, 'supervisor');
  // The agent continues its work, so it is called only once.
  only(spans, 'invoke_agent player');
};

/** The second run of deliveries is in the trace of the task; the span of the first one died with its process. */
const killedNotifier: Scenario = async world => {
  const { cluster } = world;
  const [notifier] = cluster.notifiers as [ServiceProcess];
  await using webhook = await startWebhook();
  const params = {
    ...to('player', 'play long').params,
    configuration: { pushNotificationConfig: { url: `${webhook.url}/hook`, token: TOKEN } },
  };
  let taskId = '';
  let isKilled = false;
  for await (const frame of frames(cluster.url, { params })) {
    if ('task' in frame.event) taskId = frame.event.task.id;
    if (isKilled || webhook.notifications.length < 3) continue;
    isKilled = true;
    await notifier.kill('SIGKILL');
    await notifier.start();
  }
  assert.ok(isKilled, 'the answer ended before the notifier was killed');
  await webhook.until(() => webhook.notifications.some(({ body }) => JSON.stringify(body).includes('completed')));
  // One notification may have been in flight.
  assert.ok(received(webhook.accepted()).repeats <= 1);
  const spans = await traceOf(world, taskId, ({ name }) => name === 'send_push_notification');
  assertHonest(spans);
  assert.equal(drawTree(spans), `${treeOf('player')}\n    send_push_notification [client]`);
  const push = only(spans, 'send_push_notification');
  assert.deepEqual([push.attributes['a2a.task.state'], push.attributes['hopline.outcome']], ['completed', 'delivered']);
  assert.deepEqual([push.isError, push.attributes['server.address']], [false, '127.0.0.1']);
  // One relay stored all events, and the span is below its receipt, so it needs no link.
  assert.deepEqual(push.links, []);
  // Each notification names its run, so the receiver knows both runs, but the backend knows only the one that ended.
  const runs = webhook.notifications.map(({ headers }) => String(headers.traceparent).split('-').slice(1, 3).join(' '));
  const ofEnded = push.segmentIds.map(id => `${push.traceId} ${id}`);
  const delivered = runs.filter(run => ofEnded.includes(run));
  assert.ok(runs.some(run => !delivered.includes(run)));
  assert.ok(runs.every(run => run.startsWith(push.traceId)));
  assert.equal(runs.at(-1), delivered.at(-1));
  assert.equal(push.attributes['hopline.delivered'], delivered.length);
};

const killedIngress: Scenario = async world => {
  const { cluster, traces } = world;
  const [first, second] = cluster.ingresses as [ServiceProcess, ServiceProcess];
  let taskId = '';
  let cursor = '';
  try {
    for await (const frame of frames(first.url, to('player', 'play long'))) {
      if ('task' in frame.event) taskId = frame.event.task.id;
      cursor = frame.id;
      if (first.hasEnded || !shapeOf(frame).startsWith('artifact:streaming_result+')) continue;
      await traces.until('the request', () => named(traces.ofTask(taskId), 'send_streaming_message')[0]);
      await first.kill('SIGKILL');
    }
  } catch (error) {
    // The connection was cut with its process.
    if (!first.hasEnded) throw error;
  }
  const rest = await collect(second.url, { method: 'tasks/resubscribe', params: { id: taskId }, lastEventId: cursor });
  assert.equal(shapeOf(rest.at(-1)!), 'status:completed');
  await first.start();
  await traceOf(world, taskId, isViewerEnd);
  const root = only(
    traces.ofTask(taskId).filter(({ attributes }) => attributes['a2a.task.id'] === taskId),
    'send_streaming_message',
  );
  const spans = joinSegments(traces.ofTrace(root.traceId));
  assertHonest(spans);
  assert.equal(drawTree(spans), [STREAMED, ...indented(turnBelow('player'))].join('\n'), 'all but the stream that died');
  const resumed = only(traces.ofTask(taskId), 'subscribe_to_task');
  assert.ok(resumed.links.some(({ traceId }) => traceId === root.traceId));
};

export const TRACE_SCENARIOS: Readonly<Record<string, Scenario>> = {
  'a tool call is a span, and its server gets the trace': toolCall,
  'a model with tools: its requests and its calls of tools are spans below its turn': modelWithTools,
  'the second turn of an interrupted task is below its own request, with a link to the first one': secondTurn,
  'a graph that interrupts itself: each turn is a tree of its own, with the nodes of the turn': graphWithInterrupt,
  'a client that left is marked, and its resume on any ingress links to the trace of the task': cutAndResumed,
  'a send that does not wait has the whole turn below it': sendThatDoesNotWait,
  'cancel, get and list are spans with the task and the outcome, and the relay links to the cancel': canceled,
  'a request over gRPC leaves the same tree': overGrpc,
  'nested clusters are one tree, each with its own namespace': nestedClusters,
  'an agent that fails in five ways shows the cause on its span, and the state on the others': failingAgent,
  'a tool that fails shows it on its span': failingTool,
  'a relay that is killed in mid-stream leaves a connected trace, with the takeover and its cause': killedRelay,
  'a relay that stops in order leaves a connected trace': stoppedRelay,
  'a sub-agent that is killed leaves a connected trace: the second attempt links to the first': killedAgent,
  'a supervisor that is killed leaves a connected trace, and its second attempt calls no agent again': killedSupervisor,
  'a notifier that is killed leaves a connected trace: its next run of deliveries is in the trace of the task': killedNotifier,
  'an ingress that is killed leaves a connected trace, and the resume elsewhere links to it': killedIngress,
};
