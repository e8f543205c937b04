import { once } from 'node:events';
import { type JSONRPCMessage, ReadBuffer, serializeMessage, type Transport } from '@modelcontextprotocol/client';
import { MCP_RESPONSE_BYTES_MAX } from './limits.ts';
import type { ServerProcess } from './server-process.ts';

/** The stdio transport of MCP. That of the SDK cannot start a server as another user or in another container. */
export class StdioTransport implements Transport {
  onclose?: () => void;
  onerror?: (error: Error) => void;
  onmessage?: (message: JSONRPCMessage) => void;
  /** The SDK recognizes a server over stdio by these two: one that does not answer `server/discover` gets `initialize`. */
  readonly stderr = null;
  readonly pid = null;
  readonly #open: () => Promise<ServerProcess>;
  readonly #received = new ReadBuffer({ maxBufferSize: MCP_RESPONSE_BYTES_MAX });
  #server: ServerProcess | undefined;

  /** `open`: starts the server. */
  constructor(open: () => Promise<ServerProcess>) {
    this.#open = open;
  }

  async start(): Promise<void> {
    const server = await this.#open();
    this.#server = server;
    const onError = (error: Error) => this.onerror?.(error);
    server.input.on('error', onError);
    server.output.on('error', onError).on('data', (chunk: Buffer) => this.#receive(chunk));
    void server.ended.then(() => {
      this.#server = undefined;
      this.onclose?.();
    });
  }

  async send(message: JSONRPCMessage): Promise<void> {
    const input = this.#server?.input;
    if (!input) throw new Error('Not connected');
    if (!input.write(serializeMessage(message))) await once(input, 'drain');
  }

  async close(): Promise<void> {
    const server = this.#server;
    this.#server = undefined;
    this.#received.clear();
    await server?.stop();
  }

  #receive(chunk: Buffer): void {
    try {
      this.#received.append(chunk);
    } catch (error) {
      this.onerror?.(error as Error);
      void this.close();
      return;
    }
    for (;;) {
      try {
        const message = this.#received.readMessage();
        if (message === null) return;
        this.onmessage?.(message);
      } catch (error) {
        this.onerror?.(error as Error);
      }
    }
  }
}
