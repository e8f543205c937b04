import { createServer, type Socket } from 'node:net';
import { listenAt } from '@hopline/agent-mcp/container-socket';
import { type HostProcess, type HostProcessOptions, spawnHost } from './host-process.ts';

/** The socket at which the container of the code starts MCP servers, next to the socket for hosts. */
export function mcpSocketOf(hostSocket: string): string {
  return `${hostSocket}.mcp`;
}

type HostListener = {
  /** Takes no further sub-agent, and resolves when the host has ended. */
  close(): Promise<void>;
};

/**
 * Starts a host for each sub-agent that connects to the socket at `path`, and kills the previous host, because an agent has only one
 * sub-agent.
 */
export async function serveHosts(path: string, options: HostProcessOptions): Promise<HostListener> {
  let host: HostProcess | undefined;
  const server = createServer({ pauseOnConnect: true }, (socket: Socket) => {
    host?.kill();
    const started = spawnHost(options, socket);
    host = started;
    // The child has its own copy.
    socket.destroy();
    void started.ended.then(() => {
      if (host === started) host = undefined;
    });
  });
  await listenAt(path, server);
  return {
    close: async () => {
      server.close();
      await host?.ended;
    },
  };
}
