import { freePort, startNats } from '../nats/nats-server.ts';
import { ServiceProcess } from './service-process.ts';

export type ClusterOptions = {
  ingresses?: number;
  relays?: number;
  supervisors?: number;
  /** None by default: most tests have no webhooks. */
  notifiers?: number;
  profile?: 'caipe' | 'transparent' | 'aion';
  /** Ingress speaks gRPC as well; the card tells where. */
  grpc?: boolean;
  /** Entries of an agents file. */
  agents: Record<string, unknown>[];
  /** Settings of every service. */
  env?: Record<string, string>;
  /** Folder that relative paths of the agents' entries start from. */
  agentsFolder?: string;
};

/** A whole cluster for one test file: a real nats-server and every service as a process. */
export class Cluster implements AsyncDisposable {
  readonly nats: Awaited<ReturnType<typeof startNats>>;
  readonly ingresses: ServiceProcess[] = [];
  readonly relays: ServiceProcess[] = [];
  readonly supervisors: ServiceProcess[] = [];
  readonly agents: ServiceProcess[] = [];
  readonly notifiers: ServiceProcess[] = [];

  private constructor(nats: Awaited<ReturnType<typeof startNats>>) {
    this.nats = nats;
  }

  static async start(options: ClusterOptions): Promise<Cluster> {
    const cluster = new Cluster(await startNats());
    try {
      await cluster.#startServices(options);
      return cluster;
    } catch (error) {
      await cluster[Symbol.asyncDispose]();
      throw error;
    }
  }

  get url(): string {
    return this.ingresses[0]!.url;
  }

  get services(): ServiceProcess[] {
    return [...this.ingresses, ...this.supervisors, ...this.agents, ...this.relays, ...this.notifiers];
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.services.map(service => service.kill()));
    await this.nats.stop();
  }

  async #startServices({
    ingresses = 1,
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
    await this.#add(this.ingresses, 'ingress', ingresses, {
      ...base,
      HOPLINE_PROFILE: profile,
      ...(grpc && { HOPLINE_GRPC_PORT: '0' }),
    });
    await Promise.all(this.services.map(service => service.start()));
  }

  async #add(list: ServiceProcess[], service: string, count: number, env: Record<string, string>): Promise<void> {
    for (let index = 1; index <= count; index++) {
      list.push(new ServiceProcess({ service, instance: `${service}-${index}`, env }, await freePort()));
    }
  }
}
