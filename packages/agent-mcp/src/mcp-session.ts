import { RemoteRunCancels, type Turn } from '@hopline/agent';
import { boundedFetch, REDIRECTS_MAX } from '@hopline/outbound-http';
import {
  Client,
  ProtocolError,
  ProtocolErrorCode,
  type RequestId,
  SdkError,
  SdkErrorCode,
  StreamableHTTPClientTransport,
  type Tool,
  type Transport,
} from '@modelcontextprotocol/client';
import { getDefaultEnvironment } from '@modelcontextprotocol/client/stdio';
import packageJson from '../package.json' with { type: 'json' };
import { MCP_RESPONSE_BYTES_MAX, type McpLimits } from './limits.ts';
import { OpenCalls } from './open-calls.ts';
import { cancelledBy, cancelRequest, isRemoteCall, keyOfCall, noteSent, type RemoteCall, serverKey } from './remote-call.ts';
import { startRemoteServer } from './remote-server.ts';
import { type ServerCommand, startServer } from './server-process.ts';
import { StdioTransport } from './stdio-transport.ts';
import { tracedFetch } from './trace-headers.ts';

export type McpServer =
  /** `socket`: the socket of the container in which the server runs. Absent: the server is a child of this process. */
  | (ServerCommand & { socket?: string })
  /** Streamable HTTP. `headers` are sent with every request. */
  | { url: string; headers?: Readonly<Record<string, string>> };

export type McpConnection = {
  client: Client;
  tools: () => readonly Tool[];
  calls: OpenCalls;
  /**
   * State that another process needs to cancel a request. Undefined if that is impossible: a server over stdio dies with its process, and
   * one without sessions has no name for a request.
   */
  callOf: (request: RequestId) => RemoteCall | undefined;
};

const CLIENT = { name: 'hopline', version: packageJson.version };
/**
 * The SDK reads a whole JSON body, and each event of a stream, into memory. The GET stream of a session lives as long as the session and is
 * read event by event, so it is unbounded. Every request uses a fresh connection, because when a kept one breaks, it is unknown whether the
 * tool of a call has run.
 */
const FETCH = { bytesMax: MCP_RESPONSE_BYTES_MAX, boundedMethods: ['POST'], redirectsMax: REDIRECTS_MAX, freshConnections: true };
/** Time limit of a ping. */
const PING_MS_MAX = 5_000;

/** A connection to a server, shared by all turns, opened on first use and reopened after a loss. */
export class McpSession {
  /** Servers may ask the user: their questions end a call with ToolAsked. */
  readonly offersQuestions: boolean;
  readonly #server: McpServer;
  readonly #limits: McpLimits;
  #connection: Promise<McpConnection> | undefined;
  readonly #checking = new WeakSet<Client>();
  readonly #cancels = new RemoteRunCancels();
  /** The server has asked a question while several calls were open, so its next connection runs only one call at a time. */
  #isSequential = false;

  constructor(server: McpServer, limits: McpLimits, { offersQuestions = false } = {}) {
    this.offersQuestions = offersQuestions;
    this.#server = server;
    this.#limits = limits;
  }

  /** Rejects when the server cannot be started or reached; the next call tries again. */
  connect(): Promise<McpConnection> {
    if (this.#connection !== undefined) return this.#connection;
    const connection = this.#open(() => this.#forget(connection)).catch(error => Promise.reject(connectFault(error)));
    this.#connection = connection;
    connection.catch(() => this.#forget(connection));
    return connection;
  }

  /**
   * Pings the server after a fault. If there is no answer, closes the connection: pending calls end, and the next turn reconnects. Only one
   * check runs at a time, because every line of noise on a server's standard output is a fault.
   */
  async check(client: Client): Promise<void> {
    if (this.#checking.has(client)) return;
    this.#checking.add(client);
    // MCP 2026-07-28 has no ping.
    const isModern = client.getProtocolEra() === 'modern';
    const options = { timeout: PING_MS_MAX };
    await (isModern ? client.discover(options) : client.ping(options)).catch(() => client.close());
    this.#checking.delete(client);
  }

  /** Cancels a call of this server that some process has begun. See `Agent.cancelRemoteRun`. */
  async cancelCall(call: unknown, trace: Turn['trace']): Promise<void> {
    if (!('url' in this.#server) || !isRemoteCall(call) || call.server !== serverKey(this.#server.url)) return;
    await this.#cancels.cancel(keyOfCall(call), cancelRequest(this.#server, call, trace));
  }

  /** Forgets a call that has ended by itself. */
  callEnded(call: RemoteCall): void {
    this.#cancels.ended(keyOfCall(call));
  }

  async close(): Promise<void> {
    this.#cancels.close();
    const open = await this.#connection?.catch(() => undefined);
    await open?.client.close();
  }

  /**
   * Asks the server for its revision, as MCP 2026-07-28 defines it. An earlier server may end or fail if its first request is not
   * `initialize`; in that case it gets `initialize`.
   */
  async #open(onLost: () => void): Promise<McpConnection> {
    try {
      return await this.#openAs('auto', onLost);
    } catch (error) {
      if (!(error instanceof SdkError) || error.code !== SdkErrorCode.EraNegotiationFailed) throw error;
      return await this.#openAs('legacy', onLost);
    }
  }

  async #openAs(mode: 'auto' | 'legacy', onLost: () => void): Promise<McpConnection> {
    const timeout = this.#limits.connectMsMax;
    let tools: readonly Tool[] = [];
    const refresh = async () => {
      tools = await listTools(client, timeout);
    };
    const onChanged = () => void refresh().catch(() => this.check(client));
    const client = new Client(CLIENT, {
      versionNegotiation: { mode },
      listChanged: { tools: { autoRefresh: false, onChanged } },
      ...(this.offersQuestions && { capabilities: { elicitation: { form: {} } } }),
    });
    const calls = new OpenCalls({
      isSequential: this.#isSequential,
      onUnmatched: () => {
        this.#isSequential = true;
        onLost();
        void client.close();
      },
    });
    this.#answerRequests(client, calls);
    const transport = transportTo(this.#server);
    const callOf = (request: RequestId) => remoteCall(this.#server, transport, request);
    const send = transport.send.bind(transport);
    transport.send = async (message, options) => {
      const cancelled = cancelledBy(message);
      const call = cancelled === undefined ? undefined : callOf(cancelled);
      // The SDK would send the cancellation only once.
      if (call !== undefined && 'url' in this.#server)
        return await this.#cancels.begin(keyOfCall(call), cancelRequest(this.#server, call, {}));
      noteSent(message);
      await send(message, options);
    };
    await client.connect(transport, { timeout });
    client.onclose = onLost;
    client.onerror = () => void this.check(client);
    try {
      await refresh();
      return { client, tools: () => tools, calls, callOf };
    } catch (error) {
      await client.close();
      throw error;
    }
  }

  /** Answers the requests of a server before MCP 2026-07-28. The SDK refuses a question that the user would answer on a page. */
  #answerRequests(client: Client, calls: OpenCalls): void {
    if (this.offersQuestions)
      client.setRequestHandler('elicitation/create', ({ params }) => {
        const answer = params.mode === 'url' ? undefined : calls.answer(params);
        if (answer === undefined) throw refusal('this client answers questions only during a call');
        return answer;
      });
    client.fallbackRequestHandler = async ({ method }) => {
      if (method === 'sampling/createMessage') throw refusal('this client offers no sampling: a server calls a model itself');
      throw refusal(`this client does not offer ${method}`);
    };
  }

  #forget(connection: Promise<McpConnection>): void {
    if (this.#connection === connection) this.#connection = undefined;
  }
}

const refusal = (sentence: string) => new ProtocolError(ProtocolErrorCode.MethodNotFound, sentence);

/** People read the name or the code of this error in `status`, and those of the SDK would mean little to them. */
function connectFault(error: unknown): unknown {
  const code = error instanceof SdkError ? error.code : undefined;
  if (code === SdkErrorCode.RequestTimeout)
    return Object.assign(new Error('the MCP server does not answer', { cause: error }), { code: 'ETIMEDOUT' });
  if (code === SdkErrorCode.ConnectionClosed)
    return Object.assign(new Error('the MCP server ended before it answered', { cause: error }), { name: 'ConnectionClosed' });
  return error;
}

function transportTo(server: McpServer): Transport {
  if ('url' in server) {
    const init = server.headers === undefined ? {} : { requestInit: { headers: { ...server.headers } } };
    return new StreamableHTTPClientTransport(new URL(server.url), {
      ...init,
      fetch: tracedFetch(boundedFetch(FETCH)),
    }) as Transport;
  }
  const { socket, user, ...command } = server;
  if (socket !== undefined) return new StdioTransport(() => startRemoteServer(socket, command));
  return new StdioTransport(() => startServer({ ...command, ...(user && { user }) }, getDefaultEnvironment()));
}

function remoteCall(server: McpServer, transport: Transport, request: RequestId): RemoteCall | undefined {
  const { sessionId: session } = transport;
  if (session === undefined || !('url' in server)) return undefined;
  const protocol = transport instanceof StreamableHTTPClientTransport ? transport.protocolVersion : undefined;
  return { server: serverKey(server.url), session, request, ...(protocol !== undefined && { protocol }) };
}

async function listTools(client: Client, timeout: number): Promise<readonly Tool[]> {
  // The SDK prints a line where a server has no tools.
  if (client.getServerCapabilities()?.tools === undefined) return [];
  const { tools } = await client.listTools(undefined, { timeout, cacheMode: 'refresh' });
  return tools;
}
