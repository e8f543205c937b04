import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { until } from '../../kit/until.ts';
import { ModelServer } from '../../support/agents/model-server.ts';
import { collect, shapeOf } from '../../support/cluster/a2a-stream.ts';
import { Cluster } from '../../support/cluster/cluster.ts';
import { OtlpReceiver } from '../../support/telemetry/otlp-receiver.ts';

const TRACE_ID = '0cf7651916cd43dd8448eb211c80319c';
const SECRET = 'the-text-of-a-prompt';
const SUPERVISION = 'process a2a.work.{role}.{taskId}';

const receiver = new OtlpReceiver();
let model: ModelServer;
let cluster: Cluster;

before(async () => {
  const endpoint = await receiver.start();
  // One model serves supervisor and agent; only requests of the supervisor have tools.
  model = await ModelServer.start(({ tools, messages }) => {
    if (tools.length === 0) return [{ tokens: [SECRET, ' ', 'done'] }];
    const isFirst = !messages.some(({ role }) => role === 'tool');
    return isFirst ? [{ call: 'llm', args: { request: SECRET } }] : [{ call: '_finish', args: {} }];
  });
  cluster = await Cluster.start({
    agents: [{ name: 'llm', adapter: 'model', model: 'stand-in', system: SECRET }],
    env: {
      OTEL_EXPORTER_OTLP_ENDPOINT: endpoint,
      OTEL_BSP_SCHEDULE_DELAY: '200',
      HOPLINE_PLANNER: 'model',
      HOPLINE_MODEL: 'planner',
      OPENAI_BASE_URL: model.url,
      OPENAI_API_KEY: 'sk-secret',
    },
  });
});

after(async () => {
  await cluster?.[Symbol.asyncDispose]();
  await model?.[Symbol.asyncDispose]();
  await receiver.stop();
});

test('a model request is one span with its token counts, below the hop that sent it', { timeout: 120_000 }, async () => {
  const headers = { traceparent: `00-${TRACE_ID}-b7ad6b7169203331-01` };
  const list = await collect(cluster.url, { text: `ask ${SECRET}`, headers });
  assert.equal(shapeOf(list.at(-1)!), 'status:completed');
  const ofTask = () => receiver.spans.filter(({ traceId }) => traceId === TRACE_ID);
  const chats = () => ofTask().filter(({ name }) => name.startsWith('chat '));
  const nameOf = (spanId: string) => ofTask().find(span => span.spanId === spanId)?.name;
  // The spans to which they link end last.
  const isThere = () => chats().length >= 3 && chats().every(({ links }) => nameOf(links[0]?.spanId ?? '') !== undefined);
  await until(isThere, 'the spans of the model requests');
  assert.deepEqual(
    chats()
      .map(({ service, name }) => `${service}: ${name}`)
      .sort(),
    ['hopline-sub-agent: chat stand-in', 'hopline-supervisor: chat planner', 'hopline-supervisor: chat planner'],
  );
  const serviceOf = (spanId: string) => ofTask().find(span => span.spanId === spanId)?.service;
  for (const chat of chats()) {
    assert.equal(serviceOf(chat.parentId ?? ''), chat.service);
    assert.deepEqual(
      chat.links.map(({ spanId }) => nameOf(spanId)),
      [chat.service === 'hopline-supervisor' ? SUPERVISION : 'invoke_agent llm'],
    );
    assert.deepEqual(
      [
        chat.attributes['gen_ai.operation.name'],
        chat.attributes['gen_ai.request.model'],
        chat.attributes['gen_ai.usage.input_tokens'],
      ],
      ['chat', chat.name.slice('chat '.length), 11],
    );
    assert.ok(Number(chat.attributes['gen_ai.usage.output_tokens']) > 0);
    const agent = chat.service === 'hopline-supervisor' ? 'supervisor' : 'llm';
    const { 'gen_ai.agent.name': name, 'a2a.task.id': task, 'server.address': server } = chat.attributes;
    assert.deepEqual([name, server], [agent, '127.0.0.1']);
    assert.equal(task, ofTask().find(span => span.name === 'invoke_agent llm')?.attributes['a2a.task.id']);
  }
});

test('spans and log lines contain no text of prompts or answers, and no key (invariant 7)', () => {
  assert.ok(receiver.bodies.length > 0);
  for (const secret of [SECRET, 'sk-secret']) {
    for (const body of receiver.bodies) assert.ok(!body.includes(secret));
    for (const service of cluster.services) assert.ok(!service.output.includes(secret), `${service.spec.instance} logged it`);
  }
});
