import { type A2AServer, createA2AServer } from '@hopline/a2a-server';
import { serveAgent } from '@hopline/agent';
import { DEFAULT_SETTINGS } from '@hopline/coalesce';
import { type Log, TextPace } from '@hopline/log';
import { PROFILES } from '@hopline/profiles';
import { createHopMetrics, createLogger, type HopMetrics } from '@hopline/telemetry';
import { webhookRules } from '@hopline/webhook-guard';
import { createNotifier } from '../../services/notifier/src/notifier.ts';
import { createRelay } from '../../services/relay/src/relay.ts';
import { SkillPlanner } from '../../services/supervisor/src/skill-planner.ts';
import { createSupervisor } from '../../services/supervisor/src/supervisor.ts';
import { scriptedAgent } from '../support/agents/scripted-agent.ts';
import type { AgentRuns } from './agent-runs.ts';
import { authenticateCaller } from './callers.ts';
import type { ClusterSettings } from './cluster-settings.ts';
import type { Coverage } from './coverage.ts';
import { Link } from './link.ts';
import type { LogServers, ProcessLog } from './log-servers.ts';
import { observedLog } from './observed-log.ts';
import type { Random } from './random.ts';
import type { Situation, Situations } from './situations.ts';
import type { Trace } from './trace.ts';
import { type VirtualClock, VirtualProcess } from './virtual-clock.ts';
import type { WebhookReceiver } from './webhook-receiver.ts';

/** The default of HOPLINE_AGENT_GONE_MS. */
const AGENT_GONE_MS = 30_000;

export type ProfileUsed = 'caipe' | 'transparent';
/** The servers of an ingress process, by profile. */
type Servers = Readonly<Record<ProfileUsed, A2AServer>>;

/** One start of a service process. */
export type Incarnation = {
  readonly slot: string;
  readonly process: VirtualProcess;
  readonly link: Link;
  readonly log: ProcessLog;
  servers?: Servers;
  /** Aborts when the process is gone, which breaks its connections. */
  readonly gone: AbortController;
  /** Drains and stops the service; undefined while it starts. */
  stop?: () => Promise<void>;
  /** Closes its log. */
  close?: () => Promise<void>;
  /** When the service had started, and when it was stopped or killed; milliseconds of the run. */
  startedAt?: number;
  endedAt?: number;
};

type ClusterDeps = {
  clock: VirtualClock;
  random: Random;
  trace: Trace;
  runs: AgentRuns;
  receiver: WebhookReceiver;
  servers: LogServers;
  situations: Situations;
  coverage: Coverage;
  onCrash: (process: string, error: unknown) => void;
};

/** Far shorter than in production, because a run takes only a minute. */
const SILENT_MS = 10_000;
/** The defaults are longer than a run lasts after its faults. A turn that has begun is silent for longer than scripts let an agent be silent. */
const LOST_TURNS = { unbegunSilentMs: 20_000, begunSilentMs: 40_000 };
/** How long a service that could not start waits for its next start. */
const RESTART_MS = 1_000;
/** A service that does not stop in this time is killed. */
const STOP_MS_MAX = 25_000;

/** Situations by the quota that refuses a request. */
const REFUSALS: Readonly<Record<string, Situation>> = {
  tasks: 'the quota of open tasks refuses a message',
  streams: 'the quota of streams refuses a request',
  messages: 'the quota of messages refuses one',
  sent: 'the budget of sent bytes refuses a request',
};

const logger = createLogger({ service: 'simulator', instance: 'simulator', level: 'silent' });

/** All service processes over one shared log. */
export class Cluster {
  readonly settings: ClusterSettings;
  readonly servers: LogServers;
  readonly #deps: ClusterDeps;
  readonly #slots = new Map<string, Incarnation | undefined>();
  readonly #starts = new Map<string, number>();
  /** Slots whose processes run a later version from their next start on. */
  readonly upgradedSlots = new Set<string>();
  /** Every start of every service. */
  readonly incarnations: Incarnation[] = [];

  constructor(settings: ClusterSettings, deps: ClusterDeps) {
    this.settings = settings;
    this.#deps = deps;
    this.servers = deps.servers;
    for (const [service, replicas] of Object.entries(settings.topology))
      for (let replica = 1; replica <= replicas; replica++) this.#slots.set(`${service}-${replica}`, undefined);
  }

  /** The log without faults. Verifiers use it when a task has begun, and faults that concern a task. */
  get log(): Log {
    const { log } = this.servers;
    if (log === undefined) throw new Error('the servers of the log have not opened it yet');
    return log;
  }

  get slots(): string[] {
    return [...this.#slots.keys()];
  }

  at(slot: string): Incarnation | undefined {
    return this.#slots.get(slot);
  }

  /** Ingress processes that accept connections. */
  ingresses(): Incarnation[] {
    return [...this.#slots.values()].filter(incarnation => incarnation?.servers !== undefined) as Incarnation[];
  }

  startAll(): void {
    for (const slot of this.slots) this.start(slot);
  }

  /** Starts a new process in the slot; a running one stays. */
  start(slot: string): void {
    if (this.#slots.get(slot) !== undefined) return;
    const { clock, random, trace } = this.#deps;
    const count = (this.#starts.get(slot) ?? 0) + 1;
    this.#starts.set(slot, count);
    const process = new VirtualProcess(count === 1 ? slot : `${slot}.${count}`);
    const link = new Link(clock, random);
    const log = this.servers.attach(process, slot, link);
    const incarnation: Incarnation = { slot, process, link, log, gone: new AbortController() };
    const isUpgraded = this.upgradedSlots.has(slot);
    if (this.settings.startsWithVersionBefore) incarnation.link.isVersionBefore = !isUpgraded;
    else incarnation.link.isNextVersion = isUpgraded;
    this.#slots.set(slot, incarnation);
    this.incarnations.push(incarnation);
    trace.add(process.name, 'start');
    const failed = () => {
      trace.add(process.name, 'start failed');
      this.kill(slot, incarnation);
      clock.after(RESTART_MS, () => this.start(slot));
    };
    clock.as(process, () =>
      this.#startService(incarnation).then(
        () => {
          incarnation.startedAt = clock.nowMs;
        },
        () => clock.as(undefined, failed),
      ),
    );
  }

  /** Like SIGKILL: the process does nothing more, but messages that it has sent still arrive. */
  kill(slot: string, which = this.#slots.get(slot)): void {
    if (which === undefined || which.process.state === 'dead') return;
    const { runs, situations, trace } = this.#deps;
    trace.add(which.process.name, 'killed');
    which.process.state = 'dead';
    which.endedAt ??= this.#deps.clock.nowMs;
    runs.killed(which.process);
    situations.killed(which.process.name);
    which.log.abandon();
    which.gone.abort();
    if (this.#slots.get(slot) === which) this.#slots.set(slot, undefined);
  }

  /** Like SIGTERM. Resolves when the process has ended. */
  async stop(slot: string): Promise<void> {
    const incarnation = this.#slots.get(slot);
    if (incarnation?.stop === undefined) return this.kill(slot);
    const { clock, trace } = this.#deps;
    const { process, stop, close } = incarnation;
    trace.add(process.name, 'stops');
    incarnation.endedAt = clock.nowMs;
    // A frozen process gets the signal when it continues.
    const stopped = new Promise<void>(resolve =>
      clock.as(process, () => clock.after(0, () => void stop().then(close).then(resolve, resolve))),
    );
    await Promise.race([stopped, clock.sleep(STOP_MS_MAX)]);
    this.kill(slot, incarnation);
  }

  /** No process continues while verifiers read the log. */
  suspend(): void {
    for (const incarnation of this.#slots.values()) if (incarnation) this.#deps.clock.freeze(incarnation.process);
  }

  /** Ends the run: no process does anything afterwards. */
  close(): void {
    for (const slot of this.slots) this.kill(slot);
    this.servers.close();
  }

  /** A process ends when its code throws an uncaught error, and is then started again, as by a process supervisor. */
  crashed(process: VirtualProcess | undefined, error: unknown): void {
    this.#deps.onCrash(process?.name ?? 'unknown', error);
    const [slot] = [...this.#slots].find(([, incarnation]) => incarnation?.process === process) ?? [];
    if (slot === undefined) return;
    this.kill(slot);
    this.#deps.clock.as(undefined, () => this.#deps.clock.after(RESTART_MS, () => this.start(slot)));
  }

  async #startService(incarnation: Incarnation): Promise<void> {
    const { clock } = this.#deps;
    const { process, slot } = incarnation;
    const { coverage, situations } = this.#deps;
    const log = observedLog(await incarnation.log.open(), { coverage, situations, process: process.name });
    incarnation.close = () => log.close();
    const common = { log, logger, metrics: this.#metrics() };
    const {
      limits = {},
      leaseMs,
      heartbeatMs,
      inputTimeoutMs,
      authTimeoutMs,
      copyForwardAfterMs,
      copyPartUnitsMax,
    } = this.settings;
    const separator = slot.lastIndexOf('-');
    const service = slot.slice(0, separator);
    const { holdingProducers } = this.settings;
    const holds = holdingProducers === 'all' || (holdingProducers === 'some' && Number(slot.slice(separator + 1)) % 2 === 1);
    const producer = { ...common, ...(holds && { pace: new TextPace(DEFAULT_SETTINGS) }) };
    if (service === 'relay') {
      const leases = { instance: slot, leaseMs, heartbeatMs };
      const relay = await createRelay({
        ...common,
        ...leases,
        coalesce: DEFAULT_SETTINGS,
        inputTimeoutMs,
        authTimeoutMs,
        copyForwardAfterMs,
        copyPartUnitsMax,
        silentMs: SILENT_MS,
        lostTurns: LOST_TURNS,
      });
      incarnation.stop = () => relay.stop();
    } else if (service === 'supervisor') {
      const profiles = PROFILES;
      const planner = new SkillPlanner();
      const supervisor = await createSupervisor({
        ...producer,
        planner,
        profiles,
        displayName: 'Supervisor',
        slots: 8,
        agentGoneMs: AGENT_GONE_MS,
        agentWaitMs: AGENT_GONE_MS,
        times: { lostInputsMs: SILENT_MS, lostItemsMs: SILENT_MS },
      });
      incarnation.stop = () => supervisor.stop();
    } else if (service === 'notifier') {
      const notifier = await createNotifier({
        ...common,
        instance: slot,
        leaseMs,
        heartbeatMs,
        rules: webhookRules({ HOPLINE_WEBHOOK_ALLOW: undefined, HOPLINE_WEBHOOK_HTTP: false }),
        limits: {
          timeoutMs: 2_000,
          requestsMax: 16,
          hostRequestsMax: 16,
          workersMax: 64,
          intervalMs: 200,
          bytesPerSecondMax: 1024 * 1024,
        },
        retry: { attemptsMax: 200, retryMsBase: 200, retryMsMax: 2_000, abandonAfterMs: 3_600_000 },
        client: this.#deps.receiver.client(process),
      });
      incarnation.stop = () => notifier.stop();
    } else if (service === 'ingress') {
      const authenticate = this.settings.isAuthenticated ? authenticateCaller : undefined;
      const server = (profile: ProfileUsed) =>
        createA2AServer({ ...common, role: 'supervisor', profile, push: true, limits, authenticate });
      const servers = { caipe: server('caipe'), transparent: server('transparent') };
      incarnation.servers = servers;
      incarnation.stop = async () => {
        for (const one of Object.values(servers)) one.drain();
        await clock.sleep(100);
        for (const one of Object.values(servers)) one.close();
      };
    } else await this.#startAgent(incarnation, service.replace('agent.', ''), producer);
  }

  /** Metrics of production that show a situation. */
  #metrics(): HopMetrics {
    const metrics = createHopMetrics('simulator');
    const { runs, situations } = this.#deps;
    const { takeovers, appendConflicts, logEvents, requestsRefused } = metrics;
    return {
      ...metrics,
      takeovers: {
        add: (n, labels) => {
          takeovers.add(n, labels);
          if (labels?.reason === 'lost' && runs.isWriting)
            situations.add('the shard of a dead relay is taken over while an agent writes');
        },
      },
      requestsRefused: {
        add: (n, labels) => {
          requestsRefused.add(n, labels);
          const situation = REFUSALS[labels?.reason ?? ''];
          if (situation !== undefined) situations.add(situation);
        },
      },
      appendConflicts: {
        add: n => {
          appendConflicts.add(n);
          situations.add('an append of a former owner is refused');
        },
      },
      logEvents: {
        add: (n, labels) => {
          logEvents.add(n, labels);
          if (labels?.kind === 'facts_lost') situations.add('a relay folds lost facts again');
        },
      },
    };
  }

  async #startAgent(
    incarnation: Incarnation,
    name: string,
    producer: Pick<Parameters<typeof serveAgent>[0], 'log' | 'logger' | 'metrics' | 'pace'>,
  ): Promise<void> {
    const stop = new AbortController();
    const agent = scriptedAgent(name, this.#deps.runs);
    const registered = Promise.withResolvers<void>();
    const options = { name, agent, url: 'https://agent.example/', skills: await agent.skills(), slots: 8 };
    const signal = stop.signal;
    const serving = serveAgent({
      ...producer,
      ...options,
      signal,
      drainMs: 500,
      endShownMsMax: SILENT_MS,
      retries: 1,
      onRegistered: () => registered.resolve(),
    });
    incarnation.stop = async () => {
      stop.abort();
      await serving;
    };
    await Promise.race([registered.promise, serving]);
  }
}
