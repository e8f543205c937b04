import { freePort } from '@hopline/local-cluster';
import { type Balancer, startBalancer } from '../support/cluster/balancer.ts';
import { ServiceProcess } from '../support/cluster/service-process.ts';
import { type NatsServer, startNats } from '../support/nats/nats-server.ts';

/** Processes of each service and agent, so that one of them can restart while its sibling works. */
const REPLICAS = 2;
/** Small enough that retention removes records from the first minutes on. */
const STREAM_BYTES_MAX = 256 * 1024 * 1024;
const SETTINGS = {
  HOPLINE_TASKS_BYTES_MAX: String(STREAM_BYTES_MAX),
  HOPLINE_INPUTS_BYTES_MAX: String(STREAM_BYTES_MAX),
  HOPLINE_WORK_BYTES_MAX: String(STREAM_BYTES_MAX),
};

/** One nats-server, two processes of each service, an agent that both processes of `talker` ask, and a balancer before the ingresses. */
export class SoakCluster implements AsyncDisposable {
  /** The processes that restart in turn. Siblings do not follow each other. */
  readonly replicas: readonly ServiceProcess[];
  readonly nats: NatsServer;
  /** Address of the monitoring port of nats-server. */
  readonly natsMonitor: string;
  readonly #agent: ServiceProcess;
  readonly #balancer: Balancer;

  private constructor(parts: {
    replicas: ServiceProcess[];
    nats: NatsServer;
    natsMonitor: string;
    agent: ServiceProcess;
    balancer: Balancer;
  }) {
    this.replicas = parts.replicas;
    this.nats = parts.nats;
    this.natsMonitor = parts.natsMonitor;
    this.#agent = parts.agent;
    this.#balancer = parts.balancer;
  }

  static async start(shards?: number): Promise<SoakCluster> {
    const monitor = await freePort();
    const nats = await startNats({ config: `http: "127.0.0.1:${monitor}"` });
    const program = { path: 'test/soak/agent.ts', readyPath: '/.well-known/agent-card.json' };
    const agent = new ServiceProcess({ service: 'agent', instance: 'agent', env: {}, program }, await freePort());
    const env = { NATS_URL: nats.url, ...SETTINGS, ...(shards !== undefined && { HOPLINE_SHARDS: String(shards) }) };
    const ingressPorts = [await freePort(), await freePort()];
    const balancer = await startBalancer(ingressPorts.map(httpPort => ({ httpPort })));
    const replicas: ServiceProcess[] = [];
    for (let number = 0; number < REPLICAS; number += 1) {
      const service = async (name: string, more: Record<string, string> = {}, port?: number) =>
        replicas.push(
          new ServiceProcess(
            { service: name, instance: `${name}-${number + 1}`, env: { ...env, ...more } },
            port ?? (await freePort()),
          ),
        );
      await service('relay');
      await service('supervisor');
      await service('sub-agent', { HOPLINE_AGENT: agentEntry('talker', agent.url) });
      await service('notifier');
      await service('ingress', { HOPLINE_PUBLIC_URL: `${balancer.url}/` }, ingressPorts[number]);
    }
    const cluster = new SoakCluster({ replicas, nats, natsMonitor: `http://127.0.0.1:${monitor}`, agent, balancer });
    try {
      await agent.start();
      await Promise.all(replicas.map(replica => replica.start()));
      return cluster;
    } catch (error) {
      await cluster[Symbol.asyncDispose]();
      throw error;
    }
  }

  get url(): string {
    return `${this.#balancer.url}/`;
  }

  /** An agent of another name that joins the cluster for a while; not started yet. */
  async visitor(name: string): Promise<ServiceProcess> {
    const env = { NATS_URL: this.nats.url, ...SETTINGS, HOPLINE_AGENT: agentEntry(name, this.#agent.url) };
    return new ServiceProcess({ service: 'sub-agent', instance: name, env }, await freePort());
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([...this.replicas, this.#agent].map(process => process.kill()));
    await this.#balancer.close();
    await this.nats.stop();
  }
}

const agentEntry = (name: string, url: string) => JSON.stringify({ name, adapter: 'a2a', url: `${url}/` });
