import { freePort } from '@hopline/local-cluster';
import { authorization, type LogUser, serverUsers, userName } from '@hopline/log-jetstream';
import { type NatsProxy, startNatsProxy } from '../nats/nats-proxy.ts';
import { type NatsServer, startNats } from '../nats/nats-server.ts';
import { type Balancer, startBalancer } from './balancer.ts';
import { ServiceProcess } from './service-process.ts';

/**
 * Enough for replicas to share. A relay is ready after 0.5 CPU seconds with few shards and after 1.1 with the 256 of the product, and a run of all tests
 * starts several hundred of them.
 */
export const SHARDS = 16;

export type ClusterOptions = {
  ingresses?: number;
  /** `url` and the card's addresses are those of a round-robin balancer before the ingresses. */
  balanced?: boolean;
  relays?: number;
  supervisors?: number;
  /** Number of notifiers, default 0 because most tests have no webhooks. */
  notifiers?: number;
  /** `caipe` by default. */
  profile?: string;
  /** The ingress serves gRPC as well, at the card's address. */
  grpc?: boolean;
  /** Entries of an agents file. */
  agents: Record<string, unknown>[];
  /** A server that outlives the cluster, for clusters that share it. */
  nats?: NatsServer;
  /** Shards of a new log. `product` leaves the number to the product, which is the default on a server that may have a log. */
  shards?: number | 'product';
  /** Settings of every service. */
  env?: Record<string, string>;
  /** Gives each service its own NATS user with the least permissions; the password is the user's name. */
  users?: boolean;
  /** The services reach NATS through `natsProxy`. */
  proxied?: boolean;
  /** Base of relative paths in the agents' entries. */
  agentsFolder?: string;
};

function permissionsFor({ agents, env = {} }: ClusterOptions): string {
  const users = serverUsers(agents.map(({ name }) => String(name)));
  const groups = Number(env.HOPLINE_STREAM_GROUPS ?? 1);
  return authorization(new Map(users.map(user => [user, { text: user }])), env.HOPLINE_PREFIX, groups);
}

/** Settings with which a service, or a test, connects as a user of the cluster. */
export function loginOf(user: LogUser, env: Record<string, string> = {}): { NATS_USER: string; NATS_PASSWORD: string } {
  return { NATS_USER: userName(user, env.HOPLINE_PREFIX), NATS_PASSWORD: user };
}

/** A cluster for one test file: a real nats-server, and each service as a process. */
export class Cluster implements AsyncDisposable {
  readonly nats: NatsServer;
  readonly #ownsNats: boolean;
  readonly ingresses: ServiceProcess[] = [];
  readonly relays: ServiceProcess[] = [];
  readonly supervisors: ServiceProcess[] = [];
  readonly agents: ServiceProcess[] = [];
  readonly notifiers: ServiceProcess[] = [];
  balancer: Balancer | undefined;
  natsProxy: NatsProxy | undefined;

  private constructor(nats: NatsServer, ownsNats: boolean) {
    this.nats = nats;
    this.#ownsNats = ownsNats;
  }

  static async start(options: ClusterOptions): Promise<Cluster> {
    const config = options.users ? permissionsFor(options) : undefined;
    const nats = options.nats ?? (await startNats(config === undefined ? {} : { config }));
    const cluster = new Cluster(nats, options.nats === undefined);
    try {
      await cluster.#startServices(options);
      return cluster;
    } catch (error) {
      await cluster[Symbol.asyncDispose]();
      throw error;
    }
  }

  get url(): string {
    return this.balancer?.url ?? this.ingresses[0]!.url;
  }

  get services(): ServiceProcess[] {
    return [...this.ingresses, ...this.supervisors, ...this.agents, ...this.relays, ...this.notifiers];
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.balancer?.close();
    await Promise.all(this.services.map(service => service.kill()));
    await this.natsProxy?.close();
    if (this.#ownsNats) await this.nats.stop();
  }

  async #startServices({
    balanced = false,
    ingresses = balanced ? 2 : 1,
    relays = 1,
    supervisors = 1,
    notifiers = 0,
    profile = 'caipe',
    grpc = false,
    agents,
    shards = this.#ownsNats ? SHARDS : 'product',
    env = {},
    proxied = false,
    users = false,
    agentsFolder = '.',
  }: ClusterOptions): Promise<void> {
    if (proxied) this.natsProxy = await startNatsProxy(this.nats.port);
    const log = shards === 'product' ? {} : { HOPLINE_SHARDS: String(shards) };
    const base = { NATS_URL: this.natsProxy?.url ?? this.nats.url, ...log, ...env };
    const as = (user: LogUser) => (users ? { ...base, ...loginOf(user, env) } : base);
    await this.#add(this.relays, 'relay', relays, as('relay'));
    await this.#add(this.supervisors, 'supervisor', supervisors, as('supervisor'));
    await this.#add(this.notifiers, 'notifier', notifiers, as('notifier'));
    for (const entry of agents) {
      const settings = { ...as(`agent.${entry.name}`), HOPLINE_AGENT: JSON.stringify(entry), HOPLINE_AGENTS_DIR: agentsFolder };
      const process = new ServiceProcess(
        { service: 'sub-agent', instance: `sub-agent-${entry.name}`, env: settings },
        await freePort(),
      );
      this.agents.push(process);
    }
    await this.#addIngresses(ingresses, balanced, grpc, { ...as('ingress'), HOPLINE_PROFILE: profile });
    await Promise.all(this.services.map(service => service.start()));
  }

  async #addIngresses(count: number, balanced: boolean, grpc: boolean, env: Record<string, string>): Promise<void> {
    const replicas = await Promise.all(
      Array.from({ length: count }, async () => ({ httpPort: await freePort(), grpcPort: grpc ? await freePort() : undefined })),
    );
    if (balanced) this.balancer = await startBalancer(replicas);
    for (const [index, { httpPort, grpcPort }] of replicas.entries()) {
      const settings = {
        ...env,
        ...(grpcPort !== undefined && { HOPLINE_GRPC_PORT: `${grpcPort}` }),
        ...(this.balancer && { HOPLINE_PUBLIC_URL: `${this.balancer.url}/`, HOPLINE_GRPC_PUBLIC_URL: this.balancer.grpcUrl }),
      };
      this.ingresses.push(new ServiceProcess({ service: 'ingress', instance: `ingress-${index + 1}`, env: settings }, httpPort));
    }
  }

  async #add(list: ServiceProcess[], service: string, count: number, env: Record<string, string>): Promise<void> {
    for (let index = 1; index <= count; index++) {
      list.push(new ServiceProcess({ service, instance: `${service}-${index}`, env }, await freePort()));
    }
  }
}
