import { connect, createServer, type Server } from 'node:net';
import { LaunchError } from './launch-error.ts';

export const HOST = '127.0.0.1';
const CONNECT_MS_MAX = 300;

/** Throws a LaunchError when the port is in use or cannot be bound. */
export async function requireFreePort(port: number, host: string = HOST): Promise<void> {
  const fault = (await bindFault(port, host)) ?? ((await acceptsConnections(port)) ? 'EADDRINUSE' : null);
  if (fault === null) return;
  if (fault === 'EADDRNOTAVAIL' || fault === 'ENOTFOUND')
    throw new LaunchError(
      `HOPLINE_HOST is ${host}, which is not an address of this machine (${fault}); use 127.0.0.1, 0.0.0.0 or one of its addresses`,
    );
  const reason = fault === 'EADDRINUSE' ? 'is in use' : `cannot be opened (${fault})`;
  const other = port < 65_535 ? port + 1 : port - 1;
  throw new LaunchError(`port ${port} ${reason}; stop what uses it or choose another: npm start -- --port ${other}`);
}

export async function isPortFree(port: number): Promise<boolean> {
  return (await bindFault(port)) === null;
}

/** The address of a listener in a URL that this machine can open. A wildcard address is reached through loopback. */
export function urlHost(host: string): string {
  if (host === '0.0.0.0') return HOST;
  if (host === '::') return '[::1]';
  return host.includes(':') && !host.startsWith('[') ? `[${host}]` : host;
}

async function bindFault(port: number, host = HOST): Promise<string | null> {
  try {
    await close(await listen(port, host));
    return null;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code ?? 'unknown';
  }
}

/** macOS allows binding 127.0.0.1 alongside a server that listens on all addresses; only a connection detects that server. */
function acceptsConnections(port: number): Promise<boolean> {
  return new Promise(resolve => {
    const socket = connect({ port, host: HOST, timeout: CONNECT_MS_MAX });
    const settle = (accepted: boolean) => {
      socket.destroy();
      resolve(accepted);
    };
    socket
      .once('connect', () => settle(true))
      .once('error', () => settle(false))
      .once('timeout', () => settle(false));
  });
}

function listen(port: number, host = HOST): Promise<Server> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', reject).listen(port, host, () => resolve(server));
  });
}

function close(server: Server): Promise<void> {
  return new Promise(resolve => server.close(() => resolve()));
}
