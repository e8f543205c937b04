import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { decodeSse, type Part } from '@hopline/a2a';
import type { MemoryLog } from '@hopline/log/memory';
import { StoredScenario, supervisor } from '@hopline/task/test-kit';

/**
 * Lets the conformance suite of Durable Streams read tasks. The suite writes streams by PUT and POST, so this server does that: a stream is a task,
 * an append is an artifact, and closing completes the task. Reads go to the front; of its messages only the artifacts are passed on, in the content
 * type of the stream. Offsets, cursors, statuses and all other headers are the front's.
 */

type Stream = { task: StoredScenario; contentType: string; isClosed: boolean; appends: number };

const WRITER = supervisor();
const PASSED = ['if-none-match', 'origin', 'access-control-request-method', 'access-control-request-headers', 'accept'];

export async function startShim(front: string, log: MemoryLog): Promise<Server & { url: string }> {
  const streams = new Map<string, Stream>();
  const server = createServer((request, response) => {
    answer(request, response).catch(error => {
      if (response.headersSent) response.destroy();
      else response.writeHead(500).end(String(error));
    });
  });
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return Object.assign(server, { url: `http://127.0.0.1:${port}` });

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url!, front);
    const stream = streams.get(url.pathname);
    if (request.method === 'PUT') return create(url, stream, request, response);
    if (request.method === 'OPTIONS') return pass(new URL(`${front}tasks/t/stream`), request, response);
    if (stream === undefined) return void response.writeHead(404).end();
    if (request.method === 'POST') return append(stream, request, response);
    if (request.method === 'GET' || request.method === 'HEAD') return read(stream, url, request, response);
    response.writeHead(405).end();
  }

  async function create(url: URL, known: Stream | undefined, request: IncomingMessage, response: ServerResponse): Promise<void> {
    const contentType = request.headers['content-type'] ?? 'application/octet-stream';
    const body = await bytesOf(request);
    const closes = isTrue(request.headers['stream-closed']);
    if (known !== undefined) {
      const isSame = known.contentType.toLowerCase() === contentType.toLowerCase() && known.isClosed === closes;
      return respond(known, isSame ? 200 : 409, response);
    }
    const task = new StoredScenario(log.facts, crypto.randomUUID());
    await task.message('write', crypto.randomUUID()).input(WRITER, { kind: 'status', state: 'TASK_STATE_WORKING' }).store();
    const stream: Stream = { task, contentType, isClosed: false, appends: 0 };
    streams.set(url.pathname, stream);
    await write(stream, body, closes);
    response.setHeader('location', `http://${request.headers.host}${url.pathname}`);
    await respond(stream, 201, response);
  }

  async function append(stream: Stream, request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = await bytesOf(request);
    const closes = isTrue(request.headers['stream-closed']);
    if (stream.isClosed && !(closes && body.length === 0)) return respond(stream, 409, response);
    if (!closes && body.length === 0) return void response.writeHead(400).end();
    await write(stream, body, closes);
    await respond(stream, 204, response);
  }

  async function write(stream: Stream, body: Buffer, closes: boolean): Promise<void> {
    const { task } = stream;
    for (const part of partsOf(stream, body)) {
      const lane = `append-${stream.appends++}`;
      task.input(WRITER, { kind: 'artifact', lane, artifact: { name: 'append' }, parts: [part], append: false, last: true });
    }
    if (closes && !stream.isClosed) task.input(WRITER, { kind: 'status', state: 'TASK_STATE_COMPLETED' });
    stream.isClosed ||= closes;
    await task.store();
  }

  /** Answers a write with the position of the front. */
  async function respond(stream: Stream, status: number, response: ServerResponse): Promise<void> {
    const { headers } = await fetch(streamUrl(stream), { method: 'HEAD' });
    for (const name of ['stream-next-offset', 'stream-closed', 'x-content-type-options', 'cross-origin-resource-policy'])
      if (headers.has(name)) response.setHeader(name, headers.get(name)!);
    if (status < 300 && status !== 204) response.setHeader('content-type', stream.contentType);
    response.writeHead(status).end();
  }

  function streamUrl({ task }: Stream): URL {
    return new URL(`${front}tasks/${task.taskId}/stream`);
  }

  async function read(stream: Stream, url: URL, request: IncomingMessage, response: ServerResponse): Promise<void> {
    const target = streamUrl(stream);
    target.search = url.search;
    await pass(target, request, response, stream);
  }

  async function pass(target: URL, request: IncomingMessage, response: ServerResponse, stream?: Stream): Promise<void> {
    const gone = new AbortController();
    response.on('close', () => gone.abort());
    const named = PASSED.flatMap(name => (request.headers[name] === undefined ? [] : [[name, String(request.headers[name])]]));
    const answered = await fetch(target, { method: request.method!, headers: Object.fromEntries(named), signal: gone.signal });
    const isEvents = answered.headers.get('content-type')?.startsWith('text/event-stream') === true;
    for (const [name, value] of answered.headers)
      if (!['content-length', 'transfer-encoding', 'connection', 'content-type'].includes(name)) response.setHeader(name, value);
    if (isEvents && stream !== undefined) return passEvents(answered, stream, response);
    const type = answered.headers.get('content-type');
    if (type !== null) response.setHeader('content-type', stream !== undefined && answered.ok ? stream.contentType : type);
    const body = Buffer.from(await answered.arrayBuffer());
    if (answered.status !== 200 || request.method === 'HEAD' || stream === undefined)
      return void response.writeHead(answered.status).end(body);
    const data = contentOf(stream, JSON.parse(body.toString()));
    // An event that only ends the task does not belong to the suite's stream.
    const isEmpty = data.length === 0 || (isJson(stream) && data.toString() === '[]');
    const isPoll = target.searchParams.get('live') === 'long-poll';
    response.writeHead(isPoll && isEmpty ? 204 : 200).end(isPoll && isEmpty ? undefined : data);
  }

  async function passEvents(answered: Response, stream: Stream, response: ServerResponse): Promise<void> {
    const isText = isJson(stream) || stream.contentType.startsWith('text/');
    if (!isText) response.setHeader('stream-sse-data-encoding', 'base64');
    response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders();
    let isShown = false;
    for await (const { event, data } of decodeSse(answered.body!)) {
      if (event === 'data') {
        const messages: unknown[] = JSON.parse(data);
        isShown = messages.some(isAppend);
        const content = contentOf(stream, messages);
        const lines = (isText ? content.toString() : content.toString('base64')).split(/\r\n|\r|\n/);
        if (isShown) response.write(`event: data\n${lines.map(line => `data:${line}\n`).join('')}\n`);
        continue;
      }
      // A position between messages of the suite's stream is shown only where it adds something.
      const { upToDate } = JSON.parse(data) as { upToDate?: boolean };
      if (isShown || upToDate) response.write(`event: control\ndata:${data}\n\n`);
    }
    response.end();
  }
}

function isTrue(value: string | string[] | undefined): boolean {
  return String(value).toLowerCase() === 'true';
}

function isJson({ contentType }: Stream): boolean {
  return contentType.toLowerCase().startsWith('application/json');
}

function partsOf(stream: Stream, body: Buffer): Part[] {
  if (body.length === 0) return [];
  if (!isJson(stream)) return [{ raw: body.toString('base64') }];
  const value = JSON.parse(body.toString());
  return (Array.isArray(value) ? value : [value]).map(data => ({ data }));
}

function isAppend(message: unknown): message is { artifactUpdate: { artifact: { parts: [Part] } } } {
  return (message as { artifactUpdate?: unknown }).artifactUpdate !== undefined;
}

/** The bytes that the suite has appended, in the content type of its stream. */
function contentOf(stream: Stream, messages: unknown[]): Buffer {
  const parts = messages.filter(isAppend).map(({ artifactUpdate }) => artifactUpdate.artifact.parts[0]);
  if (isJson(stream)) return Buffer.from(JSON.stringify(parts.map(({ data }) => data)));
  return Buffer.concat(parts.map(({ raw = '' }) => Buffer.from(raw, 'base64')));
}

async function bytesOf(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}
