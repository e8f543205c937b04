import { freePort, type NatsServer, startNats } from '../nats/nats-server.ts';
import { type Balancer, startBalancer } from './balancer.ts';
import { ServiceProcess } from './service-process.ts';

export type ClusterOptions = {
  ingresses?: number;
  /** `url` and the card's addresses are those of a round-robin balancer before the ingresses. */
  balanced?: boolean;
  relays?: number;
  supervisors?: number;
  /** Default 0: most tests have no webhooks. */
  notifiers?: number;
  /** `caipe` by default. */
  profile?: string;
  /** The ingress serves gRPC as well, at the card's address. */
  grpc?: boolean;
  /** Entries of an agents file. */
  agents: Record<string, unknown>[];
  /** A server that outlives the cluster, for clusters that share one. */
  nats?: NatsServer;
  /** Settings of every service. */
  env?: Record<string, string>;
  /** Base of relative paths in the agents' entries. */
  agentsFolder?: string;
};

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

  private constructor(nats: NatsServer, ownsNats: boolean) {
    this.nats = nats;
    this.#ownsNats = ownsNats;
  }

  static async start(options: ClusterOptions): Promise<Cluster> {
    const cluster = new Cluster(options.nats ?? (await startNats()), options.nats === undefined);
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
    env = {},
    agentsFolder = '.',
  }: ClusterOptions): Promise<void> {
    const base = { NATS_URL: this.nats.url, ...env };
    await this.#add(this.relays, 'relay', relays, base);
    await this.#add(this.supervisors, 'supervisor', supervisors, base);
    await this.#add(this.notifiers, 'notifier', notifiers, base);
    for (const entry of agents) {
      const settings = { ...base, HOPLINE_AGENT: JSON.stringify(entry), HOPLINE_AGENTS_DIR: agentsFolder };
      const process = new ServiceProcess(
        { service: 'sub-agent', instance: `sub-agent-${entry.name}`, env: settings },
        await freePort(),
      );
      this.agents.push(process);
    }
    await this.#addIngresses(ingresses, balanced, grpc, { ...base, HOPLINE_PROFILE: profile });
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
