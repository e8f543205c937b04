import { hash } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { freePort } from '@hopline/local-cluster';
import type { Log } from '@hopline/log';
import { openJetStreamLog } from '@hopline/log-jetstream';
import { type JetStreamManager, jetstreamManager } from '@nats-io/jetstream';
import { connect, type NatsConnection } from '@nats-io/transport-node';
import { collect } from '../../kit/collect.ts';
import type { ModelServer } from '../../support/agents/model-server.ts';
import { ServiceProcess, type ServiceSpec } from '../../support/cluster/service-process.ts';
import { type NatsProxy, startNatsProxy } from '../../support/nats/nats-proxy.ts';
import { type NatsServer, startNats, startNatsCluster } from '../../support/nats/nats-server.ts';
import { monotonicMs, RUNS_FOLDER } from './agents/run-file.ts';
import { startScriptedModelServer } from './agents/scripted-model-server.ts';
import { SteppedClock } from './stepped-clock.ts';

/** Processes of each service and agent unless `ClusterSize` has another number; every one has a sibling that can take over. They are next to each other in `replicas`. */
export const REPLICAS = 2;

/** The size of the cluster of every class. Supervisors, notifiers and agents stay pairs. */
export type ClusterSize = {
  /** nats-servers; 1 if streams have one replica. */
  nodes: number;
  /** Stream groups of the log. */
  groups: number;
  /** It must be even, so that siblings stay next to each other in `replicas`. */
  relays: number;
  ingresses: number;
  /** Shards of the log. Undefined: those of the product. */
  shards?: number;
};

export const SIZE_DEFAULT: ClusterSize = { nodes: 1, groups: 1, relays: REPLICAS, ingresses: REPLICAS };

const SERVICES = ['relay', 'supervisor', 'notifier', 'sub-agent', 'ingress'] as const;
export type ServiceName = (typeof SERVICES)[number];

const AGENTS = 'test/faults/campaign/agents';

const ENV = {
  HOPLINE_PUSH: 'true',
  HOPLINE_WEBHOOK_ALLOW: '127.0.0.1',
  HOPLINE_WEBHOOK_HTTP: 'true',
  HOPLINE_WEBHOOK_RETRY_MS_BASE: '100',
  HOPLINE_WEBHOOK_RETRY_MS_MAX: '2000',
  // A client notices a frozen ingress by its silence.
  HOPLINE_SSE_HEARTBEAT_MS: '1000',
};

/** A client's credentials. */
export type Caller = { name: string; headers: Record<string, string> };
/** Callers of one cluster. After that many, the first one is used again. */
const CALLERS: readonly Caller[] = Array.from({ length: 500 }, (_, index) => {
  const name = `caller-${index + 1}`;
  return { name, headers: { 'x-api-key': hash('sha256', `key of ${name}`) } };
});

export type ClusterNeeds = {
  /** Replicas of each stream. With 3, NATS is a cluster of `size.nodes` servers. */
  replicas: 1 | 3;
  size: ClusterSize;
  /** True if every service reaches NATS through its own proxies. */
  proxied?: boolean;
  /** The system clock of each service can be set. */
  clocks?: boolean;
  /** Settings of every service. */
  env?: Record<string, string>;
  /** True if there is an agent of every kind, otherwise a module and a remote agent. */
  hasEveryAgent?: boolean;
  /** Directory of the store of each nats-server. */
  stores?: readonly string[];
  /** When three servers sync their writes to disk. */
  syncInterval?: 'always';
};

/** One service process with its connection to NATS and, if a class needs it, its clock. */
export type Replica = { service: ServiceName; process: ServiceProcess; proxies: NatsProxy[]; clock?: SteppedClock };

/** Every service as two processes or more, a remote agent as a process, and NATS as one server or a cluster. */
export class CampaignCluster implements AsyncDisposable {
  readonly replicas: Replica[] = [];
  readonly remoteAgent: ServiceProcess;
  readonly nats: ReadonlyMap<string, NatsServer>;
  /** Connection of the test itself, with no fault between it and NATS. */
  readonly log: Log;
  readonly runsFolder: string;
  readonly #models: ModelServer | undefined;
  /** When the process with an id was killed, by `monotonicMs`. */
  readonly deaths = new Map<number, number>();
  #callersTaken = 0;
  readonly #jsm: JetStreamManager;
  readonly #nc: NatsConnection;

  private constructor(
    parts: Pick<CampaignCluster, 'remoteAgent' | 'nats' | 'log' | 'runsFolder'>,
    models: ModelServer | undefined,
    jsm: JetStreamManager,
    nc: NatsConnection,
  ) {
    this.remoteAgent = parts.remoteAgent;
    this.nats = parts.nats;
    this.log = parts.log;
    this.runsFolder = parts.runsFolder;
    this.#models = models;
    this.#jsm = jsm;
    this.#nc = nc;
  }

  static async start(needs: ClusterNeeds): Promise<CampaignCluster> {
    const { replicas, size, proxied = false, clocks = false, env = {}, stores = [], syncInterval } = needs;
    const nats =
      replicas === 1
        ? new Map([['nats-1', await startNats(stores[0] === undefined ? {} : { dir: stores[0] })]])
        : (await startNatsCluster(nodeNames(size.nodes), { syncInterval, dirs: stores })).servers;
    const servers = [...nats.values()].map(({ url }) => url);
    const maxBytes = maxBytesOf(env);
    // Creates the streams first, so that the service processes need not race for it.
    const log = await openJetStreamLog({
      servers: servers.join(','),
      name: 'campaign',
      replicas,
      groups: size.groups,
      ...(size.shards !== undefined && { shards: size.shards }),
      maxBytes,
      openTimeoutMs: 60_000,
    });
    const nc = await connect({ servers, maxReconnectAttempts: -1 });
    const jsm = await jetstreamManager(nc, { checkAPI: false });
    const runsFolder = mkdtempSync(join(tmpdir(), 'hopline-campaign-'));
    const remoteAgent = new ServiceProcess(remoteSpec(runsFolder), await freePort());
    const models = needs.hasEveryAgent ? await startScriptedModelServer(runsFolder) : undefined;
    const cluster = new CampaignCluster({ remoteAgent, nats, log, runsFolder }, models, jsm, nc);
    const keysFile = join(runsFolder, 'api-keys.json');
    writeFileSync(keysFile, JSON.stringify(CALLERS.map(keyEntryOf)));
    try {
      await remoteAgent.start();
      const layout = { HOPLINE_REPLICAS: String(replicas), HOPLINE_STREAM_GROUPS: String(size.groups) };
      const settings = { ...ENV, ...layout, [RUNS_FOLDER]: runsFolder, ...env };
      for (const service of SERVICES) {
        const serviceSettings = service === 'ingress' ? { ...settings, HOPLINE_AUTH_API_KEYS_FILE: keysFile } : settings;
        await cluster.#add(service, serviceSettings, { proxied, clocks, count: countOf(service, size) });
      }
      await Promise.all(cluster.replicas.map(({ process }) => process.start()));
      return cluster;
    } catch (error) {
      await cluster[Symbol.asyncDispose]();
      throw error;
    }
  }

  of(service: ServiceName): Replica[] {
    return this.replicas.filter(replica => replica.service === service);
  }

  /** The next caller. */
  takeCaller(): Caller {
    return CALLERS[this.#callersTaken++ % CALLERS.length]!;
  }

  /** SIGKILL by default; resolves when the process is gone. */
  async kill(process: ServiceProcess, signal?: NodeJS.Signals): Promise<void> {
    const { pid } = process;
    await process.kill(signal);
    this.deaths.set(pid, monotonicMs());
  }

  async leaderOf(stream: string): Promise<string> {
    for (;;) {
      const leader = (await this.#jsm.streams.info(stream).catch(() => undefined))?.cluster?.leader;
      if (leader !== undefined && leader !== '') return leader;
      await sleep(100);
    }
  }

  /** Names of the streams and buckets of the log. */
  async streamNames(): Promise<string[]> {
    const names = await collect(this.#jsm.streams.names());
    return names.sort();
  }

  /** Asks the leader of a stream to step down. If there is no leader, it does nothing. */
  async stepDown(stream: string): Promise<void> {
    await this.#nc.request(`$JS.API.STREAM.LEADER.STEPDOWN.${stream}`).catch(() => {});
  }

  /** Resolves when each stream has had a leader whose records are on every server other than `without`. */
  async untilCurrent(without: NatsServer, timeoutMs: number): Promise<void> {
    const end = performance.now() + timeoutMs;
    const isAway = (name: string) => this.nats.get(name) === without;
    const waiting = new Set(await until(() => this.streamNames(), end));
    for (; waiting.size > 0; await sleep(100)) {
      for (const name of waiting) {
        const found = (await this.#jsm.streams.info(name).catch(() => undefined))?.cluster;
        const others = (found?.replicas ?? []).filter(replica => !isAway(replica.name));
        const hasLeader = found?.leader !== undefined && found.leader !== '' && !isAway(found.leader);
        if (hasLeader && others.every(({ current, lag = 0 }) => current && lag === 0)) waiting.delete(name);
      }
      if (performance.now() > end) throw new Error(`not on every server after ${timeoutMs} ms: ${[...waiting].join(', ')}`);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([...this.replicas.map(({ process }) => process), this.remoteAgent].map(process => process.kill()));
    await Promise.all(this.replicas.flatMap(({ proxies }) => proxies.map(proxy => proxy.close())));
    await this.log.close();
    await this.#models?.[Symbol.asyncDispose]();
    await this.#nc.close();
    await Promise.all([...this.nats.values()].map(server => server.kill()));
    await Promise.all([...this.nats.values()].map(server => server.stop()));
    rmSync(this.runsFolder, { recursive: true, force: true });
  }

  async #add(
    service: ServiceName,
    settings: Record<string, string>,
    { proxied, clocks, count }: Required<Pick<ClusterNeeds, 'proxied' | 'clocks'>> & { count: number },
  ): Promise<void> {
    for (const agent of service === 'sub-agent' ? this.#agents() : [undefined]) {
      for (let number = 1; number <= count; number += 1) {
        const proxies = proxied ? await Promise.all([...this.nats.values()].map(({ port }) => startNatsProxy(port))) : [];
        const urls = proxied ? proxies : [...this.nats.values()];
        const instance = [service, ...(agent ? [agent.name] : []), number].join('-');
        const clock = clocks ? new SteppedClock(this.runsFolder, instance) : undefined;
        const env = {
          ...settings,
          ...clock?.env,
          NATS_URL: urls.map(({ url }) => url).join(','),
          ...(agent && { HOPLINE_AGENT: JSON.stringify(agent) }),
        };
        const process = new ServiceProcess({ service, instance, env }, await freePort());
        this.replicas.push({ service, process, proxies, ...(clock && { clock }) });
      }
    }
  }

  #agents(): ({ name: string; adapter: string } & Record<string, unknown>)[] {
    const skills = [{ id: 'reader', name: 'reader', description: 'reader', tags: ['reader'] }];
    const reader = { name: 'reader', adapter: 'a2a', url: this.remoteAgent.url, skills };
    const two = [{ name: 'writer', adapter: 'module', path: `${AGENTS}/writer.ts`, env: [RUNS_FOLDER] }, reader];
    if (this.#models === undefined) return two;
    return [
      ...two,
      { name: 'graph', adapter: 'langgraph', module: `${AGENTS}/graph.ts`, export: 'graph', env: [RUNS_FOLDER] },
      { name: 'thinker', adapter: 'model', model: 'stand-in', baseUrl: this.#models.url },
    ];
  }
}

const keyEntryOf = ({ name, headers }: Caller) => ({ key_sha256: hash('sha256', headers['x-api-key']!), subject: name });

/** The result of a request, repeated until it succeeds or the time is over. */
async function until<T>(request: () => Promise<T>, end: number): Promise<T> {
  for (;;) {
    try {
      return await request();
    } catch (error) {
      if (performance.now() > end) throw error;
      await sleep(100);
    }
  }
}

const nodeNames = (nodes: number) => Array.from({ length: nodes }, (_, index) => `nats-${index + 1}`);

function countOf(service: ServiceName, { relays, ingresses }: ClusterSize): number {
  if (service === 'relay') return relays;
  return service === 'ingress' ? ingresses : REPLICAS;
}

function remoteSpec(runsFolder: string): ServiceSpec {
  const program = { path: 'test/faults/campaign/agents/reader/main.ts', readyPath: '/.well-known/agent-card.json' };
  return { service: 'remote-agent', instance: 'remote-agent', env: { [RUNS_FOLDER]: runsFolder }, program };
}

function maxBytesOf(env: Record<string, string>) {
  const { HOPLINE_INPUTS_BYTES_MAX: inputs, HOPLINE_WORK_BYTES_MAX: work } = env;
  return { ...(inputs && { inputs: Number(inputs) }), ...(work && { work: Number(work) }) };
}
