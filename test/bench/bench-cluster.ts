import { setTimeout as delay } from 'node:timers/promises';
import { Cluster, type ClusterOptions } from '../support/cluster/cluster.ts';
import type { ClientMethods } from './client/main.ts';
import { killAtExit } from './measure/kill-at-exit.ts';
import { LoadProcess } from './measure/load-process.ts';
import { children, type Pids } from './measure/process-usage.ts';
import type { ProducerMethods } from './producer/main.ts';

const CLIENT_MAIN = new URL('client/main.ts', import.meta.url);
const PRODUCER_MAIN = new URL('producer/main.ts', import.meta.url);
/** Time for start-up of the services, such as leases and compilation. */
const SETTLE_MS = 500;

/**
 * The log of every cluster of the bench. Only the test of the bench, whose figures mean nothing, gives it fewer shards than the product. With `--accounts`
 * services have users, and what the bench itself reads from the log needs no login.
 */
export const benchLog: Required<Pick<ClusterOptions, 'shards'>> & Partial<UserOptions> = { shards: 'product' };

type UserOptions = Required<Pick<ClusterOptions, 'users' | 'agentAccounts' | 'admitsAll'>>;

/** `one`: all users in one account. `agents`: each agent has an account of its own. */
export const usersOf = (form: 'one' | 'agents'): UserOptions => ({
  users: true,
  admitsAll: true,
  agentAccounts: form === 'agents',
});

export function useAccounts(form: 'one' | 'agents'): void {
  Object.assign(benchLog, usersOf(form));
}

export type Client = LoadProcess<ClientMethods>;
export type Producer = LoadProcess<ProducerMethods>;

export function startClient(): Client {
  return new LoadProcess<ClientMethods>(CLIENT_MAIN);
}

export async function startProducer(servers: string): Promise<Producer> {
  const producer = new LoadProcess<ProducerMethods>(PRODUCER_MAIN);
  await producer.call('connect', { servers });
  return producer;
}

export type BenchCluster = AsyncDisposable & {
  cluster: Cluster;
  client: Client;
  /** Process ids by service, without the client; nats-server only if the platform exposes it. */
  pids: Pids;
};

/** A cluster of real processes and one client process, all of which end with this process. */
export async function startCluster(options: ClusterOptions): Promise<BenchCluster> {
  const stack = new AsyncDisposableStack();
  const natsServers = () => children().filter(({ program }) => program === 'nats-server');
  const before = new Set(options.nats === undefined ? natsServers().map(({ pid }) => pid) : []);
  const cluster = stack.use(await Cluster.start({ relays: 1, ingresses: 1, ...benchLog, ...options }));
  const nats = natsServers().filter(({ pid }) => !before.has(pid));
  const pids: Pids = {};
  for (const { spec, pid } of cluster.services) {
    pids[spec.service] = pid;
    stack.defer(killAtExit(pid));
  }
  for (const [index, { pid }] of nats.entries()) pids[index === 0 ? 'nats-server' : `nats-server ${index + 1}`] = pid;
  const client = stack.use(startClient());
  await delay(SETTLE_MS);
  return { cluster, client, pids, [Symbol.asyncDispose]: () => stack.disposeAsync() };
}

export type DirectCluster = BenchCluster & { producer: Producer };

/** A cluster whose agent is the bench itself, without supervisor and sub-agents, so that it has only the path of a token. */
export async function startDirectCluster(env: Record<string, string> = {}): Promise<DirectCluster> {
  const bench = await startCluster({ agents: [], supervisors: 0, env });
  const stack = new AsyncDisposableStack();
  stack.use(bench);
  const producer = stack.use(await startProducer(bench.cluster.nats.url));
  const pids = { ...bench.pids, producer: producer.pid };
  return { ...bench, producer, pids, [Symbol.asyncDispose]: () => stack.disposeAsync() };
}
