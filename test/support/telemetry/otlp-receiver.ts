import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { gunzipSync } from 'node:zlib';
import { type AttributeValue, type ExportedSpan, ExportedSpans, SPAN_KINDS } from './exported-spans.ts';
import { fieldsOf } from './protobuf-fields.ts';

/** How the collector answers a request. */
type Behaviour = 'accept' | 'refuse' | 'unavailable' | 'hang';

const ERROR = 2n;

/** A collector in this process: takes OTLP over HTTP as protobuf, and keeps every span and the bytes of every signal. */
export class OtlpReceiver extends ExportedSpans {
  /** Everything received, to search for planted secrets. */
  readonly bodies: Buffer[] = [];
  readonly paths = new Set<string>();
  /** The last push of metrics of each process, by its instance. */
  readonly metrics = new Map<string, Uint8Array>();
  behaviour: Behaviour = 'accept';
  readonly #server = createServer((request, response) => void this.#receive(request, response));

  /** Resolves with the endpoint. */
  async start(): Promise<string> {
    this.#server.listen(0, '127.0.0.1');
    await once(this.#server, 'listening');
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
  }

  /** The labels of a gauge in the last push of a process. */
  gauge(instance: string, name: string): Record<string, AttributeValue>[] {
    return children(this.metrics.get(instance), 2)
      .flatMap(scopeMetrics => children(scopeMetrics, 2))
      .filter(metric => utf8(children(metric, 1)[0]) === name)
      .flatMap(metric => children(metric, 5).flatMap(gauge => children(gauge, 1)))
      .map(point => attributesOf(children(point, 7)));
  }

  async #receive(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const sent = Buffer.concat(await request.toArray().catch(() => []));
    const body = request.headers['content-encoding'] === 'gzip' ? gunzipSync(sent) : sent;
    const path = request.url ?? '';
    this.paths.add(path);
    if (this.behaviour === 'hang') return;
    if (this.behaviour !== 'accept') {
      response.writeHead(this.behaviour === 'refuse' ? 400 : 503).end();
      return;
    }
    this.bodies.push(body);
    if (path.endsWith('/v1/traces')) this.spans = [...this.spans, ...spansOf(body)];
    if (path.endsWith('/v1/metrics'))
      for (const resourceMetrics of children(body, 1))
        this.metrics.set(String(resourceOf(resourceMetrics)['service.instance.id']), resourceMetrics);
    response.writeHead(200, { 'content-type': 'application/x-protobuf' }).end();
  }
}

function spansOf(body: Uint8Array): ExportedSpan[] {
  return children(body, 1).flatMap(resourceSpans => {
    const resource = resourceOf(resourceSpans);
    return children(resourceSpans, 2).flatMap(scopeSpans => children(scopeSpans, 2).map(span => spanOf(span, resource)));
  });
}

function spanOf(bytes: Uint8Array, resource: Record<string, AttributeValue>): ExportedSpan {
  const numbers = new Map<number, bigint>();
  for (const { number, value } of fieldsOf(bytes)) if (typeof value === 'bigint') numbers.set(number, value);
  const parentId = hexOf(children(bytes, 4)[0]);
  return {
    service: String(resource['service.name']),
    resource,
    traceId: hexOf(children(bytes, 1)[0]),
    spanId: hexOf(children(bytes, 2)[0]),
    parentId: parentId === '' ? undefined : parentId,
    name: utf8(children(bytes, 5)[0]),
    kind: SPAN_KINDS[Number(numbers.get(6) ?? 0n)]!,
    startMs: Number(numbers.get(7) ?? 0n) / 1e6,
    endMs: Number(numbers.get(8) ?? 0n) / 1e6,
    attributes: attributesOf(children(bytes, 9)),
    events: children(bytes, 11).map(event => ({
      name: utf8(children(event, 2)[0]),
      attributes: attributesOf(children(event, 3)),
    })),
    links: children(bytes, 13).map(link => ({ traceId: hexOf(children(link, 1)[0]), spanId: hexOf(children(link, 2)[0]) })),
    isError: children(bytes, 15).some(status =>
      [...fieldsOf(status)].some(({ number, value }) => number === 3 && value === ERROR),
    ),
  };
}

/** The attributes of the process that sent spans or metrics. */
const resourceOf = (sent: Uint8Array) => attributesOf(children(children(sent, 1)[0], 1));

function attributesOf(entries: readonly Uint8Array[]): Record<string, AttributeValue> {
  return Object.fromEntries(entries.map(entry => [utf8(children(entry, 1)[0]), attributeValue(children(entry, 2)[0])]));
}

function attributeValue(bytes: Uint8Array | undefined): AttributeValue {
  for (const { number, value } of fieldsOf(bytes ?? new Uint8Array())) {
    if (typeof value !== 'bigint') return utf8(value);
    if (number === 2) return value === 1n;
    if (number === 4) return new Float64Array(BigUint64Array.of(value).buffer)[0]!;
    return Number(BigInt.asIntN(64, value));
  }
  return '';
}

function children(bytes: Uint8Array = new Uint8Array(), wanted: number): Uint8Array[] {
  return [...fieldsOf(bytes)].flatMap(({ number, value }) => (number === wanted && typeof value !== 'bigint' ? [value] : []));
}

const utf8 = (bytes: Uint8Array = new Uint8Array()): string => Buffer.from(bytes).toString('utf8');
const hexOf = (bytes: Uint8Array = new Uint8Array()): string => Buffer.from(bytes).toString('hex');
