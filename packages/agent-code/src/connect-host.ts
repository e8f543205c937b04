import { once } from 'node:events';
import { connectAt } from '@hopline/agent-mcp/container-socket';
import type { HostLink } from './code-session.ts';

/** How long a sub-agent that starts waits for the container of its code, which may start later. */
const CONNECT_MS_MAX = 120_000;

/** Connects to the container of the code, at its Unix socket. Rejects with one sentence. */
export async function connectHost(path: string): Promise<HostLink> {
  const channel = await connectAt(path, { msMax: CONNECT_MS_MAX, name: `HOPLINE_CODE_SOCKET ${path}` });
  const closed = once(channel, 'close');
  return { channel, ended: closed.then(() => 'closed'), kill: () => void channel.destroy() };
}
