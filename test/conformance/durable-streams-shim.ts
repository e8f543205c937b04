import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { decodeSse, type Part } from '@hopline/a2a';
import type { MemoryLog } from '@hopline/log/memory';
import { StoredScenario, supervisor } from '@hopline/task/test-kit';
import { listen } from '../kit/listen.ts';

/**
 * Lets the conformance suite of Durable Streams read tasks. The suite writes streams by PUT and POST, so this server does that, without checks: a
 * stream is a task, an append is an artifact, and closing completes the task. Reads go to the front; of its messages only the artifacts are passed on,
 * in the content type of the stream. Offsets, cursors, statuses and all other headers are the front's.
 */

type Stream = { task: StoredScenario; contentType: string; appends: number };

/** `reads`: requests that were passed to the front. */
export type Shim = Server & { url: string; readonly reads: number };

const WRITER = supervisor();
const PASSED = ['if-none-match', 'origin', 'access-control-request-method', 'access-control-request-headers', 'accept'];

export async function startShim(front: string, log: MemoryLog): Promise<Shim> {
  const streams = new Map<string, Stream>();
  let reads = 0;
  const server = createServer((request, response) => {
    answer(request, response).catch(error => {
      if (response.headersSent) response.destroy();
      else response.writeHead(500).end(String(error));
    });
  });
  await listen(server);
  const { port } = server.address() as AddressInfo;
  const url = `http://127.0.0.1:${port}`;
  return Object.defineProperties(server as Shim, { url: { value: url }, reads: { get: () => reads } });

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url!, front);
    const stream = streams.get(url.pathname);
    if (request.method === 'PUT') return create(url, request, response);
    if (request.method === 'POST' && stream !== undefined) return append(stream, request, response, 204);
    reads += 1;
    const target = stream === undefined ? new URL(`${front}tasks/unknown/stream`) : streamUrl(stream);
    target.search = url.search;
    await pass(target, request, response, stream);
  }

  async function create(url: URL, request: IncomingMessage, response: ServerResponse): Promise<void> {
    const contentType = request.headers['content-type'] ?? 'application/octet-stream';
    const task = new StoredScenario(log.facts, crypto.randomUUID());
    await task.message('write', crypto.randomUUID()).input(WRITER, { kind: 'status', state: 'TASK_STATE_WORKING' }).store();
    const stream: Stream = { task, contentType, appends: 0 };
    streams.set(url.pathname, stream);
    await append(stream, request, response, 201);
  }

  async function append(stream: Stream, request: IncomingMessage, response: ServerResponse, status: number): Promise<void> {
    const { task } = stream;
    for (const part of partsOf(stream, await bytesOf(request))) {
      const lane = `append-${stream.appends++}`;
      task.input(WRITER, { kind: 'artifact', lane, artifact: { name: 'append' }, parts: [part], append: false, last: true });
    }
    if (request.headers['stream-closed'] === 'true') task.input(WRITER, { kind: 'status', state: 'TASK_STATE_COMPLETED' });
    await task.store();
    await respond(stream, status, response);
  }

  /** Answers a write with the position of the front. */
  async function respond(stream: Stream, status: number, response: ServerResponse): Promise<void> {
    const { headers } = await fetch(streamUrl(stream), { method: 'HEAD' });
    for (const name of ['stream-next-offset', 'stream-closed'])
      if (headers.has(name)) response.setHeader(name, headers.get(name)!);
    response.setHeader('content-type', stream.contentType);
    response.writeHead(status).end();
  }

  function streamUrl({ task }: Stream): URL {
    return new URL(`${front}tasks/${task.taskId}/stream`);
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
    response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders();
    let isShown = false;
    for await (const { event, data } of decodeSse(answered.body!)) {
      if (event === 'data') {
        const messages: unknown[] = JSON.parse(data);
        isShown = messages.some(isAppend);
        if (isShown) response.write(`event: data\ndata:${contentOf(stream, messages)}\n\n`);
        continue;
      }
      // A position between messages of the suite's stream is shown only where it adds something.
      const { upToDate } = JSON.parse(data) as { upToDate?: boolean };
      if (isShown || upToDate) response.write(`event: control\ndata:${data}\n\n`);
    }
    response.end();
  }
}

function isJson({ contentType }: Stream): boolean {
  return contentType.toLowerCase().startsWith('application/json');
}

function partsOf(stream: Stream, body: Buffer): Part[] {
  if (body.length === 0) return [];
  // One character for each byte.
  if (!isJson(stream)) return [{ text: body.toString('latin1') }];
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
  return Buffer.from(parts.map(({ text = '' }) => text).join(''), 'latin1');
}

async function bytesOf(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}
