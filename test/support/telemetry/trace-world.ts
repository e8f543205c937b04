import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { TaskTrace } from '@hopline/task-audit';
import { ModelServer, newest } from '../agents/model-server.ts';
import { answer, type RemoteAgent, type Step, startRemoteAgent } from '../agents/remote-agent.ts';
import { Cluster, SHARDS } from '../cluster/cluster.ts';
import { startNats } from '../nats/nats-server.ts';
import { type ExportedSpan, type ExportedSpans, type Hop, joinSegments } from './exported-spans.ts';

const AGENTS = fileURLToPath(new URL('../agents', import.meta.url));
const DEMO = fileURLToPath(new URL('../../../infra/local/demo/', import.meta.url));
const TOKENS = ['Here', ' is', ' the', ' version', ' v3.1.8', ' ✅ done'];
const LONG_TOKENS = 400;
const LONG_EVERY_MS = 25;
/** Every process exports its spans after this time. */
const EXPORT_DELAY_MS = 100;
/** A trace counts as complete when no span has been exported for this long. */
const QUIET_MS = 800;
/** Like QUIET_MS, while the parent of a span is missing: it may have ended with its process, or a busy process may export it later. */
const LATE_MS = 20_000;

/** Prefix, and so `service.namespace`, of the cluster whose ingress is an agent of the outer cluster. */
export const INNER = 'inner';

/** A cluster with agents of several kinds, one of which is another cluster, and the backend that gets the spans of both. */
export type TraceWorld = AsyncDisposable & {
  cluster: Cluster;
  remote: RemoteAgent;
  model: ModelServer;
  traces: ExportedSpans;
};

async function* script({ text, turn }: { text: string; turn: number }): AsyncGenerator<Step> {
  if (text.includes('ask') && turn === 1) {
    yield { token: 'before' };
    yield { inputRequired: 'Which one?' };
    return;
  }
  if (!text.includes('long')) return yield* answer(TOKENS);
  for (let n = 1; n <= LONG_TOKENS; n++) {
    yield { token: `${n} ` };
    yield { pause: LONG_EVERY_MS };
  }
  yield { complete: true };
}

/** Steps of an agent that fails, by a word of the message; `http` is an HTTP status. */
const FAILURES: Record<string, Step[]> = {
  state: [{ token: 'so far' }, { fail: true, text: 'broken pieces' }],
  rpc: [{ error: -32_000 }],
  cut: [{ token: 'so far' }, { cut: true }, { hang: true }],
  garbage: [{ raw: 'data: {"jsonrpc":\n\n'.repeat(32) }, { cut: true }, { hang: true }],
};

/** A model that calls two tools at once and then answers. */
const MODEL_ANSWER = ['Both', ' tools', ' were', ' called'];
const TOOLS = { command: process.execPath, args: [`${AGENTS}/hostile-mcp-server.ts`] };

/** Starts both clusters; `endpoint` takes their spans. */
export async function startTraceWorld(traces: ExportedSpans, endpoint: string): Promise<TraceWorld> {
  await using stack = new AsyncDisposableStack();
  const remote = await startRemoteAgent({ dialect: '0.3', script });
  stack.defer(() => remote.close());
  const broken = await startRemoteAgent({
    dialect: '0.3',
    recoverable: false,
    httpStatus: text => (text.includes('http') ? 500 : undefined),
    script: ({ text }) => FAILURES[Object.keys(FAILURES).find(word => text.includes(word)) ?? 'state']!,
  });
  stack.defer(() => broken.close());
  const model = stack.use(
    await ModelServer.start(request =>
      newest(request, 'tool') === ''
        ? [
            { call: 'ok', args: {} },
            { call: 'noise', args: {} },
          ]
        : [{ tokens: MODEL_ANSWER }],
    ),
  );
  const nats = await startNats();
  stack.defer(() => nats.stop());
  const env = { OTEL_EXPORTER_OTLP_ENDPOINT: endpoint, OTEL_BSP_SCHEDULE_DELAY: String(EXPORT_DELAY_MS) };
  const skills = [{ id: 'play', name: 'play', description: 'play', tags: ['play'] }];
  const inner = stack.use(
    await Cluster.start({
      nats,
      shards: SHARDS,
      agents: [{ name: 'player', adapter: 'a2a', url: remote.url }],
      env: { ...env, HOPLINE_PREFIX: INNER },
    }),
  );
  const { agents } = JSON.parse(readFileSync(`${DEMO}agents.json`, 'utf8')) as { agents: { name: string }[] };
  const files = agents.find(({ name }) => name === 'files')!;
  const cluster = stack.use(
    await Cluster.start({
      nats,
      shards: SHARDS,
      ingresses: 2,
      relays: 2,
      notifiers: 1,
      grpc: true,
      agents: [
        { name: 'player', adapter: 'a2a', url: remote.url, skills },
        { name: 'broken', adapter: 'a2a', url: broken.url },
        { name: 'region', adapter: 'a2a', url: inner.url },
        { name: 'painter', adapter: 'langgraph', module: `${AGENTS}/graphs/graphs.ts`, export: 'asks' },
        files,
        { name: 'coder', adapter: 'model', model: 'stand-in', baseUrl: model.url, mcp: [TOOLS] },
      ],
      agentsFolder: DEMO,
      env: { ...env, HOPLINE_PUSH: 'true', HOPLINE_WEBHOOK_ALLOW: '127.0.0.1', HOPLINE_WEBHOOK_HTTP: 'true' },
    }),
  );
  const kept = stack.move();
  return { cluster, remote, model, traces, [Symbol.asyncDispose]: () => kept.disposeAsync() };
}

/**
 * Waits until the trace of a task has a span that ends late and, with `isWhole`, all hops of a scenario that ends several processes; returns the
 * hops of its traces.
 */
export async function traceOf(
  { traces }: Pick<TraceWorld, 'traces'>,
  taskId: string,
  isLast: (span: ExportedSpan) => boolean,
  isWhole: (hops: Hop[]) => boolean = () => true,
): Promise<Hop[]> {
  await traces.until(`the trace of ${taskId}`, () => {
    const spans = traces.ofTask(taskId);
    return spans.some(isLast) && isWhole(joinSegments(spans));
  });
  for (let seen = -1, quietMs = 0; ; ) {
    const spans = traces.ofTask(taskId);
    quietMs = spans.length === seen ? quietMs + QUIET_MS : 0;
    seen = spans.length;
    if (quietMs >= (isJoined(spans) ? QUIET_MS : LATE_MS)) return joinSegments(spans);
    await new Promise(resolve => setTimeout(resolve, QUIET_MS));
  }
}

/** Whether the trace has the parent of each span. That of a request may be a span of its client. */
function isJoined(spans: readonly ExportedSpan[]): boolean {
  const ids = new Set(spans.map(({ spanId }) => spanId));
  return spans.every(({ kind, parentId }) => kind === 'server' || parentId === undefined || ids.has(parentId));
}

/** The audit of a task, as its owner reads it. */
export async function reportOf({ cluster }: Pick<TraceWorld, 'cluster'>, taskId: string): Promise<TaskTrace> {
  return (await (await fetch(`${cluster.ingresses.at(-1)!.url}/tasks/${taskId}/audit`)).json()) as TaskTrace;
}
