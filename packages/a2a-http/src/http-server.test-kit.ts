import type { TestContext } from 'node:test';
import {
  A2AError,
  type DecodedEvent,
  DIALECTS,
  type DialectName,
  decodeSse,
  type JsonObject,
  type Message,
  type Operation,
  type SseEvent,
} from '@hopline/a2a';
import { type A2AServerOptions, LIMITS } from '@hopline/a2a-server';
import { openServer, type TestServer } from '@hopline/a2a-server/test-kit';
import { agentCard } from '@hopline/agent-card';
import { type CardSigner, PublishedCard } from '@hopline/agent-card/signing';
import type { MemoryLogOptions } from '@hopline/log/memory';
import type { CorsOptions } from './cors.ts';
import type { Front } from './front.ts';
import { openHttp } from './open-http.ts';
import type { TaskAudits } from './task-audit-route.ts';
import type { ExportTask } from './task-export-route.ts';

/** A server on HTTP. */
export type Rig = Omit<TestServer, 'server' | 'another'> & {
  url: string;
  /** Number of subscriptions to the log. */
  following(): number;
  close(): Promise<void>;
  /** Starts another process on the same log. */
  another(options?: Partial<A2AServerOptions>): Promise<Rig>;
};

type HttpOptions = {
  cors?: CorsOptions;
  signer?: CardSigner;
  audits?: TaskAudits;
  exportTask?: ExportTask;
  consoleUrl?: string;
  fronts?: readonly Front[];
};
type RigOptions = Partial<A2AServerOptions> & HttpOptions & { memory?: MemoryLogOptions };

export function openRig(
  t: TestContext,
  { memory, cors, signer, audits, exportTask, consoleUrl, fronts, ...options }: RigOptions = {},
): Promise<Rig> {
  const limits = { ...LIMITS, ...options.limits };
  const http = {
    ...(cors && { cors }),
    ...(signer && { signer }),
    ...(audits && { audits }),
    ...(exportTask && { exportTask }),
    ...(consoleUrl && { consoleUrl }),
    ...(fronts && { fronts }),
  };
  return listen(t, openServer(t, { ...options, limits }, memory), http);
}

async function listen(t: TestContext, own: TestServer, options: HttpOptions): Promise<Rig> {
  const { signer, ...routes } = options;
  const { server, another, ...shown } = own;
  let following = 0;
  const { facts } = own.log;
  const follow = facts.follow.bind(facts);
  facts.follow = async (taskId, after, signal) => {
    following += 1;
    signal.addEventListener('abort', () => (following -= 1), { once: true });
    return follow(taskId, after, signal);
  };
  const settings = { name: 'test', description: 'test', version: '0', url: 'http://127.0.0.1/', skills: [] };
  const card = new PublishedCard(() => agentCard({ ...settings, capabilities: { streaming: true } }), signer);
  const http = openHttp(server, { card, ...routes });
  const url = await http.listen('127.0.0.1', 0);
  let closed: Promise<void> | undefined;
  const close = () => (closed ??= http.close());
  t.after(close);
  return { ...shown, url, following: () => following, close, another: more => listen(t, another(more), options) };
}

export type Method = Operation;
export type CallOptions = {
  dialect?: DialectName;
  id?: unknown;
  headers?: Record<string, string>;
  path?: string;
  signal?: AbortSignal;
  query?: string;
};

export function userMessage(text: string, more: Partial<Message> = {}): Message {
  return { messageId: crypto.randomUUID(), role: 'ROLE_USER', parts: [{ text }], ...more };
}

/** Params of a send in a dialect. */
export function sendParams(
  message: Message,
  dialect: DialectName = '1.0',
  more: { blocking?: boolean; historyLength?: number } = {},
): JsonObject {
  return DIALECTS[dialect].encodeSend({ message, blocking: true, ...more });
}

export async function post(rig: Rig, method: Method, params: unknown, options: CallOptions = {}): Promise<Response> {
  const { dialect = '1.0', id = 1, path = '/', query = '', headers = {}, signal } = options;
  const body = JSON.stringify({ jsonrpc: '2.0', id, method: DIALECTS[dialect].methods[method], params });
  const version = dialect === '1.0' ? { 'a2a-version': '1.0' } : {};
  return fetch(`${rig.url}${path}${query}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...version, ...headers },
    body,
    ...(signal && { signal }),
  });
}

// biome-ignore lint/suspicious/noExplicitAny: a test reads what it expects, and fails where it is not there.
type Any = any;
export type RpcAnswer = { jsonrpc: string; id: unknown; result?: Any; error?: { code: number; message: string; data: Any } };

export async function call(rig: Rig, method: Method, params: unknown, options: CallOptions = {}): Promise<RpcAnswer> {
  const response = await post(rig, method, params, options);
  return (await response.json()) as RpcAnswer;
}

/** A frame as received, with its decoded event. */
export type Frame = SseEvent & { rpc: RpcAnswer; decoded: DecodedEvent };

/** An open stream, read one frame at a time or to its end. */
export class StreamReader {
  readonly response: Response;
  readonly #events: AsyncIterator<SseEvent>;
  readonly #dialect: DialectName;

  constructor(response: Response, dialect: DialectName) {
    this.response = response;
    this.#dialect = dialect;
    if (response.headers.get('content-type')?.startsWith('text/event-stream') !== true)
      throw new A2AError('INVALID_AGENT_RESPONSE');
    this.#events = decodeSse(response.body as AsyncIterable<Uint8Array>)[Symbol.asyncIterator]();
  }

  async next(): Promise<Frame | undefined> {
    const { done, value } = await this.#events.next();
    if (done === true) return undefined;
    const rpc = JSON.parse(value.data) as RpcAnswer;
    return { ...value, rpc, decoded: DIALECTS[this.#dialect].decodeEvent(rpc.result) };
  }

  async take(count: number): Promise<Frame[]> {
    const frames: Frame[] = [];
    while (frames.length < count) {
      const frame = await this.next();
      if (frame === undefined) return frames;
      frames.push(frame);
    }
    return frames;
  }

  async rest(): Promise<Frame[]> {
    return this.take(Number.POSITIVE_INFINITY);
  }

  async cut(): Promise<void> {
    await this.#events.return?.();
    // If a reader has not read anything, it has not locked the body. The body must then be canceled, or it stays open.
    if (!this.response.bodyUsed) await this.response.body?.cancel();
  }
}

export async function open(rig: Rig, method: Method, params: unknown, options: CallOptions = {}): Promise<StreamReader> {
  return new StreamReader(await post(rig, method, params, options), options.dialect ?? '1.0');
}

/** Describes each frame in a word: its state (`working`), or its text with `=` if it begins an artifact, `+` if it appends, and `.` after the last chunk. */
export function shape(frames: Frame[]): string[] {
  return frames.map(({ decoded }) => {
    if ('unknown' in decoded) return decoded.unknown;
    const { event } = decoded;
    if ('task' in event) return `task ${event.task.status.state.replace('TASK_STATE_', '').toLowerCase()}`;
    if ('message' in event) return 'message';
    if ('statusUpdate' in event) return event.statusUpdate.status.state.replace('TASK_STATE_', '').toLowerCase();
    const { append, lastChunk, artifact } = event.artifactUpdate;
    return `${append === true ? '+' : '='}${artifact.parts.map(part => part.text).join('')}${lastChunk === true ? '.' : ''}`;
  });
}
