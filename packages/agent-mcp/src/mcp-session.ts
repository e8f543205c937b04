import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js';
import type { Tool } from '@modelcontextprotocol/sdk/types.js';
import packageJson from '../package.json' with { type: 'json' };
import { boundedFetch } from './bounded-fetch.ts';
import { type McpLimits, RESPONSE_BYTES_MAX, TOOLS_MAX } from './limits.ts';

export type McpServer =
  /** Started as a child process, spoken to over stdio. It inherits HOME, LOGNAME, PATH, SHELL, TERM and USER, and gets `env` on top. */
  | { command: string; args?: readonly string[]; env?: Readonly<Record<string, string>>; cwd?: string }
  /** Streamable HTTP. `headers` go with every request. */
  | { url: string; headers?: Readonly<Record<string, string>> };

export type McpConnection = { client: Client; tools: () => readonly Tool[] };

const CLIENT = { name: 'hopline', version: packageJson.version };
/** An alive server answers a ping within this; milliseconds. */
const PING_MS_MAX = 5_000;

/** One connection to a server, shared by all turns, made on first need and again after it was lost. */
export class McpSession {
  readonly #server: McpServer;
  readonly #limits: McpLimits;
  #connection: Promise<McpConnection> | undefined;
  readonly #checking = new WeakSet<Client>();

  constructor(server: McpServer, limits: McpLimits) {
    this.#server = server;
    this.#limits = limits;
  }

  /** Rejects when the server cannot be started or reached; the next call tries again. */
  connect(): Promise<McpConnection> {
    if (this.#connection !== undefined) return this.#connection;
    const connection = this.#open(() => this.#forget(connection));
    this.#connection = connection;
    connection.catch(() => this.#forget(connection));
    return connection;
  }

  /**
   * After a fault: a server that does not even answer a ping is given up, which ends the calls that wait for it, and the next turn gets a new one.
   * One check at a time: a server that prints noise on its standard output is a fault per line.
   */
  async check(client: Client): Promise<void> {
    if (this.#checking.has(client)) return;
    this.#checking.add(client);
    await client.ping({ timeout: PING_MS_MAX }).catch(() => client.close());
    this.#checking.delete(client);
  }

  async close(): Promise<void> {
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
    await client.connect(transportTo(this.#server), { timeout });
    client.onclose = onLost;
    client.onerror = () => void this.check(client);
    try {
      await refresh();
      return { client, tools: () => tools };
    } catch (error) {
      await client.close();
      throw error;
    }
  }

  #forget(connection: Promise<McpConnection>): void {
    if (this.#connection === connection) this.#connection = undefined;
  }
}

function transportTo(server: McpServer): Transport {
  if ('url' in server) {
    const init = server.headers === undefined ? {} : { requestInit: { headers: { ...server.headers } } };
    // The SDK types `sessionId` as optional in one place and as undefined in the other; they mean the same.
    return new StreamableHTTPClientTransport(new URL(server.url), {
      ...init,
      fetch: boundedFetch(RESPONSE_BYTES_MAX),
    }) as Transport;
  }
  return new StdioClientTransport({
    command: server.command,
    args: [...(server.args ?? [])],
    ...(server.env && { env: { ...server.env } }),
    ...(server.cwd !== undefined && { cwd: server.cwd }),
    // Whatever the child prints there may hold content: it never reaches our log.
    stderr: 'ignore',
    maxBufferSize: RESPONSE_BYTES_MAX,
  });
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
