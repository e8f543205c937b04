import { once } from 'node:events';
import { chmodSync, rmSync } from 'node:fs';
import { connect, type Server, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';

/** The Unix sockets between a sub-agent and the container of its code (ADR 154, ADR 166). */

/**
 * A socket accepts connections from processes that may write to it: those of its user and of its group. A sub-agent with another user
 * connects through the group.
 */
const OWNER_AND_GROUP = 0o660;
const RETRY_MS = 100;

/** Listens on the socket, and replaces a file that an earlier start of the container left there. */
export async function listenAt(path: string, server: Server): Promise<void> {
  rmSync(path, { force: true });
  const { promise: listening, resolve, reject } = Promise.withResolvers<void>();
  server.once('error', reject).listen(path, resolve);
  await listening;
  chmodSync(path, OWNER_AND_GROUP);
}

/**
 * Connects to the socket, and waits up to `msMax` for a container that starts later. Rejects with one sentence, which names the socket
 * `name`.
 */
export async function connectAt(path: string, { msMax, name = path }: { msMax: number; name?: string }): Promise<Socket> {
  const until = performance.now() + msMax;
  for (;;) {
    const connection = connect(path);
    try {
      await once(connection, 'connect');
      return connection;
    } catch (error) {
      connection.destroy();
      if (performance.now() > until) throw new Error(`nothing listens at ${name}`, { cause: error });
      await sleep(RETRY_MS);
    }
  }
}
