import { freePort } from '@hopline/local-cluster';
import { ADMIN, accounts, authorization, type LogUser, openJetStreamLog, serverUsers, userName } from '@hopline/log-jetstream';
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
  /** `url` and the card's addresses are those of a round-robin balancer in front of the ingresses. */
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
  /** Shards of a new log. `product` leaves the number to the product; it is the default for a server that may already have a log. */
  shards?: number | 'product';
  /** Settings of every service. */
  env?: Record<string, string>;
  /** Gives each service its own NATS user with the least permissions; the password is the user's name. */
  users?: boolean;
  /** With `users`: each agent has an account of its own. */
  agentAccounts?: boolean;
  /** With `users`: connections without a login are those of the admin. */
  admitsAll?: boolean;
  /** The services reach NATS through `natsProxy`. */
  proxied?: boolean;
  /** Base of relative paths in the agents' entries. */
  agentsFolder?: string;
};

/** What the configuration of nats-server needs for the users of a cluster; nothing if it has none. */
export function usersConfig({
  users: hasUsers = false,
  agents,
  agentAccounts = false,
  admitsAll = false,
  env = {},
}: ClusterOptions): string {
  if (!hasUsers) return '';
  const users = serverUsers(agents.map(({ name }) => String(name)));
  const groups = Number(env.HOPLINE_STREAM_GROUPS ?? 1);
  const passwords = new Map(users.map(user => [user, { text: user }]));
  const config = (agentAccounts ? accounts : authorization)(passwords, { prefix: env.HOPLINE_PREFIX, groups });
  return admitsAll ? `no_auth_user: "${userName(ADMIN, env.HOPLINE_PREFIX)}"\n${config}` : config;
}

/** Settings with which a service, or a test, connects as a user of the cluster. */
export function loginOf(user: LogUser, env: Record<string, string> = {}): { NATS_USER: string; NATS_PASSWORD: string } {
  return { NATS_USER: userName(user, env.HOPLINE_PREFIX), NATS_PASSWORD: user };
}

/** Options of a cluster that files share. */
export type SharedClusterOptions = Pick<ClusterOptions, 'agents' | 'agentsFolder' | 'balanced' | 'env' | 'profile'> & {
  /** Relays, and ingresses of the profile. The second of each starts with the first file that needs it. Default: two if `balanced`, else one. */
  replicas?: 1 | 2;
  /** Settings that only the processes of the file have: its agents, and ingresses of its own, one or two behind a balancer, instead of the shared ones. */
  ownEnv?: Record<string, string>;
};

/** A cluster for one test file: a real nats-server, and each service as a process. */
export class Cluster implements AsyncDisposable {
  readonly nats: NatsServer;
  readonly #ownsNats: boolean;
  /** `own` are the processes of one file, if it shares the other services. */
  #shared: { own: Cluster; services: SharedServices } | undefined;
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
    const nats = options.nats ?? (await startNats({ config: usersConfig(options) }));
    const cluster = new Cluster(nats, options.nats === undefined);
    try {
      await cluster.#startServices(options);
      return cluster;
    } catch (error) {
      await cluster[Symbol.asyncDispose]();
      throw error;
    }
  }

  /**
   * The cluster that the files of this process with the same `env` share, with agents of the caller: a supervisor, and one or two relays
   * and ingresses of each profile, which serve gRPC as well. There may be more of them than the file requests. A file may restart its
   * services, but changes neither the streams nor their limits. Other files have left tasks in the log.
   */
  static async shared({
    agents,
    agentsFolder = '.',
    balanced = false,
    env = {},
    ownEnv,
    profile = 'caipe',
    replicas = balanced ? 2 : 1,
  }: SharedClusterOptions): Promise<Cluster> {
    const services = await sharedServices(env);
    const { nats, base, names } = services;
    if (replicas === 2) {
      services.secondRelay ??= base.#startSecondRelay();
      await services.secondRelay;
    }
    for (const { name } of agents) {
      // A turn that another file left behind would reach this file's agent.
      if (names.has(name)) throw new Error(`another file has an agent named ${name}: choose a name of its own`);
      names.add(name);
    }
    const own = await Cluster.start({
      ...ingressesOnly(nats),
      ...(ownEnv === undefined ? { ingresses: 0 } : { balanced, profile }),
      agents,
      agentsFolder,
      env: { ...env, ...ownEnv },
    });
    const front = ownEnv === undefined ? await frontOf(services, { profile, replicas, env }) : own;
    const cluster = new Cluster(nats, false);
    cluster.#shared = { own, services };
    cluster.relays.push(...base.relays);
    cluster.supervisors.push(...base.supervisors);
    cluster.ingresses.push(...front.ingresses);
    cluster.agents.push(...own.agents);
    if (balanced) cluster.balancer = front.balancer;
    return cluster;
  }

  get url(): string {
    return this.balancer?.url ?? this.ingresses[0]!.url;
  }

  get services(): ServiceProcess[] {
    return [...this.ingresses, ...this.supervisors, ...this.agents, ...this.relays, ...this.notifiers];
  }

  /** Kills all relays at once, because a test does not know which of them has its task. */
  async killRelays(): Promise<void> {
    await Promise.all(this.relays.map(relay => relay.kill()));
  }

  async startRelays(): Promise<void> {
    await Promise.all(this.relays.map(relay => relay.start()));
  }

  /** Starts another ingress, whose settings differ from those of the first one by `env`. */
  async addIngress(instance: string, env: Record<string, string>): Promise<ServiceProcess> {
    const settings = { ...this.ingresses[0]!.spec.env, ...env };
    const ingress = new ServiceProcess({ service: 'ingress', instance, env: settings }, await freePort());
    this.ingresses.push(ingress);
    await ingress.start();
    return ingress;
  }

  async #startSecondRelay(): Promise<void> {
    const [first] = this.relays;
    const spec = { ...first!.spec, instance: 'relay-2' };
    const second = new ServiceProcess(spec, await freePort());
    this.relays.push(second);
    await second.start();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#shared !== undefined) return await this.#leave(this.#shared);
    await this.balancer?.close();
    await Promise.all(this.services.map(service => service.kill()));
    await this.natsProxy?.close();
    if (this.#ownsNats) await this.nats.stop();
  }

  /** Ends the agents, so that they are removed from the card, and leaves the shared services intact for the next file. */
  async #leave({ own, services }: { own: Cluster; services: SharedServices }): Promise<void> {
    services.hasOldAgents = true;
    await Promise.all(own.agents.map(agent => agent.kill('SIGTERM')));
    await own[Symbol.asyncDispose]();
    // An agent that the file has killed is still registered.
    const log = await openJetStreamLog({ servers: this.nats.url, name: 'shared-cluster' });
    for (const { spec } of own.agents) {
      const { name } = JSON.parse(spec.env.HOPLINE_AGENT!) as { name: string };
      for (const { key } of await log.agents.under(name)) await log.agents.delete(key);
    }
    await log.close();
    const shared = [...this.relays, ...this.supervisors, ...this.ingresses];
    const ended = shared.filter(service => service.hasEnded && !own.ingresses.includes(service));
    await Promise.all(ended.map(service => service.start()));
    if (ended.length > 0) throw new Error(`not started again: ${ended.map(({ spec }) => spec.instance).join(', ')}`);
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

/** Services that files share, by their settings. */
const shared = new Map<string, Promise<SharedServices>>();

type SharedServices = {
  nats: NatsServer;
  /** Relays and the supervisor. */
  base: Cluster;
  /** Names of all agents so far. */
  names: Set<unknown>;
  /** The supervisor may still know agents of an earlier file, including those that this file has started itself. */
  hasOldAgents: boolean;
  secondRelay: Promise<void> | undefined;
  fronts: Front[];
};

/** The shared ingresses of a profile, two of them behind a balancer. */
type Front = { profile: string; replicas: 1 | 2; cluster: Promise<Cluster> };

/** Options of a cluster that has only ingresses, and agents. */
const ingressesOnly = (nats: NatsServer) => ({ nats, relays: 0, supervisors: 0, grpc: true });

/**
 * Ingresses of a profile, started if the process has too few. Those that an earlier file used are not replaced, so that their addresses do
 * not change.
 */
function frontOf(
  { nats, fronts }: SharedServices,
  { profile, replicas, env }: Pick<Front, 'profile' | 'replicas'> & { env: Record<string, string> },
): Promise<Cluster> {
  const started = fronts.find(front => front.profile === profile && front.replicas >= replicas);
  if (started !== undefined) return started.cluster;
  const cluster = Cluster.start({ ...ingressesOnly(nats), profile, balanced: replicas === 2, agents: [], env });
  fronts.push({ profile, replicas, cluster });
  return cluster;
}

async function sharedServices(env: Record<string, string>): Promise<SharedServices> {
  const key = JSON.stringify(env);
  const started = shared.get(key) ?? startShared(env);
  shared.set(key, started);
  const services = await started;
  if (services.hasOldAgents) {
    services.hasOldAgents = false;
    // A supervisor offers questions to an agent for a minute after its last heartbeat (ADR 217).
    await Promise.all(services.base.supervisors.map(supervisor => supervisor.kill('SIGTERM')));
    await Promise.all(services.base.supervisors.map(supervisor => supervisor.start()));
  }
  return services;
}

async function startShared(env: Record<string, string>): Promise<SharedServices> {
  const nats = await startNats();
  const base = await Cluster.start({ nats, shards: SHARDS, ingresses: 0, agents: [], env });
  return { nats, base, names: new Set(), hasOldAgents: false, secondRelay: undefined, fronts: [] };
}

/**
 * Ends the services that the files of this process have shared. The program that `npm test` writes for a process of several files calls it after the last of them.
 *
 * @public
 */
export async function stopSharedClusters(): Promise<void> {
  for (const started of shared.values()) {
    const { nats, base, fronts } = await started;
    const clusters = [base, ...(await Promise.all(fronts.map(({ cluster }) => cluster)))];
    await Promise.all(clusters.map(cluster => cluster[Symbol.asyncDispose]()));
    await nats.stop();
  }
  shared.clear();
}
