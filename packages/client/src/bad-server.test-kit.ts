import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { DIALECTS, type Message, type StreamResponse, type TaskState } from '@hopline/a2a';

/** The fault of one connection. `after`: frames that are sent before it. Absent: no fault. */
export type ConnectionFault =
  | { kind: 'none' }
  /** No response. */
  | { kind: 'drop' }
  /** The connection breaks, maybe within a frame. */
  | { kind: 'cut'; after: number; halfFrame?: boolean }
  /** The response ends without an error. */
  | { kind: 'end'; after: number }
  | { kind: 'drain'; after: number; retryMs?: number }
  | { kind: 'silence'; after: number }
  /** A frame with `data` instead of a response. */
  | { kind: 'frame'; after: number; data: string }
  | { kind: 'answer'; status: number; headers?: Record<string, string>; body?: string }
  /** Ignores the cursor: sends all frames again, each twice. */
  | { kind: 'repeat' }
  /** Retention has removed everything up to this generation. */
  | { kind: 'gap'; upTo: number; cut?: boolean };

type ReceivedRequest = { method: string; params: { message?: Message; id?: string }; headers: IncomingHttpHeaders };

export type BadServer = {
  readonly url: string;
  readonly requests: readonly ReceivedRequest[];
  /** Ids of messages that started a task, for idempotency in a context. */
  readonly started: ReadonlySet<string>;
  openResponses(): number;
  close(): Promise<void>;
};

export type BadServerOptions = {
  events: readonly StreamResponse[];
  /** The fault of the n-th POST, counted from 0. */
  fault?: (n: number, request: ReceivedRequest) => ConnectionFault | undefined;
  dialect?: '1.0' | '0.3';
  /** false: frames have no ids. */
  cursors?: boolean;
  /** Responses to GET requests: body by path. */
  documents?: Record<string, string>;
  port?: number;
};

export const IDS = { taskId: 'task-1', contextId: 'context-1' };
export const status = (state: TaskState): StreamResponse => ({ statusUpdate: { ...IDS, status: { state } } });
export const chunk = (text: string, append = true): StreamResponse => ({
  artifactUpdate: {
    ...IDS,
    artifact: { artifactId: 'a', name: 'streaming_result', parts: [{ text }] },
    append,
    lastChunk: false,
  },
});
export const taskEvent = (state: TaskState): StreamResponse => ({
  task: { id: IDS.taskId, contextId: IDS.contextId, status: { state } },
});

/** The events of a task: the task, its tokens and its end. */
export function story(tokens: number, end: TaskState = 'TASK_STATE_COMPLETED'): StreamResponse[] {
  const chunks = Array.from({ length: tokens }, (_, index) => chunk(`${index} `, index > 0));
  return [taskEvent('TASK_STATE_SUBMITTED'), status('TASK_STATE_WORKING'), ...chunks, status(end)];
}

export const cursorOf = (generation: number): string => `${generation}.${generation + 100}`;

/** A server with one task, whose connections have the faults that the test chooses. */
export async function startBadServer(options: BadServerOptions): Promise<BadServer> {
  const requests: ReceivedRequest[] = [];
  const started = new Set<string>();
  const open = new Set<ServerResponse>();
  const server = createServer((request, response) => {
    open.add(response);
    response.once('close', () => open.delete(response)).on('error', () => {});
    if (request.method === 'GET') return sendDocument(request, response);
    return void serve(request, response).catch(() => response.destroy());
  });
  server.listen(options.port ?? 0, '127.0.0.1');
  await once(server, 'listening');

  function sendDocument(request: IncomingMessage, response: ServerResponse): void {
    const document = options.documents?.[request.url ?? ''];
    response.writeHead(document === undefined ? 404 : 200, { 'content-type': 'application/json' }).end(document);
  }

  async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method, params } = JSON.parse(await text(request));
    const one: ReceivedRequest = { method, params, headers: request.headers };
    const fault = options.fault?.(requests.length, one) ?? { kind: 'none' };
    requests.push(one);
    if (fault.kind === 'answer') {
      const { status: code, headers = {}, body = '' } = fault;
      return void response.writeHead(code, { 'content-type': 'application/json', ...headers }).end(body);
    }
    if (params.message !== undefined) started.add(`${params.message.contextId} ${params.message.messageId}`);
    if (fault.kind === 'drop') return void response.destroy();
    await stream(response, one, fault);
  }

  async function stream(response: ServerResponse, { params, headers }: ReceivedRequest, fault: ConnectionFault): Promise<void> {
    const frame = framesOf(options);
    response.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8' });
    response.write(': ok\n\n');
    const cursor = params.message === undefined ? headers['last-event-id'] : undefined;
    let next = cursor === undefined || fault.kind === 'repeat' ? 0 : Number(String(cursor).split('.')[0]);
    if (fault.kind === 'gap' && next < fault.upTo) {
      response.write(`event: gap\ndata: ${JSON.stringify({ missing: { from: next + 1, to: fault.upTo } })}\n\n`);
      if (fault.cut) return breakOff(response);
      next = fault.upTo;
      response.write(frame(taskEvent('TASK_STATE_WORKING'), next));
    }
    const after = 'after' in fault ? fault.after : Number.POSITIVE_INFINITY;
    for (let sent = 0; next < options.events.length && sent < after; sent += 1) {
      next += 1;
      const written = frame(options.events[next - 1]!, next);
      response.write(fault.kind === 'repeat' ? written + written : written);
    }
    const half = next < options.events.length ? frame(options.events[next]!, next + 1) : ': over\n\n';
    await finish(response, fault, half.slice(0, half.length / 2));
  }

  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  return {
    url,
    requests,
    started,
    openResponses: () => open.size,
    close: async () => {
      server.close();
      server.closeAllConnections();
      if (server.listening) await once(server, 'close');
    },
  };
}

async function finish(response: ServerResponse, fault: ConnectionFault, half: string): Promise<void> {
  if (fault.kind === 'silence') return;
  if (fault.kind === 'cut') {
    if (fault.halfFrame) response.write(half);
    return breakOff(response);
  }
  if (fault.kind === 'frame') response.write(`data: ${fault.data}\n\n`);
  if (fault.kind === 'drain') {
    const error = { code: -32603, message: 'Temporarily unavailable', data: { reason: 'UNAVAILABLE', retryable: true } };
    const data = JSON.stringify({ jsonrpc: '2.0', id: 1, error });
    response.write(`retry: ${fault.retryMs ?? 1}\nevent: drain\ndata: ${data}\n\n`);
  }
  response.end();
}

/** Breaks the connection after all earlier bytes have left the process. */
async function breakOff(response: ServerResponse): Promise<void> {
  await new Promise(resolve => response.write(': cut\n', resolve));
  response.destroy();
}

function framesOf({ dialect = '1.0', cursors = true }: BadServerOptions): (event: StreamResponse, generation: number) => string {
  return (event, generation) => {
    const id = cursors ? `id: ${cursorOf(generation)}\n` : '';
    const result = DIALECTS[dialect].encodeEvent(event);
    return `${id}data: ${JSON.stringify({ jsonrpc: '2.0', id: 1, result })}\n\n`;
  };
}
