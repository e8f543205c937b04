import { finished, type Readable } from 'node:stream';
import {
  A2AError,
  type CardReport,
  DIALECTS,
  decodeRemoteEvent,
  decodeRemoteResponse,
  INTERPRETED_MEMBERS,
  type JsonObject,
  JsonStream,
  type Operation,
  parseRetryAfter,
  type RemoteResponse,
  SSE_CONTENT_TYPE,
  SseDecoder,
  VERSION_HEADER,
} from '@hopline/a2a';
import type { Turn } from '@hopline/agent';
import { cardReport, noCardReport, type RemoteAgent } from '@hopline/agent-card';
import { Deadlines, type MissedDeadline } from '@hopline/outbound-http';
import { type Dispatcher, Agent as HttpAgent } from 'undici';
import { AGENT_UNREACHABLE, AgentFault, NO_JSON_RPC, NOT_JSON, rpcFault, silenceFault, totalFault } from './agent-fault.ts';
import { agentOfCard, cardUrls, namesInterfaces, withoutCard } from './find-endpoint.ts';
import type { A2ALimits } from './limits.ts';
import type { AgentTls, Skipped } from './options.ts';
import { STEPS_EXTENSION_URI } from './remote-steps.ts';
import { requestWithin } from './request-within.ts';

/** Lifetime of a cached card in milliseconds. It is short because skills change. */
const CARD_MS_MAX = 30_000;
/** Time limit of fetching a card and of tasks/get. */
export const CALL_MS_MAX = 10_000;
const CONNECT_MS_MAX = 5_000;
const CARD_BYTES_MAX = 1024 * 1024;
/** 0.3 uses another name. The version of April 2025 has no extensions, so its servers ignore the header. */
const EXTENSIONS_HEADERS = { '1.0': 'a2a-extensions', '0.3': 'x-a2a-extensions', legacy: 'x-a2a-extensions' } as const;
/** Malformed frames tolerated in one stream. */
const MALFORMED_MAX = 16;

type RemoteClientOptions = {
  url: string;
  headers: Readonly<Record<string, string>>;
  extensions: readonly string[];
  tls: AgentTls;
  limits: A2ALimits;
  onSkipped: (what: Skipped) => void;
};

/** A method that an extension adds. Its name is the same in every dialect. */
type ExtensionMethod = { extension: string };

/** What the client does after an event: it reads on at once, reads on after the promise, or stops. */
type Taken = undefined | Promise<void> | 'stop';

type Context = {
  signal: AbortSignal;
  trace: Turn['trace'];
  totalMsMax: number;
  /** Whether the agent may be silent now because it waits for credentials. */
  mayBeSilent?: () => boolean;
  /** The agent in whose dialect `params` are written. Absent if they are the same in every dialect. */
  agent?: RemoteAgent;
};

/**
 * A JSON-RPC client for one remote agent. Every failure is an AgentFault, except that a connection that breaks in mid-stream ends
 * the stream.
 */
export class RemoteClient {
  readonly #options: RemoteClientOptions;
  /** undici's own time limits are off, because they would end a blocking send after 300 s. `Deadlines` enforces ours. */
  readonly #http: HttpAgent;
  #cached: { agent: RemoteAgent; untilMs: number } | undefined;
  #report: CardReport | undefined;

  constructor(options: RemoteClientOptions) {
    this.#options = options;
    this.#http = new HttpAgent({ headersTimeout: 0, bodyTimeout: 0, connect: { timeout: CONNECT_MS_MAX, ...options.tls } });
  }

  /**
   * Returns the agent as its card describes it. While the agent is unreachable, an expired card is used; if there is none, throws
   * AgentFault.
   */
  async agent(): Promise<RemoteAgent> {
    if (this.#cached !== undefined && performance.now() < this.#cached.untilMs) return this.#cached.agent;
    try {
      const agent = await this.#findAgent();
      this.#cached = { agent, untilMs: performance.now() + CARD_MS_MAX };
      return agent;
    } catch (error) {
      if (this.#cached === undefined) throw error;
      return this.#cached.agent;
    }
  }

  /** The report of the card that was read last, whether usable or not. Undefined before the server has answered. */
  get report(): CardReport | undefined {
    return this.#report;
  }

  /**
   * Reads the card again before it expires. Returns undefined if the address and the dialect are unchanged, or if the card cannot be read.
   */
  async changedFrom(agent: RemoteAgent): Promise<RemoteAgent | undefined> {
    const now = await this.#findAgent().catch(() => undefined);
    if (now === undefined) return undefined;
    this.#cached = { agent: now, untilMs: performance.now() + CARD_MS_MAX };
    return now.dialect === agent.dialect && now.url === agent.url && now.tenant === agent.tenant ? undefined : now;
  }

  /**
   * Gives the agent's events to `take`, in arrays of those that arrive together; a JSON response is one event. Resolves when `take` stops the
   * stream, when it ends, and when the connection breaks after the first event.
   */
  async stream(
    operation: 'stream' | 'subscribe',
    params: JsonObject,
    context: Context,
    take: (events: RemoteResponse[]) => Taken,
  ): Promise<void> {
    const { limits } = this.#options;
    // A 0.3 subscription begins with the next event of the task, which may be silent for as long as a stream may.
    const firstEventMsMax = operation === 'subscribe' ? limits.silenceMsMax : limits.firstEventMsMax;
    using deadlines = new Deadlines(
      { ...limits, firstEventMsMax, totalMsMax: context.totalMsMax },
      faultOfDeadline,
      context.signal,
    );
    let hasBegun = false;
    const takeInTime = (events: RemoteResponse[]): Taken => {
      hasBegun = true;
      // Only events show that the agent is alive: servers of the Python SDKs write `: ping` as long as the connection is open, and other
      // keep-alives are frames of kinds unknown to A2A.
      const isAlive = events.some(event => !('unknown' in event));
      if (isAlive) deadlines.touch();
      const taken = take(events);
      if (!isAlive) return taken;
      if (taken instanceof Promise) {
        deadlines.pause();
        return taken.then(() => {
          if (context.mayBeSilent?.() !== true) deadlines.resume();
        });
      }
      if (context.mayBeSilent?.() === true) deadlines.pause();
      return taken;
    };
    try {
      const response = await this.#post(operation, params, context, deadlines.signal);
      await this.#responses(response, takeInTime);
    } catch (error) {
      const fault = faultOf(error, deadlines, context.signal);
      if (!hasBegun || fault.message !== AGENT_UNREACHABLE) throw fault;
    }
  }

  /** Sends one request and returns its response. Only the total time is limited: a blocking send is silent until its end. */
  async call(
    operation: Exclude<Operation, 'stream' | 'subscribe'> | ExtensionMethod,
    params: JsonObject,
    context: Context,
  ): Promise<RemoteResponse> {
    const unlimited = { firstEventMsMax: Number.POSITIVE_INFINITY, silenceMsMax: Number.POSITIVE_INFINITY };
    using deadlines = new Deadlines({ ...unlimited, totalMsMax: context.totalMsMax }, faultOfDeadline, context.signal);
    try {
      const response = await this.#post(operation, params, context, deadlines.signal);
      return await this.#answer(response);
    } catch (error) {
      throw faultOf(error, deadlines, context.signal);
    }
  }

  async close(): Promise<void> {
    await this.#http.destroy();
  }

  async #findAgent(): Promise<RemoteAgent> {
    const { url, headers } = this.#options;
    let hasOtherBindings = false;
    let unusable: CardReport | undefined;
    for (const cardUrl of cardUrls(url)) {
      const signal = AbortSignal.timeout(CALL_MS_MAX);
      const response = await requestWithin(cardUrl, { headers, dispatcher: this.#http, signal }).catch(cause => {
        throw new AgentFault(AGENT_UNREACHABLE, true, { cause });
      });
      if (response.statusCode !== 200) {
        await response.body.dump();
        continue;
      }
      const card = await readJson(response, CARD_BYTES_MAX).catch(() => undefined);
      const agent = tryCard(card, cardUrl, url);
      if (agent !== undefined) {
        this.#report = cardReport(card);
        return agent;
      }
      hasOtherBindings ||= namesInterfaces(card);
      // An agent behind a path may have another one's documents at its root.
      unusable ??= card === undefined ? undefined : cardReport(card);
    }
    this.#report = unusable ?? noCardReport();
    if (hasOtherBindings) throw new AgentFault(NO_JSON_RPC, false);
    return withoutCard(url);
  }

  async #post(
    operation: Operation | ExtensionMethod,
    params: JsonObject,
    { trace, agent }: Pick<Context, 'trace' | 'agent'>,
    signal: AbortSignal,
  ): Promise<Dispatcher.ResponseData<unknown>> {
    const { url, dialect, tenant, extensions: offered = [] } = agent ?? (await this.agent());
    const streams = operation === 'stream' || operation === 'subscribe';
    const isOffered = offered.includes(STEPS_EXTENSION_URI);
    const extensions = [...new Set([...this.#options.extensions, ...(isOffered ? [STEPS_EXTENSION_URI] : [])])];
    const headers = {
      ...this.#options.headers,
      ...trace,
      'content-type': 'application/json',
      accept: streams ? `${SSE_CONTENT_TYPE}, application/json` : 'application/json',
      ...(dialect === '1.0' && { [VERSION_HEADER]: dialect }),
      ...(extensions.length > 0 && { [EXTENSIONS_HEADERS[dialect]]: extensions.join(', ') }),
    };
    const method = typeof operation === 'string' ? DIALECTS[dialect].methods[operation] : operation.extension;
    const body = JSON.stringify({
      jsonrpc: '2.0',
      id: 1,
      method,
      params: { ...params, ...(tenant !== undefined && { tenant }) },
    });
    return await requestWithin(url, { method: 'POST', headers, body, dispatcher: this.#http, signal });
  }

  /**
   * Reads a JSON response. Some servers send an HTTP error with the JSON-RPC error in its body, others send only the HTTP error. Throws a
   * retryable error that has a `Retry-After`.
   */
  async #answer(response: Dispatcher.ResponseData<unknown>): Promise<RemoteResponse> {
    const { statusCode } = response;
    const isRetryable = isRetryableStatus(statusCode);
    const retryAfterMs = retryAfterOf(response);
    const failed = new AgentFault(`the agent answered with HTTP ${statusCode}`, isRetryable, {
      word: `http_${statusCode}`,
      ...(isRetryable && { retryAfterMs }),
    });
    if (statusCode !== 200 && !isJson(response)) {
      await response.body.dump();
      throw failed;
    }
    const decoded = decode(await readJson(response, this.#options.limits.eventBytesMax));
    if (statusCode !== 200 && !('error' in decoded)) throw failed;
    if ('error' in decoded && retryAfterMs !== undefined && (isRetryable || decoded.error.retryable))
      throw rpcFault({ ...decoded.error, retryable: true }, retryAfterMs);
    return decoded;
  }

  async #responses(response: Dispatcher.ResponseData<unknown>, take: (events: RemoteResponse[]) => Taken): Promise<void> {
    if (response.statusCode !== 200 || isJson(response)) {
      await take([await this.#answer(response)]);
      return;
    }
    if (!isReadable(response)) {
      await response.body.dump();
      throw new AgentFault('the agent answered with neither an event stream nor JSON', false, { word: 'not_json' });
    }
    let malformed = 0;
    const json = new JsonStream(decode, INTERPRETED_MEMBERS);
    const sse = new SseDecoder(this.#options.limits.eventBytesMax);
    await readChunks(response.body, chunk => {
      const decoded: RemoteResponse[] = [];
      for (const { data } of sse.feed(chunk)) {
        const event = parsed(() => json.read(data));
        if (event !== undefined) decoded.push(event);
        else {
          this.#options.onSkipped('malformed frame');
          malformed += 1;
          if (malformed > MALFORMED_MAX) break;
        }
      }
      const taken = decoded.length > 0 ? take(decoded) : undefined;
      if (malformed > MALFORMED_MAX) throw new AgentFault(NOT_JSON, false);
      return taken;
    });
  }
}

/**
 * Passes data to `take` as soon as it arrives, because the steps of an iterator would cost as much as the rest of a token. Resolves when
 * the body ends or `take` stops it. Rejects with the error of the body, or of `take`.
 */
function readChunks(body: Readable, take: (chunk: Buffer) => Taken): Promise<void> {
  return new Promise((resolve, reject) => {
    let isWaiting = false;
    const leave = (error?: unknown) => {
      if (error === undefined) resolve();
      else reject(error);
      body.destroy();
    };
    const read = () => {
      try {
        for (let chunk = body.read(); chunk !== null; chunk = body.read()) {
          const taken = take(chunk);
          if (taken === undefined) continue;
          if (taken === 'stop') return leave();
          isWaiting = true;
          return void taken.then(() => {
            isWaiting = false;
            read();
          }, leave);
        }
      } catch (error) {
        leave(error);
      }
    };
    body.on('readable', () => {
      if (!isWaiting) read();
    });
    finished(body, error => (error ? reject(error) : resolve()));
  });
}

function tryCard(card: unknown, cardUrl: string, configured: string): RemoteAgent | undefined {
  try {
    return agentOfCard(card, cardUrl, configured);
  } catch {
    return undefined;
  }
}

/** Some agents send frames without the JSON-RPC envelope (S4-15): such a frame is the result itself. */
function decode(response: unknown): RemoteResponse {
  const bare = typeof response === 'object' && response !== null && !('result' in response) && !('error' in response);
  return bare ? decodeRemoteEvent(response) : decodeRemoteResponse(response);
}

function parsed<T>(parse: () => T): T | undefined {
  try {
    return parse();
  } catch {
    return undefined;
  }
}

async function readJson(response: Dispatcher.ResponseData<unknown>, bytesMax: number): Promise<unknown> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of response.body as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > bytesMax) throw new A2AError('INVALID_AGENT_RESPONSE', { detail: `longer than ${bytesMax}` });
    chunks.push(chunk);
  }
  // Strips the byte order mark, which .NET and some editors write and JSON.parse refuses.
  const value = parsed<unknown>(() => JSON.parse(new TextDecoder().decode(Buffer.concat(chunks))));
  if (value === undefined) throw new AgentFault(NOT_JSON, false);
  return value;
}

function isJson({ headers }: Dispatcher.ResponseData<unknown>): boolean {
  return /^application\/([\w.-]+\+)?json\b/i.test(String(headers['content-type'] ?? ''));
}

/**
 * False for the HTML page of a proxy and for compressed bytes. Other types are read: some agents send events without a type, or
 * with a wrong one.
 */
function isReadable({ headers }: Dispatcher.ResponseData<unknown>): boolean {
  const { 'content-type': type = '', 'content-encoding': coding = 'identity' } = headers;
  return !/^text\/html\b/i.test(String(type)) && String(coding).toLowerCase() === 'identity';
}

function retryAfterOf({ headers }: Dispatcher.ResponseData<unknown>): number | undefined {
  const [value, date] = [headers['retry-after'], headers.date].map(header => [header].flat()[0]);
  return parseRetryAfter(value, date, Date.now());
}

function isRetryableStatus(status: number): boolean {
  return status >= 500 || status === 408 || status === 425 || status === 429;
}

type AgentDeadlines = Deadlines<AgentFault>;

function faultOfDeadline({ limit, ms }: MissedDeadline): AgentFault {
  return limit === 'total' ? totalFault() : silenceFault(ms);
}

/** Converts an error to a fault. The abort of the turn is rethrown with its own reason. */
function faultOf(error: unknown, deadlines: AgentDeadlines, turn: AbortSignal): Error {
  if (error instanceof AgentFault) return error;
  if (turn.aborted) return turn.reason instanceof Error ? turn.reason : new Error('aborted');
  if (deadlines.fault !== undefined) return deadlines.fault;
  if (error instanceof A2AError)
    return new AgentFault('an event of the agent is too large', false, { cause: error, word: 'too_large' });
  return new AgentFault(AGENT_UNREACHABLE, true, { cause: error });
}
