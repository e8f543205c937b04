import type { ClusterOptions } from '../support/cluster/cluster.ts';
import { type BenchCluster, type Client, startCluster } from './bench-cluster.ts';
import type { AnswerReport } from './client/answer.ts';
import { LoadProcess } from './measure/load-process.ts';
import type { Pids } from './measure/process-usage.ts';
import type { RemoteServerMethods } from './remote-server/main.ts';
import { WIRES, type WireName } from './remote-server/wires.ts';
import { ANSWER, STREAMED } from './tokens.ts';

/** A kind of remote agent. `entry`: its entry in the agents file, without the name. */
export type Remote = { wire: WireName; title: string; entry: (url: string) => Record<string, unknown> };

export const REMOTE_A2A: Remote = {
  wire: 'a2a-1.0',
  title: 'A2A 1.0, artifact updates',
  entry: url => ({ adapter: 'a2a', url: `${url}/` }),
};

/** The name of a remote agent in the agents file. */
export const agentName = ({ wire }: Remote): string => wire.replace('.', '-');

/** One agent, asked directly or through all services. */
export type Peer = { title: string; server: LoadProcess<RemoteServerMethods>; ask: AskedWith; pids: Pids };
type AskedWith = { url: string; artifact: string; wire?: WireName; agent?: string };
export type Peers = { remote: Remote; direct: Peer; through: Peer };

/** A process for each remote agent, and a cluster that has all of them. */
export async function startPeers(
  remotes: readonly Remote[],
  options: Omit<Partial<ClusterOptions>, 'agents'> = {},
): Promise<AsyncDisposable & { bench: BenchCluster; peers: Peers[] }> {
  const stack = new AsyncDisposableStack();
  const servers: { remote: Remote; server: LoadProcess<RemoteServerMethods>; url: string }[] = [];
  for (const remote of remotes) {
    const server = stack.use(new LoadProcess<RemoteServerMethods>(new URL('remote-server/main.ts', import.meta.url)));
    servers.push({ remote, server, url: await server.call('listen', { wire: remote.wire }) });
  }
  const agents = servers.map(({ remote, url }) => ({ name: agentName(remote), ...remote.entry(url) }));
  const bench = stack.use(await startCluster({ ...options, agents }));
  const peers = servers.map(({ remote, server, url }, index) => {
    const { 'sub-agent': _others, ...services } = bench.pids;
    const agent = bench.cluster.agents[index]!;
    const { wire, title } = remote;
    const direct: Peer = {
      title: `${title}: directly`,
      server,
      ask: { url: url + WIRES[wire].path, artifact: ANSWER, wire },
      pids: { 'the agent': server.pid },
    };
    const through: Peer = {
      title: `${title}: through Hopline`,
      server,
      ask: { url: bench.cluster.url, artifact: STREAMED, agent: String(agents[index]!.name) },
      pids: { 'the agent': server.pid, ...services, 'sub-agent': agent.pid },
    };
    return { remote, direct, through };
  });
  return { bench, peers, [Symbol.asyncDispose]: () => stack.disposeAsync() };
}

/** Asks `count` times, `atOnce` at a time. Throws when a text did not arrive complete. */
export async function runs(
  client: Client,
  { title, ask }: Peer,
  text: string,
  asked: { count: number; atOnce: number; tokens: number },
): Promise<AnswerReport[]> {
  const reports = await client.call('runs', { ...ask, text, ...asked });
  const lost = reports.find(({ intact }) => !intact);
  if (lost !== undefined) throw new Error(`${title}: ${lost.tokens} of ${asked.tokens} tokens arrived`);
  return reports;
}
