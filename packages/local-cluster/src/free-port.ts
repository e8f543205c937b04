import { createServer, type Server } from 'node:net';

/**
 * First port of the range. It is below the ports that Linux (32768), macOS and Windows (49152) choose for outgoing connections and for
 * `listen(0)`, so that a returned port stays free until its process binds it.
 */
const FIRST = 12_000;
const END = 32_000;
const BLOCK = 50;
const HOST = '127.0.0.1';

let block: Promise<{ next: number; end: number }> | undefined;

/**
 * Returns a loopback port that no other caller on this machine gets. Each process reserves blocks of ports, as Consul's `freeport` does:
 * the first port of a block stays bound until the process ends, which keeps other processes out of the block. A process never gets the same
 * port twice.
 */
export async function freePort(): Promise<number> {
  for (;;) {
    block ??= takeBlock();
    const taken = block;
    const ports = await taken;
    const port = ports.next++;
    if (port < ports.end) {
      if (await isFree(port)) return port;
    } else if (block === taken) block = undefined;
  }
}

async function takeBlock(): Promise<{ next: number; end: number }> {
  const blocks = Math.floor((END - FIRST) / BLOCK);
  const start = Math.floor(Math.random() * blocks);
  for (let offset = 0; offset < blocks; offset++) {
    const first = FIRST + ((start + offset) % blocks) * BLOCK;
    const lock = await bind(first);
    if (!lock) continue;
    lock.unref();
    return { next: first + 1, end: first + BLOCK };
  }
  throw new Error(`no block of free ports from ${FIRST} to ${END}`);
}

async function isFree(port: number): Promise<boolean> {
  const server = await bind(port);
  if (!server) return false;
  await new Promise(resolve => server.close(resolve));
  return true;
}

function bind(port: number): Promise<Server | undefined> {
  return new Promise((resolve, reject) => {
    const server = createServer(socket => socket.destroy());
    server.once('error', (error: NodeJS.ErrnoException) => {
      if (error.code === 'EADDRINUSE' || error.code === 'EACCES') resolve(undefined);
      else reject(error);
    });
    server.listen(port, HOST, () => resolve(server));
  });
}
