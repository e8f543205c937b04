import { chmodSync, rmSync } from 'node:fs';
import { createServer, type Socket } from 'node:net';
import { type HostProcess, type HostProcessOptions, spawnHost } from './host-process.ts';

export type HostListener = {
  /** Takes no further sub-agent, and resolves when the host has ended. */
  close(): Promise<void>;
};

/** A socket accepts connections of those who may write to it: its user, and its group, which is how a sub-agent with another user connects. */
const OWNER_AND_GROUP = 0o660;

/** Starts a host for each sub-agent that connects to the socket at `path`, and kills the one before: an agent has one sub-agent. */
export async function serveHosts(path: string, options: HostProcessOptions): Promise<HostListener> {
  // A container that starts again finds the socket of its predecessor.
  rmSync(path, { force: true });
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
  const { promise: listening, resolve, reject } = Promise.withResolvers<void>();
  server.once('error', reject).listen(path, resolve);
  await listening;
  chmodSync(path, OWNER_AND_GROUP);
  return {
    close: async () => {
      server.close();
      await host?.ended;
    },
  };
}
