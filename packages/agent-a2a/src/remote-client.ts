import {
  A2AError,
  DIALECTS,
  decodeRemoteEvent,
  decodeRemoteResponse,
  decodeSse,
  type JsonObject,
  type Operation,
  type RemoteResponse,
  SSE_CONTENT_TYPE,
  VERSION_HEADER,
} from '@hopline/a2a';
import type { Turn } from '@hopline/agent';
import type { RemoteAgent } from '@hopline/agent-card';
import { type Dispatcher, Agent as HttpAgent } from 'undici';
import { agentOfCard, cardUrls, namesInterfaces, withoutCard } from './find-endpoint.ts';
import type { A2ALimits } from './limits.ts';
import { AgentFault, type AgentTls, NO_JSON_RPC, type Skipped, UNREACHABLE } from './options.ts';
import { requestWithin } from './request-within.ts';
import { Watch } from './watch.ts';

/** A card is asked for again after this, milliseconds: skills change. */
const CARD_MS_MAX = 30_000;
/** Fetching a card, tasks/get and tasks/cancel may take, milliseconds. */
export const CALL_MS_MAX = 10_000;
const CONNECT_MS_MAX = 5_000;
const CARD_BYTES_MAX = 1024 * 1024;
/** 0.3 called it otherwise; the form of April 2025 has no extensions, and its servers pass over the header. */
const EXTENSIONS_HEADERS = { '1.0': 'a2a-extensions', '0.3': 'x-a2a-extensions', legacy: 'x-a2a-extensions' } as const;
/** Frames that are not JSON before the agent is given up. */
const MALFORMED_MAX = 16;

export type ForeignClientOptions = {
  url: string;
  headers: Readonly<Record<string, string>>;
  extensions: readonly string[];
  tls: AgentTls;
  limits: A2ALimits;
  onSkipped: (what: Skipped) => void;
};

type Context = {
  signal: AbortSignal;
  trace: Turn['trace'];
  totalMsMax: number;
  /** Whether the agent's silence is no fault now: it waits for somebody. */
  mayBeSilent?: () => boolean;
  /** Whom `params` were written for; absent: they are the same in every dialect. */
  agent?: RemoteAgent;
};

/** Speaks JSON-RPC to one foreign agent. Every failure is an AgentFault; a connection that breaks in mid-stream just ends the stream. */
export class ForeignClient {
  readonly #options: ForeignClientOptions;
  /** Time limits are the watch's: undici's own would end a blocking send after 300 s. */
  readonly #http: HttpAgent;
  #known: { agent: RemoteAgent; untilMs: number } | undefined;

  constructor(options: ForeignClientOptions) {
    this.#options = options;
    this.#http = new HttpAgent({ headersTimeout: 0, bodyTimeout: 0, connect: { timeout: CONNECT_MS_MAX, ...options.tls } });
  }

  /** The agent as its card has it; an older card is better than none. Throws AgentFault when it cannot be reached and never could. */
  async agent(): Promise<RemoteAgent> {
    if (this.#known !== undefined && performance.now() < this.#known.untilMs) return this.#known.agent;
    try {
      const agent = await this.#findAgent();
      this.#known = { agent, untilMs: performance.now() + CARD_MS_MAX };
      return agent;
    } catch (error) {
      if (this.#known === undefined) throw error;
      return this.#known.agent;
    }
  }

  /** Asks for the card again, before its time. undefined when the agent is spoken to as before, or cannot be asked. */
  async changedFrom(agent: RemoteAgent): Promise<RemoteAgent | undefined> {
    const now = await this.#findAgent().catch(() => undefined);
    if (now === undefined) return undefined;
    this.#known = { agent: now, untilMs: performance.now() + CARD_MS_MAX };
    return now.dialect === agent.dialect && now.url === agent.url && now.tenant === agent.tenant ? undefined : now;
  }

  /** What the agent says, event by event; one whole answer counts as one event. Ends without a fault when the connection breaks after the first event. */
  async *stream(operation: 'stream' | 'subscribe', params: JsonObject, context: Context): AsyncGenerator<RemoteResponse> {
    const watch = new Watch({ ...this.#options.limits, totalMsMax: context.totalMsMax }, context.signal);
    let began = false;
    try {
      const response = await this.#post(operation, params, context, watch.signal);
      for await (const said of this.#responses(response, watch)) {
        began = true;
        watch.pause();
        yield said;
        if (context.mayBeSilent?.() !== true) watch.resume();
      }
    } catch (error) {
      const fault = faultOf(error, watch, context.signal);
      if (!began || fault.message !== UNREACHABLE) throw fault;
    } finally {
      watch.stop();
    }
  }

  /** One request and its answer. */
  async call(
    operation: Exclude<Operation, 'stream' | 'subscribe'>,
    params: JsonObject,
    context: Context,
  ): Promise<RemoteResponse> {
    const silent = { firstEventMsMax: Number.POSITIVE_INFINITY, silenceMsMax: Number.POSITIVE_INFINITY };
    const watch = new Watch({ ...silent, totalMsMax: context.totalMsMax }, context.signal);
    try {
      const response = await this.#post(operation, params, context, watch.signal);
      return await this.#answer(response);
    } catch (error) {
      throw faultOf(error, watch, context.signal);
    } finally {
      watch.stop();
    }
  }

  async close(): Promise<void> {
    await this.#http.destroy();
  }

  async #findAgent(): Promise<RemoteAgent> {
    const { url, headers } = this.#options;
    let otherwise = false;
    for (const cardUrl of cardUrls(url)) {
      const signal = AbortSignal.timeout(CALL_MS_MAX);
      const response = await requestWithin(cardUrl, { headers, dispatcher: this.#http, signal }).catch(cause => {
        throw new AgentFault(UNREACHABLE, true, { cause });
      });
      if (response.statusCode !== 200) {
        await response.body.dump();
        continue;
      }
      const card = await readJson(response, CARD_BYTES_MAX).catch(() => undefined);
      const agent = tryCard(card, cardUrl, url);
      if (agent !== undefined) return agent;
      otherwise ||= namesInterfaces(card);
    }
    if (otherwise) throw new AgentFault(NO_JSON_RPC, false);
    return withoutCard(url);
  }

  async #post(
    operation: Operation,
    params: JsonObject,
    { trace, agent }: Pick<Context, 'trace' | 'agent'>,
    signal: AbortSignal,
  ): Promise<Dispatcher.ResponseData<unknown>> {
    const { url, dialect, tenant } = agent ?? (await this.agent());
    const streams = operation === 'stream' || operation === 'subscribe';
    const { extensions } = this.#options;
    const headers = {
      ...this.#options.headers,
      ...trace,
      'content-type': 'application/json',
      accept: streams ? `${SSE_CONTENT_TYPE}, application/json` : 'application/json',
      ...(dialect === '1.0' && { [VERSION_HEADER]: dialect }),
      ...(extensions.length > 0 && { [EXTENSIONS_HEADERS[dialect]]: extensions.join(', ') }),
    };
    const method = DIALECTS[dialect].methods[operation];
    const body = JSON.stringify({
      jsonrpc: '2.0',
      id: 1,
      method,
      params: { ...params, ...(tenant !== undefined && { tenant }) },
    });
    return await requestWithin(url, { method: 'POST', headers, body, dispatcher: this.#http, signal });
  }

  /** A whole answer. Some servers answer with an HTTP error and the JSON-RPC error in its body, some with the HTTP error alone. */
  async #answer(response: Dispatcher.ResponseData<unknown>): Promise<RemoteResponse> {
    const { statusCode } = response;
    const failed = new AgentFault(`the agent answered with HTTP ${statusCode}`, isRetryableStatus(statusCode));
    if (statusCode !== 200 && !isJson(response)) {
      await response.body.dump();
      throw failed;
    }
    const said = decode(await readJson(response, this.#options.limits.eventBytesMax));
    if (statusCode !== 200 && !('error' in said)) throw failed;
    return said;
  }

  async *#responses(response: Dispatcher.ResponseData<unknown>, watch: Watch): AsyncGenerator<RemoteResponse> {
    if (response.statusCode !== 200 || isJson(response)) return yield await this.#answer(response);
    if (!isReadable(response)) {
      await response.body.dump();
      throw new AgentFault('the agent answered with neither events nor JSON', false);
    }
    let malformed = 0;
    for await (const { data } of decodeSse(touching(response.body, watch), this.#options.limits.eventBytesMax)) {
      const value = parseJson(data);
      if (value !== undefined) {
        yield decode(value);
        continue;
      }
      this.#options.onSkipped('malformed frame');
      malformed += 1;
      if (malformed > MALFORMED_MAX) throw new AgentFault('the agent sends what is not JSON', false);
    }
  }
}

function tryCard(card: unknown, cardUrl: string, configured: string): RemoteAgent | undefined {
  try {
    return agentOfCard(card, cardUrl, configured);
  } catch {
    return undefined;
  }
}

async function* touching(body: AsyncIterable<Uint8Array>, watch: Watch): AsyncGenerator<Uint8Array> {
  for await (const chunk of body) {
    watch.touch();
    yield chunk;
  }
}

/** Frames without the JSON-RPC envelope are seen in the field (S4-15): the frame is the result then. */
function decode(response: unknown): RemoteResponse {
  const bare = typeof response === 'object' && response !== null && !('result' in response) && !('error' in response);
  return bare ? decodeRemoteEvent(response) : decodeRemoteResponse(response);
}

function parseJson(data: string): unknown {
  try {
    return JSON.parse(data);
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
  const value = parseJson(Buffer.concat(chunks).toString('utf8'));
  if (value === undefined) throw new AgentFault('the agent sends what is not JSON', false);
  return value;
}

function isJson({ headers }: Dispatcher.ResponseData<unknown>): boolean {
  return /^application\/([\w.-]+\+)?json\b/i.test(String(headers['content-type'] ?? ''));
}

/** A page of a proxy or of somebody else's server, or bytes that nobody asked to be compressed. Agents exist whose events have no type, or a wrong one. */
function isReadable({ headers }: Dispatcher.ResponseData<unknown>): boolean {
  const { 'content-type': type = '', 'content-encoding': coding = 'identity' } = headers;
  return !/^text\/html\b/i.test(String(type)) && String(coding).toLowerCase() === 'identity';
}

function isRetryableStatus(status: number): boolean {
  return status >= 500 || status === 408 || status === 425 || status === 429;
}

/** What was thrown, as a fault; the turn's own abort stays what it is. */
function faultOf(error: unknown, watch: Watch, turn: AbortSignal): Error {
  if (error instanceof AgentFault) return error;
  if (turn.aborted) return turn.reason instanceof Error ? turn.reason : new Error('aborted');
  if (watch.fault !== undefined) return watch.fault;
  if (error instanceof A2AError) return new AgentFault('an event of the agent is too large', false, { cause: error });
  return new AgentFault(UNREACHABLE, true, { cause: error });
}
