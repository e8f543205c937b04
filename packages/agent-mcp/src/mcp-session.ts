import { RemoteRunCancels, type Turn } from '@hopline/agent';
import { boundedFetch, REDIRECTS_MAX } from '@hopline/outbound-http';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { getDefaultEnvironment } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js';
import { ErrorCode, McpError, type RequestId, type Tool } from '@modelcontextprotocol/sdk/types.js';
import packageJson from '../package.json' with { type: 'json' };
import { MCP_RESPONSE_BYTES_MAX, type McpLimits, TOOLS_MAX } from './limits.ts';
import { cancelledBy, cancelRequest, isRemoteCall, keyOfCall, noteSent, type RemoteCall, serverKey } from './remote-call.ts';
import { startRemoteServer } from './remote-server.ts';
import { type ServerCommand, startServer } from './server-process.ts';
import { StdioTransport } from './stdio-transport.ts';
import { tracedFetch } from './trace-headers.ts';

export type McpServer =
  /** `socket`: of the container in which the server runs; absent: the server is a child of this process. */
  | (ServerCommand & { socket?: string })
  /** Streamable HTTP. `headers` are sent with every request. */
  | { url: string; headers?: Readonly<Record<string, string>> };

export type McpConnection = {
  client: Client;
  tools: () => readonly Tool[];
  /**
   * State that another process needs to cancel a request. Undefined if that is impossible: a server over stdio dies with its process, and
   * one without sessions has no name for a request.
   */
  callOf: (request: RequestId) => RemoteCall | undefined;
};

const CLIENT = { name: 'hopline', version: packageJson.version };
/**
 * The SDK reads a whole JSON body, and each event of a stream, into memory. The GET stream of a session lives as long as the session and is
 * read event by event, so it is unbounded. Every request uses a fresh connection: when a kept one breaks, it is unknown whether the tool of
 * a call has run.
 */
const FETCH = { bytesMax: MCP_RESPONSE_BYTES_MAX, boundedMethods: ['POST'], redirectsMax: REDIRECTS_MAX, freshConnections: true };
/** Time limit of a ping. */
const PING_MS_MAX = 5_000;

/** A connection to a server, shared by all turns, opened on first use and reopened after a loss. */
export class McpSession {
  readonly #server: McpServer;
  readonly #limits: McpLimits;
  #connection: Promise<McpConnection> | undefined;
  readonly #checking = new WeakSet<Client>();
  readonly #cancels = new RemoteRunCancels();

  constructor(server: McpServer, limits: McpLimits) {
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
   * Pings the server after a fault and closes the connection when there is no answer: pending calls end, and the next turn reconnects. Only
   * one check runs at a time, because every line of noise on a server's standard output is a fault.
   */
  async check(client: Client): Promise<void> {
    if (this.#checking.has(client)) return;
    this.#checking.add(client);
    await client.ping({ timeout: PING_MS_MAX }).catch(() => client.close());
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

  async #open(onLost: () => void): Promise<McpConnection> {
    const timeout = this.#limits.connectMsMax;
    let tools: readonly Tool[] = [];
    const refresh = async () => {
      tools = await listTools(client, timeout);
    };
    const onChanged = () => void refresh().catch(() => this.check(client));
    const client = new Client(CLIENT, { listChanged: { tools: { autoRefresh: false, onChanged } } });
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
      return { client, tools: () => tools, callOf };
    } catch (error) {
      await client.close();
      throw error;
    }
  }

  #forget(connection: Promise<McpConnection>): void {
    if (this.#connection === connection) this.#connection = undefined;
  }
}

/** The SDK's error is always named McpError, whatever went wrong; people read this name in `status`. */
function connectFault(error: unknown): unknown {
  const code = error instanceof McpError ? error.code : undefined;
  if (code === ErrorCode.RequestTimeout)
    return Object.assign(new Error('the MCP server does not answer', { cause: error }), { code: 'ETIMEDOUT' });
  if (code === ErrorCode.ConnectionClosed)
    return Object.assign(new Error('the MCP server ended before it answered', { cause: error }), { name: 'ConnectionClosed' });
  return error;
}

function transportTo(server: McpServer): Transport {
  if ('url' in server) {
    const init = server.headers === undefined ? {} : { requestInit: { headers: { ...server.headers } } };
    // The cast: the SDK types `sessionId` as optional in one place and as possibly undefined in the other.
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

async function listTools(client: Client, timeout: number): Promise<Tool[]> {
  const tools: Tool[] = [];
  let cursor: string | undefined;
  do {
    const page = await client.listTools(cursor === undefined ? {} : { cursor }, { timeout });
    tools.push(...page.tools);
    cursor = page.tools.length === 0 ? undefined : page.nextCursor;
  } while (cursor !== undefined && tools.length < TOOLS_MAX);
  return tools.slice(0, TOOLS_MAX);
}
