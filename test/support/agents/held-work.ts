import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/** A server that an agent under test calls for its work. It answers when the test releases it, and shows whether the agent still waits. */
export class HeldWork implements AsyncDisposable {
  readonly #open = new Set<ServerResponse>();
  readonly #server = createServer((_request, response) => {
    this.#open.add(response);
    response.on('close', () => this.#open.delete(response));
  });

  static async start(): Promise<HeldWork> {
    const held = new HeldWork();
    held.#server.listen(0, '127.0.0.1');
    await once(held.#server, 'listening');
    return held;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/`;
  }

  /** Requests of agents that still wait. */
  get open(): number {
    return this.#open.size;
  }

  release(): void {
    for (const response of this.#open) response.end();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
    await once(this.#server, 'close');
  }
}
