import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { gunzipSync } from 'node:zlib';

export type ReceivedSpan = {
  service: string;
  name: string;
  traceId: string;
  spanId: string;
  parentId: string;
  links: string[];
  /** Name and attribute values of each event. */
  events: string[][];
  status: number;
  /** String and integer attributes. */
  attributes: Record<string, string | number>;
};

type Field = { number: number; value: bigint | Buffer };

/** The members of an OTLP trace request that tests assert, decoded from protobuf (opentelemetry-proto, trace/v1). */
export class OtlpReceiver {
  readonly spans: ReceivedSpan[] = [];
  readonly bodies: Buffer[] = [];
  readonly #server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const body = Buffer.concat(chunks);
    this.#take(request.headers['content-encoding'] === 'gzip' ? gunzipSync(body) : body);
    response.writeHead(200, { 'content-type': 'application/x-protobuf' }).end();
  });

  async start(): Promise<string> {
    this.#server.listen(0, '127.0.0.1');
    await once(this.#server, 'listening');
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
  }

  #take(body: Buffer): void {
    this.bodies.push(body);
    for (const resourceSpans of messages(body, 1)) {
      const service = serviceOf(resourceSpans);
      for (const scopeSpans of messages(resourceSpans, 2)) {
        for (const span of messages(scopeSpans, 2)) this.spans.push(spanOf(service, span));
      }
    }
  }
}

function spanOf(service: string, span: Buffer): ReceivedSpan {
  const hex = (number: number) => messages(span, number)[0]?.toString('hex') ?? '';
  const links = messages(span, 13).map(link => messages(link, 2)[0]?.toString('hex') ?? '');
  const [status] = messages(span, 15);
  const code = status === undefined ? 0n : fields(status).find(({ number }) => number === 3)?.value;
  return {
    service,
    name: messages(span, 5)[0]?.toString() ?? '',
    traceId: hex(1),
    spanId: hex(2),
    parentId: hex(4),
    links,
    events: messages(span, 11).map(eventOf),
    status: Number(code ?? 0),
    attributes: Object.fromEntries(messages(span, 9).map(attributeOf)),
  };
}

function eventOf(event: Buffer): string[] {
  const name = messages(event, 2)[0]?.toString() ?? '';
  return [name, ...messages(event, 3).map(attribute => messages(messages(attribute, 2)[0]!, 1)[0]?.toString() ?? '')];
}

function attributeOf(attribute: Buffer): [string, string | number] {
  const [value] = fields(messages(attribute, 2)[0] ?? Buffer.alloc(0));
  const read = Buffer.isBuffer(value?.value) ? value.value.toString() : Number(value?.value ?? 0);
  return [messages(attribute, 1)[0]?.toString() ?? '', read];
}

function serviceOf(resourceSpans: Buffer): string {
  for (const attribute of messages(messages(resourceSpans, 1)[0]!, 1)) {
    if (messages(attribute, 1)[0]?.toString() === 'service.name') return messages(messages(attribute, 2)[0]!, 1)[0]!.toString();
  }
  return '';
}

const messages = (body: Buffer, number: number): Buffer[] =>
  fields(body).flatMap(field => (field.number === number && Buffer.isBuffer(field.value) ? [field.value] : []));

function fields(body: Buffer): Field[] {
  const found: Field[] = [];
  let at = 0;
  const varint = (): bigint => {
    let value = 0n;
    for (let shift = 0n; ; shift += 7n) {
      const byte = body[at++]!;
      value |= BigInt(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
  };
  while (at < body.length) {
    const key = Number(varint());
    const wire = key & 7;
    if (wire === 0) {
      found.push({ number: key >> 3, value: varint() });
      continue;
    }
    const length = wire === 1 ? 8 : wire === 5 ? 4 : Number(varint());
    found.push({ number: key >> 3, value: body.subarray(at, at + length) });
    at += length;
  }
  return found;
}
