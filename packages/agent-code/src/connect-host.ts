import { once } from 'node:events';
import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import type { HostLink } from './code-session.ts';

/** How long a sub-agent that starts waits for the container of its code, which may start later. */
const CONNECT_MS_MAX = 120_000;
const RETRY_MS = 200;

/** Connects to the container of the code, at its Unix socket. Rejects with one sentence. */
export async function connectHost(path: string): Promise<HostLink> {
  const until = performance.now() + CONNECT_MS_MAX;
  for (;;) {
    const channel = connect(path);
    try {
      await once(channel, 'connect');
      const closed = once(channel, 'close');
      return { channel, ended: closed.then(() => 'closed'), kill: () => void channel.destroy() };
    } catch (error) {
      channel.destroy();
      if (performance.now() > until) throw new Error(`nothing listens at HOPLINE_CODE_SOCKET ${path}`, { cause: error });
      await sleep(RETRY_MS);
    }
  }
}
