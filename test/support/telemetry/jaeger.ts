import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { freePort } from '@hopline/local-cluster';
import { type AttributeValue, type ExportedSpan, ExportedSpans, SPAN_KINDS } from './exported-spans.ts';

/** The program of Jaeger 2. */
export const JAEGER = process.env.JAEGER ?? 'jaeger';
export const JAEGER_ABSENT =
  spawnSync(JAEGER, ['version'], { stdio: 'ignore' }).error !== undefined &&
  'no jaeger on PATH (version 2; the variable JAEGER may name its binary)';

/** The collector that docs/guides/observing.md offers for a cluster. */
const COLLECTOR = fileURLToPath(new URL('../../../infra/observe/config/collector.yaml', import.meta.url));
/** Most tests do not need to wait 30 s for a sampling decision. */
const DECISION_WAIT = '3s';

type JaegerOptions = {
  /** Puts the pipelines of collector.yaml before the storage. */
  isSampling?: boolean;
  /** Uses the decision wait of collector.yaml. */
  waits?: boolean;
};

const START_MS_MAX = 120_000;
const POLL_MS = 500;
const TRACES_MAX = 10_000;
const STATUS_ERROR = 2;

type Ports = Record<'otlp' | 'otlpGrpc' | 'query' | 'queryGrpc' | 'spanMetrics', number>;

/** Jaeger with in-memory storage. Its query API shows its spans. */
export class Jaeger extends ExportedSpans implements AsyncDisposable {
  /** Address to which services send their spans. */
  readonly endpoint: string;
  /** URL of the query API and the UI. */
  readonly url: string;
  readonly #child: ChildProcess;
  readonly #folder: string;
  readonly #stopped = new AbortController();
  #polling: Promise<void> = Promise.resolve();
  #output = '';

  private constructor(ports: Ports, { isSampling = false, waits = false }: JaegerOptions) {
    super();
    this.endpoint = `http://127.0.0.1:${ports.otlp}`;
    this.url = `http://127.0.0.1:${ports.query}`;
    this.#folder = mkdtempSync(join(tmpdir(), 'hopline-jaeger-'));
    const file = join(this.#folder, 'jaeger.json');
    writeFileSync(file, JSON.stringify(configOf(ports, isSampling && !waits)));
    const configs = isSampling ? ['--config', COLLECTOR] : [];
    this.#child = spawn(JAEGER, [...configs, '--config', file], {
      stdio: ['ignore', 'pipe', 'pipe'],
      // The addresses in collector.yaml, which the second file replaces or does not use.
      env: {
        ...process.env,
        SPAN_METRICS: `127.0.0.1:${ports.spanMetrics}`,
        JAEGER_OTLP: `127.0.0.1:${ports.otlpGrpc}`,
        OTLP_GRPC: `127.0.0.1:${ports.otlpGrpc}`,
        OTLP_HTTP: `127.0.0.1:${ports.otlp}`,
      },
    });
    for (const stream of [this.#child.stdout, this.#child.stderr])
      stream?.setEncoding('utf8').on('data', (text: string) => {
        this.#output += text;
      });
  }

  static async start(options: JaegerOptions = {}): Promise<Jaeger> {
    const [otlp, otlpGrpc, query, queryGrpc, spanMetrics] = await Promise.all(Array.from({ length: 5 }, freePort));
    const jaeger = new Jaeger(
      { otlp: otlp!, otlpGrpc: otlpGrpc!, query: query!, queryGrpc: queryGrpc!, spanMetrics: spanMetrics! },
      options,
    );
    try {
      await jaeger.#ready();
    } catch (error) {
      await jaeger[Symbol.asyncDispose]();
      throw error;
    }
    jaeger.#polling = jaeger.#poll();
    return jaeger;
  }

  /** The traces of one service that have a span with these attributes, as a user searches for them. */
  async find(service: string, attributes: Record<string, string> = {}): Promise<ExportedSpan[]> {
    const query = new URLSearchParams({
      'query.serviceName': service,
      'query.startTimeMin': new Date(0).toISOString(),
      'query.startTimeMax': new Date(Date.now() + 60_000).toISOString(),
      'query.searchDepth': `${TRACES_MAX}`,
      'query.attributes': JSON.stringify(attributes),
    });
    const response = await fetch(`${this.url}/api/v3/traces?${query}`);
    if (response.status === 404) return [];
    if (!response.ok) throw new Error(`Jaeger answered ${response.status}: ${await response.text()}`);
    return spansOf((await response.json()) as TracesJson);
  }

  async services(): Promise<string[]> {
    const response = await fetch(`${this.url}/api/v3/services`);
    return ((await response.json()) as { services: string[] }).services;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stopped.abort();
    await this.#polling;
    if (this.#child.exitCode === null && this.#child.signalCode === null) {
      const ended = once(this.#child, 'exit');
      this.#child.kill('SIGKILL');
      await ended;
    }
    rmSync(this.#folder, { recursive: true, force: true });
  }

  async #ready(): Promise<void> {
    for (const endsAt = Date.now() + START_MS_MAX; Date.now() < endsAt && this.#child.exitCode === null; ) {
      const isUp = await fetch(`${this.url}/api/v3/services`).then(
        ({ ok }) => ok,
        () => false,
      );
      if (isUp) return;
      await sleep(200);
    }
    throw new Error(`Jaeger did not start:\n${this.#output}`);
  }

  async #poll(): Promise<void> {
    const { signal } = this.#stopped;
    while (!signal.aborted) {
      // Jaeger closes idle connections, so a read that fails is repeated.
      this.fault = await this.#read().catch(error => error);
      await sleep(POLL_MS, undefined, { signal }).catch(() => {});
    }
  }

  async #read(): Promise<void> {
    const found = await Promise.all((await this.services()).map(service => this.find(service)));
    this.spans = [...new Map(found.flat().map(span => [span.spanId, span])).values()];
  }
}

function configOf({ otlp, otlpGrpc, query, queryGrpc }: Ports, decidesSoon: boolean) {
  const at = (port: number) => ({ endpoint: `127.0.0.1:${port}` });
  return {
    service: {
      extensions: ['jaeger_storage', 'jaeger_query'],
      pipelines: { traces: { receivers: ['otlp'], exporters: ['jaeger_storage_exporter'] } },
      telemetry: { metrics: { level: 'none' } },
    },
    extensions: {
      jaeger_storage: { backends: { memory: { memory: { max_traces: TRACES_MAX } } } },
      jaeger_query: { storage: { traces: 'memory' }, http: at(query), grpc: at(queryGrpc) },
    },
    receivers: { otlp: { protocols: { http: at(otlp), grpc: at(otlpGrpc) } } },
    ...(decidesSoon && { processors: { tail_sampling: { decision_wait: DECISION_WAIT } } }),
    exporters: { jaeger_storage_exporter: { trace_storage: 'memory' } },
  };
}

type ValueJson = { stringValue?: string; boolValue?: boolean; intValue?: string | number; doubleValue?: number };
type AttributesJson = { key: string; value: ValueJson }[];
type SpanJson = {
  traceId: string;
  spanId: string;
  parentSpanId?: string;
  name: string;
  kind?: number;
  startTimeUnixNano: string;
  endTimeUnixNano: string;
  attributes?: AttributesJson;
  events?: { name: string; attributes?: AttributesJson }[];
  links?: { traceId: string; spanId: string }[];
  status?: { code?: number };
};
type ResourceJson = { resource?: { attributes?: AttributesJson }; scopeSpans?: { spans?: SpanJson[] }[] };
type TracesJson = { result: { resourceSpans?: ResourceJson[] } };

function spansOf({ result: { resourceSpans = [] } }: TracesJson): ExportedSpan[] {
  return resourceSpans.flatMap(({ resource, scopeSpans = [] }) => {
    const resourceAttributes = attributesOf(resource?.attributes);
    return scopeSpans.flatMap(({ spans = [] }) => spans.map(span => spanOf(span, resourceAttributes)));
  });
}

function spanOf(span: SpanJson, resource: Record<string, AttributeValue>): ExportedSpan {
  return {
    service: String(resource['service.name']),
    resource,
    traceId: span.traceId,
    spanId: span.spanId,
    parentId: span.parentSpanId || undefined,
    name: span.name,
    kind: SPAN_KINDS[span.kind ?? 0]!,
    startMs: Number(span.startTimeUnixNano) / 1e6,
    endMs: Number(span.endTimeUnixNano) / 1e6,
    attributes: attributesOf(span.attributes),
    events: (span.events ?? []).map(({ name, attributes }) => ({ name, attributes: attributesOf(attributes) })),
    links: (span.links ?? []).map(({ traceId, spanId }) => ({ traceId, spanId })),
    isError: span.status?.code === STATUS_ERROR,
  };
}

function attributesOf(list: AttributesJson = []): Record<string, AttributeValue> {
  return Object.fromEntries(
    list.map(({ key, value }) => [
      key,
      value.stringValue ?? value.boolValue ?? value.doubleValue ?? (value.intValue === undefined ? '' : Number(value.intValue)),
    ]),
  );
}
