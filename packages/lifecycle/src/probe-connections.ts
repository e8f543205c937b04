import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/** Maximum number of connections that stay open. Probes and scrapers need only a few. */
export const PROBE_CONNECTIONS_MAX = 64;
/**
 * Number of connections accepted at once, before those beyond PROBE_CONNECTIONS_MAX are closed. It must exceed the 511 that a listener
 * queues.
 */
const BURST_CONNECTIONS_MAX = 1_024;

/** `new`: no complete request has arrived yet. `idle`: answered, and kept open by its client. */
type ConnectionState = 'new' | 'busy' | 'idle';

/**
 * Keeps at most PROBE_CONNECTIONS_MAX connections. Beyond that it closes the oldest one without a complete request, then the oldest idle
 * one, and only then the newest: a client that holds idle connections cannot keep probes out.
 */
export function limitProbeConnections(server: Server): void {
  server.maxConnections = BURST_CONNECTIONS_MAX;
  /** The open connections in the order of their arrival. */
  const states = new Map<Socket, ConnectionState>();
  let isQueued = false;
  const closeSurplus = () => {
    isQueued = false;
    for (let surplus = states.size - PROBE_CONNECTIONS_MAX; surplus > 0; surplus -= 1) {
      const socket = oldest('new') ?? oldest('idle') ?? [...states.keys()].at(-1)!;
      states.delete(socket);
      socket.destroy();
    }
  };
  const oldest = (wanted: ConnectionState) => [...states].find(([, state]) => state === wanted)?.[0];
  server.on('connection', (socket: Socket) => {
    states.set(socket, 'new');
    socket.once('close', () => states.delete(socket));
    if (states.size <= PROBE_CONNECTIONS_MAX || isQueued) return;
    isQueued = true;
    // Data that arrived together with a connection is read one turn of the event loop after the connection is accepted.
    setImmediate(() => setImmediate(closeSurplus));
  });
  server.on('request', ({ socket }: IncomingMessage, response: ServerResponse) => {
    if (states.has(socket)) states.set(socket, 'busy');
    response.once('close', () => {
      if (states.has(socket)) states.set(socket, 'idle');
    });
  });
}
