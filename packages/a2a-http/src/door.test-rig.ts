import type { TestContext } from 'node:test';
import {
  A2AError,
  agentCard,
  type DecodedEvent,
  DIALECTS,
  type DialectName,
  decodeSse,
  type JsonObject,
  type Message,
  type SseEvent,
} from '@hopline/a2a';
import type { AgentInput, Fact, TaskControl } from '@hopline/events';
import { createMemoryLog, type MemoryLog, type MemoryLogOptions } from '@hopline/log/memory';
import { decide, evolve, type Item } from '@hopline/task';
import type { HopMetrics, LogFields, Logger } from '@hopline/telemetry';
import fastify from 'fastify';
import { LIMITS, type Limits, serverOptions } from './limits.ts';
import { type A2AHttpOptions, registerA2A } from './register-a2a.ts';

/** For tests: the smallest thing that turns inputs into facts, with the real rules and no time of its own. */
export class TinyRelay {
  readonly #log: MemoryLog;
  readonly #tasks = new Map<string, { control: TaskControl; seq: number; first: number }>();
  /** Called when a client's message or cancel has been taken. */
  onClient: (taskId: string, control: TaskControl) => Promise<void> | void = () => {};
  /** While false, inputs wait in the log. */
  running = true;
  #resume: (() => void) | undefined;

  constructor(log: MemoryLog) {
    this.#log = log;
  }

  async run(signal: AbortSignal): Promise<void> {
    for await (const { taskId, record, seq } of this.#log.inputs.readShard(0, 1, signal)) {
      if (!this.running)
        await new Promise<void>(resolve => {
          this.#resume = resolve;
        });
      if (record.from !== 'client') continue;
      const took = await this.decide(taskId, { kind: 'client', taskId, input: record.input }, seq);
      if (took) void this.onClient(taskId, this.control(taskId));
    }
  }

  resume(): void {
    this.running = true;
    this.#resume?.();
  }

  control(taskId: string): TaskControl {
    return this.#tasks.get(taskId)!.control;
  }

  /** Appends what the rules make of an item; false when they dropped it. */
  async decide(taskId: string, item: Item, raw?: number): Promise<boolean> {
    const known = this.#tasks.get(taskId);
    const { facts } = decide(known?.control, item, Date.now());
    if (facts.length === 0) return false;
    await this.append(taskId, facts, raw);
    return true;
  }

  async append(taskId: string, facts: Fact[], raw?: number): Promise<void> {
    const known = this.#tasks.get(taskId);
    let control = known?.control;
    for (const fact of facts) control = evolve(control, fact);
    const next = { ...control!, raw: raw ?? control!.raw };
    const first = known?.first ?? 0;
    const { seq } = await this.#log.facts.append(
      { v: 1, facts, control: next, first },
      { expected: known?.seq ?? 0, id: `${taskId}:${next.generation}:${next.raw}:${next.at}:${Math.random()}` },
    );
    this.#tasks.set(taskId, { control: next, seq, first: first || seq });
  }

  async says(taskId: string, input: Exclude<AgentInput, { kind: 'text' }>): Promise<void> {
    await this.decide(taskId, { kind: 'agent', from: this.#from(taskId), input });
  }

  async opens(taskId: string, lane: string, name = 'streaming_result'): Promise<void> {
    await this.says(taskId, { kind: 'open', lane, artifact: { name, description: `Streaming result from ${lane}` } });
  }

  async text(taskId: string, lane: string, text: string, last = false): Promise<void> {
    const now = Date.now();
    const chunk = { first: 1, last: 1, count: 1, n: 1, why: 'ready', heldMs: 0, firstAt: now, lastAt: now };
    await this.decide(taskId, { kind: 'run', from: this.#from(taskId), lane, text, last, n: 1, chunk });
  }

  async ends(taskId: string, state: 'COMPLETED' | 'FAILED' | 'INPUT_REQUIRED' | 'AUTH_REQUIRED' = 'COMPLETED'): Promise<void> {
    const message: Message = {
      messageId: `ask-${taskId}-${this.control(taskId).turn}`,
      role: 'ROLE_AGENT',
      parts: [{ text: 'Which one?' }],
    };
    const asks = state === 'INPUT_REQUIRED' || state === 'AUTH_REQUIRED';
    await this.says(taskId, { kind: 'status', state: `TASK_STATE_${state}`, ...(asks && { message }) });
  }

  /** A whole answer in chunks, and the end. */
  async answers(taskId: string, tokens: string[]): Promise<void> {
    await this.says(taskId, { kind: 'status', state: 'TASK_STATE_WORKING' });
    const lane = `l${this.control(taskId).turn}`;
    await this.opens(taskId, lane);
    for (const token of tokens) await this.text(taskId, lane, token);
    await this.ends(taskId);
  }

  #from(taskId: string) {
    const { turn, role } = this.control(taskId);
    return { id: role === 'supervisor' ? 'supervisor' : 'agent', agent: 'supervisor', turn, attempt: 1 };
  }
}

export type Line = { level: string; fields: LogFields; message: string };

export type Rig = {
  url: string;
  log: MemoryLog;
  relay: TinyRelay;
  lines: Line[];
  /** Sum of each counter, count of each latency. */
  totals: Record<string, number>;
  /** Streams and waits that are open. */
  open(): number;
  /** Subscriptions to the log. */
  following(): number;
  close(): Promise<void>;
  /** Another process on the same log. */
  another(options?: Partial<A2AHttpOptions>): Promise<Rig>;
};

export async function openRig(
  t: TestContext,
  options: Partial<A2AHttpOptions> & { memory?: MemoryLogOptions } = {},
): Promise<Rig> {
  const log = createMemoryLog({ shards: 1, ...options.memory });
  const relay = new TinyRelay(log);
  const stop = new AbortController();
  const running = relay.run(stop.signal);
  t.after(async () => {
    relay.resume();
    stop.abort();
    await running;
  });
  return openDoor(t, log, relay, options);
}

async function openDoor(t: TestContext, log: MemoryLog, relay: TinyRelay, options: Partial<A2AHttpOptions>): Promise<Rig> {
  const limits: Limits = { ...LIMITS, ...options.limits };
  const app = fastify(serverOptions(limits));
  const lines: Line[] = [];
  const totals: Record<string, number> = {};
  let following = 0;
  const follow = log.facts.follow.bind(log.facts);
  log.facts.follow = async (taskId, after, signal) => {
    following += 1;
    signal.addEventListener('abort', () => (following -= 1), { once: true });
    return follow(taskId, after, signal);
  };
  const card = () => agentCard({ name: 'test', description: 'test', version: '0', url: 'http://127.0.0.1/', skills: [] });
  registerA2A(app, {
    log,
    role: 'supervisor',
    profile: 'caipe',
    card,
    logger: recordingLogger(lines),
    metrics: countingMetrics(totals),
    ...options,
    limits,
  });
  const url = await app.listen({ port: 0, host: '127.0.0.1' });
  let closed: Promise<void> | undefined;
  const close = () => (closed ??= app.close().then(() => undefined));
  t.after(close);
  const open = () => totals.openStreams ?? 0;
  return {
    url,
    log,
    relay,
    lines,
    totals,
    open,
    following: () => following,
    close,
    another: more => openDoor(t, log.another(), relay, { ...options, ...more }),
  };
}

function countingMetrics(totals: Record<string, number>): HopMetrics {
  const count = (name: string, n: number) => {
    totals[name] = (totals[name] ?? 0) + n;
  };
  const instrument = (name: string) => ({ add: (n: number) => count(name, n), recordMs: () => count(name, 1) });
  return new Proxy({}, { get: (_target, name) => instrument(String(name)) }) as HopMetrics;
}

function recordingLogger(lines: Line[]): Logger {
  const at = (level: string) => (first: LogFields | string, message?: string) => {
    lines.push(
      typeof first === 'string' ? { level, fields: {}, message: first } : { level, fields: first, message: message ?? '' },
    );
  };
  const logger = {
    trace: at('trace'),
    debug: at('debug'),
    info: at('info'),
    warn: at('warn'),
    error: at('error'),
    fatal: at('fatal'),
  };
  return { ...logger, child: () => recordingLogger(lines) } as Logger;
}

export type Method = 'send' | 'stream' | 'get' | 'cancel' | 'subscribe';
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

/** A frame as it came, and what it says. */
export type Frame = SseEvent & { rpc: RpcAnswer; decoded: DecodedEvent };

/** An open stream: read frames one by one, or all. */
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
    // A reader that has read nothing yet has not locked the body: it would stay open.
    if (!this.response.bodyUsed) await this.response.body?.cancel();
  }
}

export async function open(rig: Rig, method: Method, params: unknown, options: CallOptions = {}): Promise<StreamReader> {
  return new StreamReader(await post(rig, method, params, options), options.dialect ?? '1.0');
}

/** One word per frame: task, working, completed, …, `=text` (begins), `+text` (appends), `.` (last chunk). */
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
