import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { answersAtOnce, type Pushes, pushFrames, webhookOf } from './remote-push.ts';
import { type CardOptions, cardOf, type Json, METHODS, type Method, type RemoteDialect, SHAPES } from './remote-shapes.ts';
import { type Frame, type KeptStatuses, RemoteTask, type Step } from './remote-task.ts';

export type { Step } from './remote-task.ts';
export { answer } from './remote-task.ts';

/** One request to the agent. */
type RemoteRequest = {
  /** JSON-RPC request id. */
  id: unknown;
  method: Method;
  params: Json;
  headers: IncomingHttpHeaders;
  /** Id of the agent's task: named by 'cancel', 'get' and 'subscribe', assigned to a new message. */
  taskId: string;
  /** The agent's context id of that task. */
  contextId: string;
  /** 1 for the message that created the task, 2 for the next one, … */
  turn: number;
  /** Text parts of the message, joined. */
  text: string;
};

type Steps = Iterable<Step> | AsyncIterable<Step>;

export type RemoteAgentOptions = {
  dialect: RemoteDialect;
  /** Response to a message: its steps, or a function of the request that returns or generates them. */
  script: Step[] | ((request: RemoteRequest) => Steps);
  /** Members of the agent card; `false`: no card. */
  card?: CardOptions | false;
  /** Path of the JSON-RPC endpoint, default `/`. */
  path?: string;
  /** Default: any free port. */
  port?: number;
  /** Supports tasks/get and tasks/resubscribe, default true. */
  recoverable?: boolean;
  /** Statuses of a task that tasks/get returns, by the task's first message; default all. */
  keeps?: (text: string) => KeptStatuses;
  /** How it uses the webhook that a message configures. By default it ignores the webhook. */
  pushes?: Pushes;
  /** Responds to a blocking send at once. */
  neverWaits?: boolean;
  /** Responds to sends only after this promise. */
  answersAfter?: Promise<void>;
  /** Responds to a non-blocking send with the state of the task before the message. */
  answersWithPreviousState?: boolean;
  /** Assigns context ids itself, and rejects any other. */
  ownContexts?: boolean;
  /** Writes a comment to each stream at this interval in milliseconds, as sse-starlette does every 15 s. */
  pingMs?: number;
  /** Sends no event of the task to subscriptions. */
  muteSubscriptions?: boolean;
  /** Responds with this HTTP status and no body to every POST, or only to those that a function selects by their text. */
  httpStatus?: number | ((text: string) => number | undefined);
};

export interface RemoteAgent {
  readonly url: string;
  /** All requests, in order. */
  readonly requests: readonly RemoteRequest[];
  /** HTTP statuses of its webhook deliveries, in order. */
  readonly pushStatuses: readonly number[];
  /** Number of open responses. */
  openStreams(): number;
  /** Closes all connections at once, as a crash would. */
  close(): Promise<void>;
}

/** Starts a scripted A2A agent on 127.0.0.1. A task runs to its end with or without a connected client. */
export async function startRemoteAgent(options: RemoteAgentOptions): Promise<RemoteAgent> {
  const requests: RemoteRequest[] = [];
  const pushStatuses: number[] = [];
  const tasks = new Map<string, RemoteTask>();
  const open = new Set<ServerResponse>();
  const server = createServer((request, response) => {
    open.add(response);
    response.once('close', () => open.delete(response));
    serve(request, response).catch(() => response.destroy());
  });
  server.listen(options.port ?? 0, '127.0.0.1');
  await once(server, 'listening');
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const path = options.path ?? '/';

  async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const card = options.card === false ? undefined : cardOf(options.dialect, `${url}${path}`, options.card ?? {});
    if (request.method === 'GET') {
      if (request.url !== card?.path) return void response.writeHead(404).end();
      return void response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(card?.card));
    }
    const body = JSON.parse(await textOf(request)) as { id: unknown; method: string; params: Json };
    const { httpStatus } = options;
    const refusal = typeof httpStatus === 'function' ? httpStatus(textOfMessage(body.params)) : httpStatus;
    if (refusal !== undefined) return void response.writeHead(refusal).end();
    const method = METHODS[options.dialect][body.method];
    if (request.url !== path || method === undefined) return fail(response, body.id, -32601);
    await handle(method, body, request, response);
  }

  async function handle(method: Method, body: { id: unknown; params: Json }, request: IncomingMessage, response: ServerResponse) {
    const taskId = taskIdOf(method, body.params);
    const known = taskId === undefined ? undefined : tasks.get(taskId);
    if ((taskId !== undefined && known === undefined) || (known !== undefined && refuses(method)))
      return fail(response, body.id, -32001);
    const webhook = webhookOf(body.params);
    if (webhook !== undefined && options.pushes === 'refused') return fail(response, body.id, -32003);
    const create = () =>
      new RemoteTask(SHAPES[options.dialect], contextFor(body.params), options.keeps?.(textOfMessage(body.params)));
    const task = known ?? create();
    tasks.set(task.ids.taskId, task);
    const received: RemoteRequest = {
      id: body.id,
      method,
      params: body.params,
      headers: request.headers,
      taskId: task.ids.taskId,
      contextId: task.ids.contextId,
      turn: task.turn,
      text: textOfMessage(body.params),
    };
    requests.push(received);
    if (method === 'cancel') task.cancel();
    if (method === 'get' || method === 'cancel') return reply(response, body.id, { result: task.snapshot() });
    const before = task.snapshot();
    const from = method === 'subscribe' ? task.frames.length : task.begin(body.params.message as Json);
    if (method === 'subscribe' && options.dialect === '1.0')
      sse(response, body.id, { result: SHAPES['1.0'].taskResult(task.snapshot()) });
    if (method !== 'subscribe') {
      received.turn = task.turn;
      void task.play(typeof options.script === 'function' ? options.script(received) : options.script);
    }
    if (options.pingMs !== undefined && method !== 'send') pings(response, options.pingMs);
    if (method === 'subscribe' && options.muteSubscriptions === true) return;
    if (method !== 'send') return await follow(task, from, response, body.id);
    if (webhook !== undefined && options.pushes !== undefined)
      void pushFrames(task, { from, webhook, pushes: options.pushes, statuses: pushStatuses });
    await options.answersAfter;
    if (options.answersWithPreviousState === true)
      return reply(response, body.id, { result: SHAPES[options.dialect].taskResult(before) });
    if (options.neverWaits !== true && !answersAtOnce(body.params)) await task.ended();
    reply(response, body.id, task.sendResult());
  }

  const contexts = new Set<string>();
  const contextFor = (params: Json) => {
    const named = contextOf(params);
    const contextId = options.ownContexts === true && !contexts.has(named) ? randomUUID() : named;
    contexts.add(contextId);
    return contextId;
  };

  const refuses = (method: Method) => options.recoverable === false && (method === 'get' || method === 'subscribe');

  return {
    url: `${url}${path}`,
    requests,
    pushStatuses: pushStatuses,
    openStreams: () => open.size,
    close: async () => {
      for (const task of tasks.values()) task.stop();
      server.close();
      server.closeAllConnections();
      if (server.listening) await once(server, 'close');
    },
  };
}

/** Writes the task's frames from an index on, with backpressure. */
async function follow(task: RemoteTask, from: number, response: ServerResponse, id: unknown): Promise<void> {
  for await (const frame of task.follow(from)) {
    if (response.destroyed) return;
    if (frame.kind === 'cut') {
      // The cut must not overtake earlier frames.
      await new Promise(resolve => start(response).write(': cut\n', resolve));
      return void response.destroy();
    }
    const full = frame.kind === 'raw' ? !start(response).write(frame.bytes) : !sse(response, id, payload(frame));
    if (full) await Promise.race([once(response, 'drain'), once(response, 'close')]);
  }
  start(response).end();
}

function pings(response: ServerResponse, everyMs: number): void {
  const timer = setInterval(() => start(response).write(': ping\r\n\r\n'), everyMs);
  response.once('close', () => clearInterval(timer));
}

const payload = (frame: Exclude<Frame, { kind: 'raw' | 'cut' }>): Json =>
  frame.kind === 'error' ? { error: { code: frame.code, message: frame.message } } : { result: frame.result };

function start(response: ServerResponse): ServerResponse {
  if (!response.headersSent) response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-store' });
  return response;
}

function sse(response: ServerResponse, id: unknown, body: Json): boolean {
  return start(response).write(`data: ${JSON.stringify({ jsonrpc: '2.0', id, ...body })}\n\n`);
}

function reply(response: ServerResponse, id: unknown, body: Json): void {
  response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ jsonrpc: '2.0', id, ...body }));
}

function fail(response: ServerResponse, id: unknown, code: number): void {
  reply(response, id, { error: { code, message: 'rejected by the remote agent' } });
}

async function textOf(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString('utf8');
}

const messageOf = (params: Json): Json => (params.message ?? {}) as Json;
const contextOf = (params: Json): string => (messageOf(params).contextId as string | undefined) ?? randomUUID();

function taskIdOf(method: Method, params: Json): string | undefined {
  const id = method === 'send' || method === 'stream' ? messageOf(params).taskId : params.id;
  return id as string | undefined;
}

function textOfMessage(params: Json): string {
  const parts = (messageOf(params).parts ?? []) as Json[];
  return parts.map(part => (typeof part.text === 'string' ? part.text : '')).join('');
}
