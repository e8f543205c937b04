import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/** Connections that stay open: probes and scrapers need few. */
export const PROBE_CONNECTIONS_MAX = 64;
/** Connections of one moment, until those beyond PROBE_CONNECTIONS_MAX are closed. Above the 511 that a listener queues. */
const BURST_CONNECTIONS_MAX = 1_024;

/** `new`: without a whole request so far. `idle`: answered, and kept open by its client. */
type ConnectionState = 'new' | 'busy' | 'idle';

/**
 * Keeps at most PROBE_CONNECTIONS_MAX connections. Beyond it the oldest one without a whole request is closed, then the oldest idle one,
 * and only then the newest: a client that holds connections without asking anything keeps no probe out.
 */
export function limitProbeConnections(server: Server): void {
  server.maxConnections = BURST_CONNECTIONS_MAX;
  /** In the order of their arrival. */
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
    // What has arrived with a connection is read one turn of the event loop after its acceptance.
    setImmediate(() => setImmediate(closeSurplus));
  });
  server.on('request', ({ socket }: IncomingMessage, response: ServerResponse) => {
    if (states.has(socket)) states.set(socket, 'busy');
    response.once('close', () => {
      if (states.has(socket)) states.set(socket, 'idle');
    });
  });
}
